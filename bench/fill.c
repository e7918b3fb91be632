/* SPDX-License-Identifier: MIT
 *
 * Fills tensors by size, in alternation with iris_memset of the same memory.
 */
#include "config.h"

#include "bench.h"

#include <iris/device/core/half.h>

#include <string.h>

#define MAX_ENQUEUED 256
#define STEP (1.0 / 1024) /* step of arange, exact in all float types */
#define VALUE 42

enum { ZEROS, FULL, ARANGE };

static const char *const fill_names[] = {
    "zeros",      "full_f32",    "full_i8",   "arange_f32", "arange_f64",
    "arange_f16", "arange_bf16", "arange_i8", "arange_i64", NULL};

static const struct bench_tensor_op fill_ops[] = {
    {ZEROS, IRIS_DTYPE_F32},   {FULL, IRIS_DTYPE_F32},
    {FULL, IRIS_DTYPE_I8},     {ARANGE, IRIS_DTYPE_F32},
    {ARANGE, IRIS_DTYPE_F64},  {ARANGE, IRIS_DTYPE_F16},
    {ARANGE, IRIS_DTYPE_BF16}, {ARANGE, IRIS_DTYPE_I8},
    {ARANGE, IRIS_DTYPE_I64},
};

static iris_status_t fill_open(struct bench *b)
{
    return bench_tensor_open(b, b->options.max_bytes);
}

static iris_status_t enqueue_fill(struct bench *b, const void *arg)
{
    const struct bench_tensor_point *point = arg;
    struct iris_tensor_options options;
    int64_t count = iris_tensor_numel(&point->out);
    iris_tensor_t result;

    iris_tensor_options_init(&options);
    options.dtype = (int)point->out.dtype;
    options.out = &point->out;
    switch (point->what) {
    case ZEROS:
        return iris_zeros(b->iris, IRIS_SHAPE(count), &options, &result);
    case FULL:
        return iris_full(b->iris, IRIS_SHAPE(count), iris_value_int(VALUE),
                         &options, &result);
    default:
        if (point->out.dtype < IRIS_DTYPE_F16) {
            return iris_arange(b->iris, iris_value_int(0),
                               iris_value_int(count), iris_value_int(1),
                               &options, &result);
        }
        return iris_arange(b->iris, iris_value_int(0),
                           iris_value_float((double)count * STEP),
                           iris_value_float(STEP), &options, &result);
    }
}

/* Computes the expected element on the host. */
static void expect_element(const struct bench_tensor_point *point, size_t i,
                           unsigned char *element_p)
{
    double number = point->what == ZEROS  ? 0
                    : point->what == FULL ? VALUE
                                          : (double)i * STEP;
    int64_t whole = point->what == FULL ? VALUE : (int64_t)i;
    float f32 = (float)number;
    iris_f16_t f16 = iris_f16_from_f32(f32);
    iris_bf16_t bf16 = iris_bf16_from_f32(f32);

    switch (point->out.dtype) {
    case IRIS_DTYPE_F16:
        memcpy(element_p, &f16, sizeof f16);
        break;
    case IRIS_DTYPE_BF16:
        memcpy(element_p, &bf16, sizeof bf16);
        break;
    case IRIS_DTYPE_F32:
        memcpy(element_p, &f32, sizeof f32);
        break;
    case IRIS_DTYPE_F64:
        memcpy(element_p, &number, sizeof number);
        break;
    default:
        memcpy(element_p, &whole, iris_dtype_size(point->out.dtype));
        break;
    }
}

static iris_status_t verify_fill(struct bench *b,
                                 const struct bench_tensor_point *point,
                                 uint64_t *wrong_p)
{
    const struct bench_tensor *state = b->state;
    size_t width = iris_dtype_size(point->out.dtype);
    size_t count = (size_t)iris_tensor_numel(&point->out);
    iris_status_t status = bench_tensor_memset(b, point);
    unsigned char wanted[8];

    status = status == IRIS_OK ? enqueue_fill(b, point) : status;
    if (status == IRIS_OK) {
        status = bench_copy(b, state->host, point->out.data, count * width);
    }
    for (size_t i = 0; i < count && status == IRIS_OK; i++) {
        expect_element(point, i, wanted);
        *wrong_p += memcmp(state->host + i * width, wanted, width) != 0;
    }
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

static iris_status_t run_fill(struct bench *b, size_t op,
                              struct bench_row *row_p)
{
    static const struct bench_tensor_kind kind = {.ops = fill_ops,
                                                  .max_enqueued = MAX_ENQUEUED,
                                                  .enqueue = enqueue_fill,
                                                  .verify = verify_fill};

    return bench_tensor_run(b, &kind, op, row_p);
}

const struct bench_group bench_fill = {
    .name = "fill",
    .text = "filling a tensor of this rank's, beside iris_memset",
    .ops = fill_names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = 8,
    .open = fill_open,
    .run = run_fill,
    .close = bench_tensor_close,
};
