/* SPDX-License-Identifier: MIT
 *
 * Elements, reductions of them, and guarded buffers.
 */
#include "config.h"

#include "ccl/cases.h"

#include <iris/device/core/half.h>

#include "support/float8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash(uint64_t seed, uint64_t i)
{
    uint64_t h = seed * 0x9e3779b97f4a7c15u + i * 0xd1342543de82ef95u;

    h = (h ^ h >> 32) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 29;
}

/* Numbers with a fraction, and now and then what is special. */
static double number(uint64_t h)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY};

    if (h % 97 < 4) {
        return special[h % 97];
    }
    return h % 97 == 4 ? (double)NAN : (double)(int64_t)(h >> 40) / 1e5 - 80.0;
}

/* clang-format off */
static float to_f32(float value) { return value; }
static double to_f64(double value) { return value; }
static float quiet_f32(float value) { return isnan(value) ? NAN : value; }
static double quiet_f64(double value) { return isnan(value) ? (double)NAN : value; }
static iris_f16_t quiet_f16(float value) { return iris_f16_from_f32(quiet_f32(value)); }
static iris_bf16_t quiet_bf16(float value) { return iris_bf16_from_f32(quiet_f32(value)); }
static float f8e4m3_to_f32(iris_f8e4m3_t x) { return (x.bits & 0x7f) == 0x7f ? NAN : copysignf((float)float8_magnitude(x.bits & 0x7f, 3), x.bits & 0x80 ? -1.0f : 1.0f); }
static float f8e5m2_to_f32(iris_f8e5m2_t x) { return (x.bits & 0x7f) > 0x7c ? NAN : copysignf((x.bits & 0x7f) == 0x7c ? INFINITY : (float)float8_magnitude(x.bits & 0x7f, 2), x.bits & 0x80 ? -1.0f : 1.0f); }
static iris_f8e4m3_t make_f8e4m3(uint64_t h) { return (iris_f8e4m3_t){(uint8_t)float8_nearest((float)number(h), 3)}; }
static iris_f8e5m2_t make_f8e5m2(uint64_t h) { return (iris_f8e5m2_t){(uint8_t)float8_nearest((float)number(h), 2)}; }
static iris_f8e4m3_t quiet_f8e4m3(float value) { unsigned bits = float8_nearest(value, 3); return (iris_f8e4m3_t){(uint8_t)((bits & 0x7f) == 0x7f ? 0x7f : bits)}; }
static iris_f8e5m2_t quiet_f8e5m2(float value) { return (iris_f8e5m2_t){(uint8_t)float8_nearest(quiet_f32(value), 2)}; }
static float make_f32(uint64_t h) { return (float)number(h); }
static double make_f64(uint64_t h) { return number(h) * 1.0000001; }
static iris_f16_t make_f16(uint64_t h) { return iris_f16_from_f32((float)number(h)); }
static iris_bf16_t make_bf16(uint64_t h) { return iris_bf16_from_f32((float)number(h)); }

/* The types: X(name, NAME, c_type, sum type, element to sum, sum to element). */
#define INTEGERS(X)                                                            \
    X(i8, I8, int8_t) X(u8, U8, uint8_t) X(i16, I16, int16_t)                  \
    X(u16, U16, uint16_t) X(i32, I32, int32_t) X(u32, U32, uint32_t)           \
    X(i64, I64, int64_t) X(u64, U64, uint64_t)
#define FLOATS(X)                                                              \
    X(f16, F16, iris_f16_t, float, iris_f16_to_f32, quiet_f16)                 \
    X(bf16, BF16, iris_bf16_t, float, iris_bf16_to_f32, quiet_bf16)            \
    X(f32, F32, float, float, to_f32, quiet_f32)                               \
    X(f64, F64, double, double, to_f64, quiet_f64)                             \
    X(f8e4m3, F8E4M3, iris_f8e4m3_t, float, f8e4m3_to_f32, quiet_f8e4m3)       \
    X(f8e5m2, F8E5M2, iris_f8e5m2_t, float, f8e5m2_to_f32, quiet_f8e5m2)

#define FILL(name, c_type, value)                                              \
    static void fill_##name(void *to, size_t first, size_t count,              \
                            uint64_t seed)                                     \
    {                                                                          \
        for (size_t i = 0; i < count; i++) {                                   \
            c_type element = value(hash(seed, first + i));                     \
            memcpy((char *)to + i * sizeof element, &element, sizeof element); \
        }                                                                      \
    }
#define ROW(name, NAME, c_type) FILL(name, c_type, (c_type))
INTEGERS(ROW)
#undef ROW
#define ROW(name, NAME, c_type, sum_t, widen, narrow)                          \
    FILL(name, c_type, make_##name)
FLOATS(ROW)
#undef ROW

/* Modulo 2^64 every operation has the right low bits; what compares does so as
 * the type. */
static uint64_t modular(iris_reduce_op_t op, uint64_t a, uint64_t b)
{
    switch (op) {
    case IRIS_REDUCE_SUM: return a + b;
    case IRIS_REDUCE_PRODUCT: return a * b;
    case IRIS_REDUCE_BAND: return a & b;
    case IRIS_REDUCE_BOR: return a | b;
    default: return a ^ b;
    }
}

#define REDUCE(name, c_type, sum_t, value, widen, narrow, MERGE)               \
    static void reduce_##name(void *to, size_t first, size_t count,            \
                              const struct case_reduction *how)                \
    {                                                                          \
        iris_reduce_op_t op = how->op;                                         \
        for (size_t i = 0; i < count; i++) {                                   \
            sum_t sum = widen(value(hash(how->seeds[0], first + i)));               \
            c_type element;                                                    \
            for (int m = 1; m < how->members; m++) {                                \
                sum_t next = widen(value(hash(how->seeds[m], first + i)));          \
                sum = op == IRIS_REDUCE_MIN   ? (next < sum ? next : sum)      \
                      : op == IRIS_REDUCE_MAX ? (next > sum ? next : sum)      \
                                              : (sum_t)MERGE;                  \
            }                                                                  \
            element = narrow(sum);                                             \
            memcpy((char *)to + i * sizeof element, &element, sizeof element); \
        }                                                                      \
    }
