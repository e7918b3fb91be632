/* SPDX-License-Identifier: MIT
 *
 * Every atomic of every type as a function of bits, so that one test walks them
 * all, and small numbers as values of every type.
 */
#ifndef IRIS_TESTS_AMO_VERBS_H
#define IRIS_TESTS_AMO_VERBS_H

#include "support/matrix.h"

/* Floats have those up to XCHG. */
#define VERBS(X, arg) \
    X(ADD, add, arg)  \
    X(SUB, sub, arg)  \
    X(MIN, min, arg)  \
    X(MAX, max, arg)  \
    X(XCHG, xchg, arg)
#define INTEGER_VERBS(X, arg) \
    X(AND, and, arg)          \
    X(OR, or, arg)            \
    X(XOR, xor, arg)
#define ROW(VERB, verb, arg) VERB,
enum verb { VERBS(ROW, ) CAS, INTEGER_VERBS(ROW, ) NUM_VERBS };
#undef ROW

#define NUM_SEMS 4
#define NUM_SCOPES 3

struct amo {
    void *ptr;
    uint64_t value;    /* bits; what CAS stores */
    uint64_t expected; /* bits; of CAS */
    int to;
    iris_sem_t sem;
    iris_scope_t scope;
};

/* How a masked call goes: not masked, masked with true, masked with false. */
enum masking { PLAIN, MASK_ON, MASK_OFF };

/* clang-format off */
/* uint64_t amo_f32(iris_dev_t dev, enum verb verb, enum masking masking,
 * struct amo a) and so on: the old value's bits. */
#define CASE(VERB, verb, name)                                                 \
    case VERB:                                                                 \
        old = masking == PLAIN                                                 \
            ? iris_atomic_##verb##_##name(dev, p, v, a.to, a.sem, a.scope)     \
            : iris_atomic_##verb##_masked_##name(                              \
                  dev, p, v, a.to, masking == MASK_ON, a.sem, a.scope);        \
        break;
#define ROW(name, c_type, MORE)                                                \
    IRIS_DEVICE_LARGE uint64_t amo_##name(iris_dev_t dev, enum verb verb,      \
                                          enum masking masking, struct amo a)  \
    {                                                                          \
        c_type *p = (c_type *)a.ptr, v = iris_d_value_##name(a.value), old;    \
        c_type expected = iris_d_value_##name(a.expected);                     \
        switch (verb) {                                                        \
        VERBS(CASE, name)                                                      \
        MORE(CASE, name)                                                       \
        default:                                                               \
            old = masking == PLAIN                                             \
                ? iris_atomic_cas(dev, p, expected, v, a.to, a.sem, a.scope)   \
                : iris_atomic_cas_masked(dev, p, expected, v, a.to,            \
                                         masking == MASK_ON, a.sem, a.scope);  \
        }                                                                      \
        return iris_d_bits_##name(old);                                        \
    }
#define NO_MORE(X, arg)
IRIS_INTEGER_TYPES(ROW, INTEGER_VERBS)
IRIS_FLOAT_TYPES(ROW, NO_MORE)
#undef NO_MORE
#undef ROW
#undef CASE

/* uint64_t small_i32(unsigned k) and so on: the bits of the k-th of 256 values.
 * Integers have k in every byte; sums of them do not carry while below 256. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_DEVICE uint64_t small_##name(unsigned k)                              \
    {                                                                          \
        return iris_d_bits_##name((c_type)(k * 0x0101010101010101u));          \
    }
IRIS_INTEGER_TYPES(ROW, )
#undef ROW
#define ROW(name, value)                                                       \
    IRIS_DEVICE uint64_t small_##name(unsigned k)                              \
    {                                                                          \
        return iris_d_bits_##name(value);                                      \
    }
ROW(f16, iris_f16_from_f32((float)k))
ROW(bf16, iris_bf16_from_f32((float)k))
ROW(f32, (float)k)
ROW(f64, (double)k)
#undef ROW

IRIS_DEVICE_LARGE uint64_t amo(iris_dev_t dev, uint32_t kind, enum verb verb,
                               enum masking masking, struct amo a)
{
#define ROW(name, c_type, arg)                                                 \
    case IRIS_D_KIND_##name: return amo_##name(dev, verb, masking, a);
    switch (kind) {
    IRIS_TYPES(ROW, )
    default: return 0;
    }
#undef ROW
}

IRIS_DEVICE_LARGE uint64_t small(uint32_t kind, unsigned k)
{
#define ROW(name, c_type, arg)                                                 \
    case IRIS_D_KIND_##name: return small_##name(k);
    switch (kind) {
    IRIS_TYPES(ROW, )
    default: return 0;
    }
#undef ROW
}

IRIS_DEVICE uint32_t bytes_of(uint32_t kind)
{
#define ROW(name, c_type, arg)                                                 \
    case IRIS_D_KIND_##name: return sizeof(c_type);
    switch (kind) {
    IRIS_TYPES(ROW, )
    default: return 0;
    }
#undef ROW
}
#define ROW(name, c_type, arg)                                                 \
    case IRIS_D_KIND_##name:                                                   \
        if (store) {                                                           \
            iris_atomic_store(dev, (c_type *)a.ptr,                            \
                              iris_d_value_##name(a.value), a.to, a.sem,       \
                              a.scope);                                        \
            return 0;                                                          \
        }                                                                      \
        return iris_d_bits_##name(iris_atomic_load(                            \
            dev, (const c_type *)a.ptr, a.to, a.sem, a.scope));
/* Stores a.value, or loads. */
IRIS_DEVICE_LARGE uint64_t access(iris_dev_t dev, uint32_t kind,
                                  iris_bool_t store, struct amo a)
{
    switch (kind) {
    IRIS_TYPES(ROW, )
    default: return 0;
    }
}
#undef ROW
/* clang-format on */

IRIS_DEVICE iris_bool_t is_float(uint32_t kind)
{
    return kind >= IRIS_D_KIND_f16;
}

IRIS_DEVICE iris_bool_t is_signed(uint32_t kind)
{
    return kind == IRIS_D_KIND_i8 || kind == IRIS_D_KIND_i16 ||
           kind == IRIS_D_KIND_i32 || kind == IRIS_D_KIND_i64;
}

/* Whether the library has this atomic for this type. */
IRIS_DEVICE iris_bool_t has_verb(uint32_t kind, uint32_t verb)
{
    return verb <= CAS || !is_float(kind);
}

#endif /* IRIS_TESTS_AMO_VERBS_H */
