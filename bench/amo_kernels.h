/* SPDX-License-Identifier: MIT
 *
 * The kernels that amo.c times: one for each atomic and element type.
 */
#ifndef IRIS_BENCH_AMO_KERNELS_H
#define IRIS_BENCH_AMO_KERNELS_H

#include <iris/device.h>

struct amo_args {
    const int64_t *context;
    void *words;  /* on each peer: this rank's part of the words */
    void *values; /* operand of each word, local */
    void *old;    /* old values, local; cas expects these */
    size_t count; /* number of words */
    int32_t first_peer;
    int32_t num_peers;
    uint32_t reps;
};

/* The number of updates of each word, over all repetitions and peers. */
IRIS_DEVICE uint64_t amo_turns(const struct amo_args *args)
{
    return (uint64_t)args->reps * (uint64_t)args->num_peers;
}

/* The next peer after `peer`, in a ring. */
IRIS_DEVICE int amo_next(const struct amo_args *args, iris_dev_t dev, int peer)
{
    int last = args->first_peer + args->num_peers - 1;

    last = last >= dev.num_ranks ? last - dev.num_ranks : last;
    if (peer == last) {
        return args->first_peer;
    }
    return peer + 1 == dev.num_ranks ? 0 : peer + 1;
}

/* clang-format off */
#define AMO_INTEGER_VERBS(X, name, c_type)                                     \
    X(name, c_type, and)                                                       \
    X(name, c_type, or)                                                        \
    X(name, c_type, xor)

#define AMO_VERBS(X, name, c_type)                                             \
    X(name, c_type, add)                                                       \
    X(name, c_type, sub)                                                       \
    X(name, c_type, min)                                                       \
    X(name, c_type, max)                                                       \
    X(name, c_type, xchg)

/* For add and u32: IRIS_KERNEL(amo_add_u32, struct amo_args). */
#define AMO_KERNEL(name, verb, update)                                         \
    IRIS_KERNEL(amo_##verb##_##name, struct amo_args)                          \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        int peer = args->first_peer;                                           \
        for (uint64_t left = amo_turns(args); left != 0; left--) {             \
            IRIS_LANES(wg, i, args->count) update;                             \
            peer = amo_next(args, dev, peer);                                  \
        }                                                                      \
    }

#define AMO_UPDATE(name, c_type, verb)                                         \
    AMO_KERNEL(name, verb,                                                     \
        ((c_type *)args->old)[i] = iris_atomic_##verb##_##name(                \
            dev, (c_type *)args->words + i, ((const c_type *)args->values)[i], \
            peer, IRIS_RELAXED, IRIS_SCOPE_SYSTEM))

#define AMO_CAS(name, c_type)                                                  \
    AMO_KERNEL(name, cas,                                                      \
        ((c_type *)args->old)[i] = iris_atomic_cas_##name(                     \
            dev, (c_type *)args->words + i, ((const c_type *)args->old)[i],    \
            ((const c_type *)args->values)[i], peer, IRIS_RELAXED,             \
            IRIS_SCOPE_SYSTEM))

/* The old value is not used. */
#define AMO_UNFETCHED(name, c_type)                                            \
    AMO_KERNEL(name, unfetched,                                                \
        (void)iris_atomic_add_##name(                                          \
            dev, (c_type *)args->words + i, ((const c_type *)args->values)[i], \
            peer, IRIS_RELAXED, IRIS_SCOPE_SYSTEM))

AMO_UNFETCHED(u32, uint32_t)
AMO_UNFETCHED(u64, uint64_t)
AMO_UNFETCHED(f32, float)
AMO_VERBS(AMO_UPDATE, u32, uint32_t)
AMO_VERBS(AMO_UPDATE, u64, uint64_t)
AMO_VERBS(AMO_UPDATE, f32, float)
AMO_INTEGER_VERBS(AMO_UPDATE, u32, uint32_t)
AMO_INTEGER_VERBS(AMO_UPDATE, u64, uint64_t)
AMO_CAS(u32, uint32_t)
AMO_CAS(u64, uint64_t)
AMO_CAS(f32, float)
#undef AMO_VERBS
#undef AMO_INTEGER_VERBS
#undef AMO_KERNEL
#undef AMO_UPDATE
#undef AMO_CAS
#undef AMO_UNFETCHED
/* clang-format on */

#endif /* IRIS_BENCH_AMO_KERNELS_H */
