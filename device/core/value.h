/* SPDX-License-Identifier: MIT
 *
 * The element types as bits: each value to and from the low bytes of a 64-bit
 * word, and the arithmetic that atomics do on them.
 */
#ifndef IRIS_DEVICE_VALUE_H
#define IRIS_DEVICE_VALUE_H

#include <iris/types.h>
#include <iris/device/core/compat.h>
#include <iris/device/core/half.h>
#include <iris/device/watch/op.h>

/* clang-format off */
/* IRIS_D_KIND_i8 and so on: the element type as a number. */
#define IRIS_D_ROW(name, c_type, arg) IRIS_D_KIND_##name,
enum iris_d_kind {
    IRIS_TYPES(IRIS_D_ROW, ) IRIS_D_NUM_KINDS,
    /* Of collectives only. */
    IRIS_D_KIND_f8e4m3 = IRIS_D_NUM_KINDS,
    IRIS_D_KIND_f8e5m2,
};
#undef IRIS_D_ROW

/* For f32: uint64_t iris_d_bits_f32(float value) and
 * float iris_d_value_f32(uint64_t bits). */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE uint64_t iris_d_bits_##name(c_type value)                      \
    {                                                                          \
        union { uint64_t bits; c_type value; } u;                              \
        u.bits = 0;                                                            \
        u.value = value;                                                       \
        return u.bits;                                                         \
    }                                                                          \
    IRIS_DEVICE c_type iris_d_value_##name(uint64_t bits)                      \
    {                                                                          \
        union { uint64_t bits; c_type value; } u;                              \
        u.bits = bits;                                                         \
        return u.value;                                                        \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

IRIS_DEVICE size_t iris_d_kind_bytes(enum iris_d_kind kind)
{
#define IRIS_D_ROW(name, c_type, arg)                                          \
    case IRIS_D_KIND_##name:                                                   \
        return sizeof(c_type);
    switch (kind) {
    IRIS_TYPES(IRIS_D_ROW, )
    IRIS_FLOAT8_TYPES(IRIS_D_ROW, )
    default:
        return 0;
    }
#undef IRIS_D_ROW
}
/* clang-format on */

/* Whether a < b, as integers of a kind. */
IRIS_DEVICE iris_bool_t iris_d_less(enum iris_d_kind kind, uint64_t a,
                                    uint64_t b)
{
    switch (kind) {
    case IRIS_D_KIND_i8:
        return iris_d_value_i8(a) < iris_d_value_i8(b);
    case IRIS_D_KIND_i16:
        return iris_d_value_i16(a) < iris_d_value_i16(b);
    case IRIS_D_KIND_i32:
        return iris_d_value_i32(a) < iris_d_value_i32(b);
    case IRIS_D_KIND_i64:
        return iris_d_value_i64(a) < iris_d_value_i64(b);
    default:
        return a < b;
    }
}

/* The caller that stores the result truncates it to the kind's size. */
IRIS_DEVICE uint64_t iris_d_integer(enum iris_d_kind kind, enum iris_op op,
                                    uint64_t a, uint64_t b)
{
    switch (op) {
    case IRIS_OP_ATOMIC_ADD:
        return a + b;
    case IRIS_OP_ATOMIC_SUB:
        return a - b;
    case IRIS_OP_ATOMIC_AND:
        return a & b;
    case IRIS_OP_ATOMIC_OR:
        return a | b;
    case IRIS_OP_ATOMIC_XOR:
        return a ^ b;
    case IRIS_OP_ATOMIC_MIN:
        return iris_d_less(kind, b, a) ? b : a;
    case IRIS_OP_ATOMIC_MAX:
        return iris_d_less(kind, a, b) ? b : a;
    default: /* IRIS_OP_ATOMIC_XCHG */
        return b;
    }
}

/* clang-format off */
/* For float: float iris_d_number_float(op, a, b), with IEEE minNum and maxNum:
 * a NaN and a number give the number. */
#define IRIS_D_NUMBER(c_type)                                                  \
    IRIS_DEVICE c_type iris_d_number_##c_type(enum iris_op op, c_type a,       \
                                              c_type b)                        \
    {                                                                          \
        return op == IRIS_OP_ATOMIC_ADD   ? a + b                              \
               : op == IRIS_OP_ATOMIC_SUB ? a - b                              \
               : op == IRIS_OP_ATOMIC_MIN ? (b < a || a != a ? b : a)          \
               : op == IRIS_OP_ATOMIC_MAX ? (a < b || a != a ? b : a)          \
                                          : b;                                 \
    }
IRIS_D_NUMBER(float)
IRIS_D_NUMBER(double)
#undef IRIS_D_NUMBER
/* clang-format on */

/* a OP b in the arithmetic of a kind. The 16-bit floats are computed as floats,
 * which have more than twice their digits, so each result is rounded
 * correctly. */
IRIS_DEVICE uint64_t iris_d_combine(enum iris_d_kind kind, enum iris_op op,
                                    uint64_t a, uint64_t b)
{
    if (op == IRIS_OP_ATOMIC_XCHG) {
        return b;
    }
    switch (kind) {
    case IRIS_D_KIND_f16:
        return iris_d_bits_f16(iris_f16_from_f32(
            iris_d_number_float(op, iris_f16_to_f32(iris_d_value_f16(a)),
                                iris_f16_to_f32(iris_d_value_f16(b)))));
    case IRIS_D_KIND_bf16:
        return iris_d_bits_bf16(iris_bf16_from_f32(
            iris_d_number_float(op, iris_bf16_to_f32(iris_d_value_bf16(a)),
                                iris_bf16_to_f32(iris_d_value_bf16(b)))));
    case IRIS_D_KIND_f32:
        return iris_d_bits_f32(
            iris_d_number_float(op, iris_d_value_f32(a), iris_d_value_f32(b)));
    case IRIS_D_KIND_f64:
        return iris_d_bits_f64(
            iris_d_number_double(op, iris_d_value_f64(a), iris_d_value_f64(b)));
    default:
        return iris_d_integer(kind, op, a, b);
    }
}

#endif /* IRIS_DEVICE_VALUE_H */
