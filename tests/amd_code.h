/* SPDX-License-Identifier: MIT
 *
 * Small kernels whose code for AMD GPUs tests/amd_code.sh reads. Their names
 * say what must be found there; tests/amd_code.awk knows how. GPU only.
 */
#ifndef AMD_CODE_H
#define AMD_CODE_H

#include <iris/device.h>

struct code_args {
    const int64_t *context;
    void *heap;
    void *data; /* on the heap, too */
    void *out;
    uint64_t value;
    uint64_t expected;
    size_t bytes;
    struct iris_dev_group *group;
    int peer;
    iris_cmp_t cmp;
};

/* clang-format off */

/* code_<operation>_<type>_<order>_<scope>: a store, the operation, a load. The
 * release part of the operation stands between the first two, the acquire part
 * between the last two. Each lane has places of its own, so that the compiler
 * keeps scalar loads for what is the same in all lanes. */
#define CODE(op, name, c_type, sem, scope, CALL)                               \
    IRIS_KERNEL(code_##op##_##name##_##sem##_##scope, struct code_args)        \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        uint32_t lane = iris_d_lane();                                         \
        c_type *p = (c_type *)args->heap + lane;                               \
        c_type v = iris_d_value_##name(args->value), result = v;               \
        c_type w = iris_d_value_##name(args->expected);                        \
        uint64_t *data = (uint64_t *)iris_dev_as_remote(                       \
            dev, (uint64_t *)args->data + lane, args->peer);                   \
        uint64_t *out =                                                        \
            (uint64_t *)iris_d_global((uintptr_t)args->out) + 2 * lane;        \
                                                                               \
        (void)w;                                                               \
        data[0] = args->value;                                                 \
        CALL(op, name, IRIS_##sem, IRIS_SCOPE_##scope);                        \
        out[0] = data[4096] ^ iris_d_bits_##name(result);                      \
    }

#define FETCH(op, name, sem, scope)                                            \
    result = iris_atomic_##op##_##name(dev, p, v, args->peer, sem, scope)
#define CAS(op, name, sem, scope)                                              \
    result = iris_atomic_cas_##name(dev, p, w, v, args->peer, sem, scope)
#define LOAD(op, name, sem, scope)                                             \
    result = iris_atomic_load_##name(dev, p, args->peer, sem, scope)
#define STORE(op, name, sem, scope)                                            \
    iris_atomic_store_##name(dev, p, v, args->peer, sem, scope)
#define FENCE(op, name, sem, scope)                                            \
    iris_fence(sem, scope);                                                    \
    iris_atomic_store_##name(dev, p, v, args->peer, IRIS_RELAXED, IRIS_SCOPE_WG)

#define ORDERS(op, name, c_type, CALL)                                         \
    SCOPES(op, name, c_type, RELAXED, CALL)                                    \
    SCOPES(op, name, c_type, ACQUIRE, CALL)                                    \
    SCOPES(op, name, c_type, RELEASE, CALL)                                    \
    SCOPES(op, name, c_type, ACQ_REL, CALL)
#define SCOPES(op, name, c_type, sem, CALL)                                    \
    CODE(op, name, c_type, sem, WG, CALL)                                      \
    CODE(op, name, c_type, sem, AGENT, CALL)                                   \
    CODE(op, name, c_type, sem, SYSTEM, CALL)

/* Operations that are one instruction, in loops, and inside a wider word. */
#define ROW(name, c_type, arg)                                                 \
    ORDERS(load, name, c_type, LOAD)                                           \
    ORDERS(store, name, c_type, STORE)                                         \
    ORDERS(cas, name, c_type, CAS)                                             \
    ORDERS(add, name, c_type, FETCH)
ROW(u8, uint8_t, )
ROW(u16, uint16_t, )
ROW(u32, uint32_t, )
ROW(u64, uint64_t, )
ROW(f32, float, )
#undef ROW
#define ROW(name, c_type, arg)                                                 \
    ORDERS(sub, name, c_type, FETCH)                                           \
    ORDERS(min, name, c_type, FETCH)                                           \
    ORDERS(max, name, c_type, FETCH)                                           \
    ORDERS(and, name, c_type, FETCH)                                           \
    ORDERS(or, name, c_type, FETCH)                                            \
    ORDERS(xor, name, c_type, FETCH)                                           \
    ORDERS(xchg, name, c_type, FETCH)
ROW(u32, uint32_t, )
ROW(i64, int64_t, )
#undef ROW
ORDERS(add, f64, double, FETCH)
ORDERS(max, f64, double, FETCH)
ORDERS(add, f16, iris_f16_t, FETCH)
ORDERS(min, bf16, iris_bf16_t, FETCH)
ORDERS(fence, u32, uint32_t, FENCE)

/* Signals have their order in them; same shape, same rules. */
#define SET(op, name, sem, scope)                                              \
    iris_signal_set(dev, (uint64_t *)p, args->value, args->peer)
#define ADD(op, name, sem, scope)                                              \
    iris_signal_add(dev, (uint64_t *)p, args->value, args->peer)
#define SEEN(op, name, sem, scope) result = iris_signal_fetch(dev, p)
CODE(set, u64, uint64_t, RELEASE, SYSTEM, SET)
CODE(signal, u64, uint64_t, RELEASE, SYSTEM, ADD)
CODE(fetch, u64, uint64_t, ACQUIRE, SYSTEM, SEEN)

/* code_wait_<type>, code_test_<type>: a load behind the wait is not early. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_KERNEL(code_wait_##name, struct code_args)                            \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        uint32_t lane = iris_d_lane();                                         \
        c_type v = iris_wait_until_##name(                                     \
            dev, (c_type *)args->heap + lane, args->cmp,                       \
            iris_d_value_##name(args->value));                                 \
        iris_store_##name(dev, (c_type *)args->data + lane,                    \
                          (c_type)(v + iris_load_##name(                       \
                              dev, (c_type *)args->data + lane + 4096,         \
                              args->peer)),                                    \
                          args->peer);                                         \
    }
IRIS_WORD_TYPES(ROW, )
#undef ROW
/* clang-format on */

/* Bulk copies: code_wg_*. */
IRIS_KERNEL(code_wg_put, struct code_args)
{
    iris_wg_put(wg, iris_dev_init(args->context), args->data, args->heap,
                args->bytes, args->peer);
}

IRIS_KERNEL(code_wg_get, struct code_args)
{
    iris_wg_get(wg, iris_dev_init(args->context), args->heap, args->data,
                args->bytes, args->peer);
}

IRIS_KERNEL(code_wg_copy, struct code_args)
{
    iris_wg_copy(wg, iris_dev_init(args->context), args->heap, args->data,
                 args->bytes, args->peer, 0);
}

IRIS_KERNEL(code_wg_put_signal, struct code_args)
{
    iris_wg_put_signal(wg, iris_dev_init(args->context), args->data, args->heap,
                       args->bytes, (uint64_t *)args->out, args->value,
                       args->peer);
}

IRIS_KERNEL(code_wg_put_signal_add, struct code_args)
{
    iris_wg_put_signal_add(wg, iris_dev_init(args->context), args->data,
                           args->heap, args->bytes, (uint64_t *)args->out,
                           args->value, args->peer);
}

/* The trap of the memory model: all lanes store, all meet, one says so. */
IRIS_KERNEL(code_barrier_then_signal, struct code_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_WG_LANES (wg, i, args->bytes) {
        iris_store_u32(dev, (uint32_t *)args->data + i, (uint32_t)i,
                       args->peer);
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, (uint64_t *)args->heap, args->value, args->peer);
    }
}

IRIS_KERNEL(code_barrier_between_ranks, struct code_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_WG_LANES (wg, i, args->bytes) {
        iris_store_u32(dev, (uint32_t *)args->data + i, (uint32_t)i,
                       args->peer);
    }
    iris_dev_barrier(wg, dev, args->group);
    IRIS_WG_LANES (wg, i, args->bytes) {
        iris_store_u32(dev, (uint32_t *)args->heap + i,
                       iris_load_u32(dev, (uint32_t *)args->data + i, 0),
                       args->peer);
    }
}

#endif /* AMD_CODE_H */
