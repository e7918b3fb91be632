/* SPDX-License-Identifier: MIT
 *
 * Inputs and expected results of collectives, for any element type.
 */
#include "config.h"

#include "bench.h"

#include <iris/device/core/float8.h>
#include <string.h>

/* Values are 0 to 12; f8e5m2 has only the even ones of these. So sums of up to
 * 20 ranks are exact even in bf16, and sums of 8-bit floats are rounded once.
 * Integers wrap around in the same way in every library. The values repeat
 * after PERIOD elements, so filling and comparing are fast. */
#define PERIOD 13
#define MAX_ELEMENT 16

static unsigned value_of(iris_dtype_t dtype, int rank, size_t i)
{
    unsigned value = (unsigned)((i * 7 + (size_t)rank * 3) % PERIOD);

    return dtype == IRIS_DTYPE_F8E5M2 ? value & ~1u : value;
}

/* Writes `value` as an element. */
static void encode_value(iris_dtype_t dtype, unsigned value, void *element)
{
    float f32 = (float)value;
    double f64 = value;
    uint64_t bits = value;
    iris_f16_t f16 = iris_f16_from_f32(f32);
    iris_bf16_t bf16 = iris_bf16_from_f32(f32);
    iris_f8e4m3_t f8e4m3 = iris_f8e4m3_from_f32(f32);
    iris_f8e5m2_t f8e5m2 = iris_f8e5m2_from_f32(f32);
    const void *from = dtype == IRIS_DTYPE_F32      ? (void *)&f32
                       : dtype == IRIS_DTYPE_F64    ? (void *)&f64
                       : dtype == IRIS_DTYPE_F16    ? (void *)&f16
                       : dtype == IRIS_DTYPE_BF16   ? (void *)&bf16
                       : dtype == IRIS_DTYPE_F8E4M3 ? (void *)&f8e4m3
                       : dtype == IRIS_DTYPE_F8E5M2 ? (void *)&f8e5m2
                                                    : (void *)&bits;

    memcpy(element, from, iris_dtype_size(dtype)); /* little-endian */
}

/* The elements that a part repeats: a rank's input, or the sum of all ranks'
 * inputs for rank -1. */
struct pattern {
    size_t element; /* bytes */
    char bytes[PERIOD * MAX_ELEMENT];
};

static struct pattern pattern_of(const struct bench_ccl *call, int rank,
                                 size_t first)
{
    struct pattern pattern = {.element = iris_dtype_size(call->dtype)};

    for (size_t i = 0; i < PERIOD; i++) {
        unsigned value = rank < 0 ? 0 : value_of(call->dtype, rank, first + i);

        for (int r = 0; rank < 0 && r < call->num_ranks; r++) {
            value += value_of(call->dtype, r, first + i);
        }
        encode_value(call->dtype, value, &pattern.bytes[i * pattern.element]);
    }
    return pattern;
}

/* Whether the buffer has a part for each rank. */
static bool is_parted(const struct bench_ccl *call, bool out)
{
    return call->op == BENCH_ALL_TO_ALL || call->op == BENCH_ALL_TO_ALLV ||
           call->op == (out ? BENCH_ALL_GATHER : BENCH_REDUCE_SCATTER) ||
           call->op == (out ? BENCH_GATHER : BENCH_SCATTER);
}

static size_t count_of(const struct bench_ccl *call, bool out)
{
    return call->count * (is_parted(call, out) ? (size_t)call->num_ranks : 1);
}

iris_status_t bench_ccl_fill(struct bench *b, const struct bench_ccl *call,
                             void *host)
{
    struct pattern pattern = pattern_of(call, b->rank, 0);
    size_t bytes = count_of(call, false) * pattern.element;
    size_t period = PERIOD * pattern.element;

    for (size_t i = 0; i < bytes; i += period) {
        memcpy((char *)host + i, pattern.bytes,
               bytes - i < period ? bytes - i : period);
    }
    return bench_copy(b, call->in, host, bytes);
}

static uint64_t count_wrong(const char *part, size_t count,
                            const struct pattern *pattern)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < count; i++) {
        size_t left = count - i;

        /* Usually a whole period is right. */
        if (left >= PERIOD && i % PERIOD == 0 &&
            memcmp(part + i * pattern->element, pattern->bytes,
                   PERIOD * pattern->element) == 0) {
            i += PERIOD - 1;
            continue;
        }
        wrong += memcmp(part + i * pattern->element,
                        &pattern->bytes[i % PERIOD * pattern->element],
                        pattern->element) != 0;
    }
    return wrong;
}

/* The rank whose elements are in part `part` of `out`; -1: the sum of all
 * ranks. */
static int source_of(const struct bench *b, const struct bench_ccl *call,
                     int part)
{
    switch (call->op) {
    case BENCH_ALL_REDUCE:
    case BENCH_REDUCE_SCATTER:
    case BENCH_REDUCE:
        return -1;
    case BENCH_SEND_RECV:
        return (b->rank + call->num_ranks - 1) % call->num_ranks;
    default:
        return part;
    }
}

iris_status_t bench_ccl_check(struct bench *b, const struct bench_ccl *call,
                              void *host, uint64_t *wrong_p)
{
    size_t element = iris_dtype_size(call->dtype);
    size_t count = count_of(call, true);
    size_t first = is_parted(call, false) ? (size_t)b->rank * call->count : 0;
    int parts = is_parted(call, true) ? call->num_ranks : 1;
    bool is_empty =
        (call->op == BENCH_REDUCE || call->op == BENCH_GATHER) && b->rank != 0;
    iris_status_t status = bench_copy(b, host, call->out, count * element);

    parts = is_empty ? 0 : parts;
    for (int part = 0; part < parts && status == IRIS_OK; part++) {
        struct pattern pattern =
            pattern_of(call, source_of(b, call, part), first);

        *wrong_p +=
            count_wrong((char *)host + (size_t)part * call->count * element,
                        call->count, &pattern);
    }
    return status;
}