#define ROW(name, NAME, c_type)                                                \
    REDUCE(name, c_type, c_type, (c_type), (c_type), (c_type),                 \
           modular(op, (uint64_t)sum, (uint64_t)next))
INTEGERS(ROW)
#undef ROW
#undef REDUCE
#define REDUCE(name, c_type, sum_t, value, widen, narrow)                      \
    static void reduce_##name(void *to, size_t first, size_t count,            \
                              const struct case_reduction *how)                \
    {                                                                          \
        iris_reduce_op_t op = how->op;                                         \
        for (size_t i = 0; i < count; i++) {                                   \
            sum_t sum = widen(value(hash(how->seeds[0], first + i)));               \
            c_type element;                                                    \
            for (int m = 1; m < how->members; m++) {                                \
                sum_t next = widen(value(hash(how->seeds[m], first + i)));          \
                sum = op == IRIS_REDUCE_SUM || op == IRIS_REDUCE_AVG           \
                          ? sum + next                                         \
                      : op == IRIS_REDUCE_PRODUCT ? sum * next                 \
                      : isnan(sum)                ? next                       \
                      : op == IRIS_REDUCE_MIN     ? (next < sum ? next : sum)  \
                                                  : (next > sum ? next : sum); \
            }                                                                  \
            sum *= op == IRIS_REDUCE_AVG ? (sum_t)(1.0 / how->members)         \
                   : how->scale == 0     ? (sum_t)1                            \
                                         : (sum_t)how->scale;                  \
            element = narrow(sum);                                             \
            memcpy((char *)to + i * sizeof element, &element, sizeof element); \
        }                                                                      \
    }
#define ROW(name, NAME, c_type, sum_t, widen, narrow)                          \
    REDUCE(name, c_type, sum_t, make_##name, widen, narrow)
FLOATS(ROW)
#undef ROW
#undef REDUCE
#undef FILL

const struct case_type case_types[] = {
#define ROW(name, NAME, c_type)                                                \
    {#name, IRIS_DTYPE_##NAME, sizeof(c_type), 1, fill_##name, reduce_##name},
    INTEGERS(ROW)
#undef ROW
#define ROW(name, NAME, c_type, sum_t, widen, narrow)                          \
    {#name, IRIS_DTYPE_##NAME, sizeof(c_type), 0, fill_##name, reduce_##name},
    FLOATS(ROW)
#undef ROW
};
/* clang-format on */
const size_t case_num_types = sizeof case_types / sizeof case_types[0];

int case_reduces(const struct case_type *type, iris_reduce_op_t op)
{
    return type->is_integer ? op != IRIS_REDUCE_AVG
                            : op <= IRIS_REDUCE_MAX || op == IRIS_REDUCE_AVG;
}

uint64_t case_seed(int member, uint64_t round)
{
    return hash(round, (uint64_t)member + 1);
}

void case_seeds(const iris_t *iris, const iris_group_t *group, uint64_t round,
                uint64_t *seeds)
{
    for (int i = 0; i < iris_group_size(iris, group); i++) {
        seeds[i] = case_seed(iris_group_member(iris, group, i), round);
    }
}

char *case_host(size_t bytes, int value)
{
    char *memory = malloc(bytes + 2 * CASES_GUARD);

    if (memory == NULL) {
        return NULL;
    }
    memset(memory, value, bytes + 2 * CASES_GUARD);
    return memory + CASES_GUARD;
}

void case_host_free(char *inside)
{
    free(inside == NULL ? NULL : inside - CASES_GUARD);
}

iris_status_t case_write(iris_t *iris, char *device, const char *inside,
                         size_t bytes)
{
    return harness_write(iris, device - CASES_GUARD, inside - CASES_GUARD,
                         bytes + 2 * CASES_GUARD);
}

iris_status_t case_read(iris_t *iris, char *inside, const char *device,
                        size_t bytes)
{
    return harness_read(iris, inside - CASES_GUARD, device - CASES_GUARD,
                        bytes + 2 * CASES_GUARD);
}

int case_same(const char *seen, const char *expected, size_t bytes,
              const char *what)
{
    size_t i = 0, all = bytes + 2 * CASES_GUARD;

    seen -= CASES_GUARD;
    expected -= CASES_GUARD;
    while (i < all && seen[i] == expected[i]) {
        i++;
    }
    if (i < all) {
        fprintf(stderr, "%s: byte %lld of %zu is %02x, expected %02x\n", what,
                (long long)i - CASES_GUARD, bytes, (unsigned char)seen[i],
                (unsigned char)expected[i]);
    }
    return i == all;
}
