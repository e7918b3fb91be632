/* SPDX-License-Identifier: MIT
 *
 * Small kernels whose code for AMD GPUs tests/amd_code.sh reads: one for each
 * operation, order and scope. Their names say what must be found there;
 * rules.awk knows how. GPU only.
 */
#ifndef AMD_ORDERS_H
#define AMD_ORDERS_H

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
 * between the last two. Data are of 16 bytes, as no operation's are. Each lane
 * has places of its own, so that the compiler keeps scalar loads for what is the
 * same in all lanes. */
#define CODE(op, name, c_type, sem, scope, CALL)                               \
    IRIS_KERNEL(code_##op##_##name##_##sem##_##scope, struct code_args)        \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        uint32_t lane = iris_d_lane();                                         \
        c_type *p = (c_type *)args->heap + lane;                               \
        c_type v = iris_d_value_##name(args->value), result = v;               \
        c_type w = iris_d_value_##name(args->expected);                        \
        iris_d_u128_t *data = (iris_d_u128_t *)iris_dev_as_remote(             \
            dev, (iris_d_u128_t *)args->data + lane, args->peer);              \
        iris_d_u128_t *out =                                                   \
            (iris_d_u128_t *)iris_d_global((uintptr_t)args->out) + lane;       \
        iris_d_u128_t block = {0, 1, 2, 3};                                    \
                                                                               \
        (void)w;                                                               \
        data[0] = block ^ (uint32_t)args->value;                               \
        CALL(op, name, IRIS_##sem, IRIS_SCOPE_##scope);                        \
        out[0] = data[4096] ^ (uint32_t)iris_d_bits_##name(result);            \
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

/* Operations that are one instruction, in loops, and inside a wider word. A
 * sample of them has one of each. */
#ifdef AMD_CODE_SAMPLE
SCOPES(load, u64, uint64_t, ACQUIRE, LOAD)
SCOPES(store, u64, uint64_t, RELEASE, STORE)
SCOPES(store, u64, uint64_t, RELAXED, STORE)
SCOPES(cas, u64, uint64_t, ACQ_REL, CAS)
SCOPES(add, u64, uint64_t, RELEASE, FETCH)
SCOPES(add, f32, float, ACQ_REL, FETCH)
SCOPES(xchg, u32, uint32_t, RELAXED, FETCH)
SCOPES(add, f16, iris_f16_t, RELEASE, FETCH)
SCOPES(fence, u32, uint32_t, ACQ_REL, FENCE)
#else
#define ROW(name, c_type, arg)                                                 \
    ORDERS(load, name, c_type, LOAD)                                           \
    ORDERS(store, name, c_type, STORE)                                         \
    ORDERS(cas, name, c_type, CAS)                                             \
    ORDERS(add, name, c_type, FETCH)
ROW(u64, uint64_t, )
ROW(u8, uint8_t, )
ROW(u16, uint16_t, )
ROW(u32, uint32_t, )
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
ORDERS(add, f64, double, FETCH)
ORDERS(max, f64, double, FETCH)
ORDERS(min, bf16, iris_bf16_t, FETCH)
#undef ROW
ORDERS(add, f16, iris_f16_t, FETCH)
ORDERS(fence, u32, uint32_t, FENCE)
#endif

/* Signals have their order in them, volatile accesses are relaxed at system
 * scope or at the one that a hint asks for. Same shape, same rules. NT and PLAIN
 * are no scopes, but how accesses without one are. */
#define SET(op, name, sem, scope)                                              \
    iris_signal_set(dev, (uint64_t *)p, args->value, args->peer)
#define ADD(op, name, sem, scope)                                              \
    iris_signal_add(dev, (uint64_t *)p, args->value, args->peer)
#define SEEN(op, name, sem, scope) result = iris_signal_fetch(dev, p)
#define VOLATILE_LOAD(op, name, sem, scope)                                    \
    result = iris_load_volatile_##name(dev, p, args->peer)
#define VOLATILE_STORE(op, name, sem, scope)                                   \
    iris_store_volatile_##name(dev, p, v, args->peer)
#define HINT_LOAD(op, name, sem, scope)                                        \
    result = iris_load_hint_##name(dev, p, args->peer, HINT_##op)
#define HINT_STORE(op, name, sem, scope)                                       \
    iris_store_hint_##name(dev, p, v, args->peer, HINT_##op)
#define HINT_cvload IRIS_CACHE_VOLATILE
#define HINT_cgload IRIS_CACHE_GLOBAL
#define HINT_csload IRIS_CACHE_STREAMING
#define HINT_caload IRIS_CACHE_ALL
#define HINT_wtstore IRIS_CACHE_WRITE_THROUGH
#define HINT_csstore IRIS_CACHE_STREAMING
#define HINT_wbstore IRIS_CACHE_WRITE_BACK
#define PLAIN_LOAD(op, name, sem, scope)                                       \
    result = iris_load_##name(dev, p, args->peer)
#define PLAIN_STORE(op, name, sem, scope)                                      \
    iris_store_##name(dev, p, v, args->peer)
CODE(set, u64, uint64_t, RELEASE, SYSTEM, SET)
CODE(signal, u64, uint64_t, RELEASE, SYSTEM, ADD)
CODE(fetch, u64, uint64_t, ACQUIRE, SYSTEM, SEEN)
#define ROW(name, c_type, arg)                                                 \
    CODE(vload, name, c_type, RELAXED, SYSTEM, VOLATILE_LOAD)                  \
    CODE(vstore, name, c_type, RELAXED, SYSTEM, VOLATILE_STORE)                \
    CODE(cvload, name, c_type, RELAXED, SYSTEM, HINT_LOAD)                     \
    CODE(cgload, name, c_type, RELAXED, AGENT, HINT_LOAD)                      \
    CODE(csload, name, c_type, RELAXED, NT, HINT_LOAD)                         \
    CODE(caload, name, c_type, RELAXED, PLAIN, HINT_LOAD)                      \
    CODE(wtstore, name, c_type, RELAXED, SYSTEM, HINT_STORE)                   \
    CODE(csstore, name, c_type, RELAXED, NT, HINT_STORE)                       \
    CODE(wbstore, name, c_type, RELAXED, PLAIN, HINT_STORE)                    \
    CODE(load, name, c_type, RELAXED, PLAIN, PLAIN_LOAD)                       \
    CODE(store, name, c_type, RELAXED, PLAIN, PLAIN_STORE)
ROW(f64, double, )
#ifndef AMD_CODE_SAMPLE
ROW(u8, uint8_t, )
ROW(f16, iris_f16_t, )
ROW(i32, int32_t, )
#endif
#undef ROW
/* clang-format on */

#endif /* AMD_ORDERS_H */
