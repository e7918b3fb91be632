/* SPDX-License-Identifier: MIT
 *
 * iris_arange(): the number of elements, the start and the step.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>
#include <iris/device/kernels/fill_args.h>

#include "base/fp_env.h"
#include "context/context.h"
#include "tensor/kernels.h"

#include <math.h>

static int is_integer(iris_dtype_t dtype)
{
    return dtype >= IRIS_DTYPE_I8 && dtype <= IRIS_DTYPE_U64;
}

struct span {
    iris_value_t start;
    iris_value_t end;
    iris_value_t step;
};

static int is_whole(const struct span *span)
{
    return iris_i_value_is_whole(span->start) &&
           iris_i_value_is_whole(span->end) &&
           iris_i_value_is_whole(span->step);
}

/* The three numbers as doubles, and as integers if the dtype is an integer. */
static iris_status_t read_span(const iris_t *iris, const struct span *span,
                               int whole, double *real_p, int64_t *whole_p)
{
    static const char *const names[] = {"start", "end", "step"};
    const iris_value_t values[] = {span->start, span->end, span->step};
    iris_status_t status = IRIS_OK;

    for (int i = 0; i < 3 && status == IRIS_OK; i++) {
        const struct iris_argument argument = {iris_i_log(iris), "iris_arange",
                                               names[i], values[i]};

        status = iris_i_value_convert(&argument, IRIS_DTYPE_F64, &real_p[i]);
        if (status == IRIS_OK && whole) {
            status =
                iris_i_value_convert(&argument, IRIS_DTYPE_I64, &whole_p[i]);
        }
    }
    return status;
}

static iris_status_t fail_count(const iris_t *iris, const struct span *span,
                                iris_dtype_t dtype, const char *why)
{
    double numbers[3] = {0};
    int64_t whole[3];

    (void)read_span(iris, span, 0, numbers, whole);
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                       "iris_arange: %s (start %.17g, end %.17g, step %.17g, "
                       "dtype %s)",
                       why, numbers[0], numbers[1], numbers[2],
                       iris_dtype_name(dtype));
}

static const char step_is_0[] =
    "step must be non-zero; pass one that leads from start to end";
static const char no_range[] =
    "no element: end is not beyond start in the direction of step; pass a "
    "range that has some";

/* The count for integers: exact for all values. */
static iris_status_t count_whole(const iris_t *iris, const struct span *span,
                                 const int64_t *numbers, iris_dtype_t dtype,
                                 int64_t *count_p)
{
    int64_t start = numbers[0], end = numbers[1], step = numbers[2];
    uint64_t distance = step > 0 ? (uint64_t)end - (uint64_t)start
                                 : (uint64_t)start - (uint64_t)end;
    uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;

    if (step == 0) {
        return fail_count(iris, span, dtype, step_is_0);
    }
    if (step > 0 ? start >= end : start <= end) {
        return fail_count(iris, span, dtype, no_range);
    }
    distance = distance / size + (distance % size != 0);
    if (distance > INT64_MAX) {
        return fail_count(iris, span, dtype,
                          "too many elements; pass a larger step");
    }
    *count_p = (int64_t)distance;
    return IRIS_OK;
}

static iris_status_t count_real(const iris_t *iris, const struct span *span,
                                const double *numbers, iris_dtype_t dtype,
                                int64_t *count_p)
{
    double start = numbers[0], end = numbers[1], step = numbers[2];
    uint64_t fp = iris_i_fp_enter();
    double quotient = (end - start) / step;

    iris_i_fp_leave(fp);

    if (step == 0) {
        return fail_count(iris, span, dtype, step_is_0);
    }
    if (!isfinite(start) || !isfinite(end) || !isfinite(step)) {
        return fail_count(iris, span, dtype,
                          "a number that is not finite; pass numbers that are");
    }
    if (step > 0 ? start >= end : start <= end) {
        return fail_count(iris, span, dtype, no_range);
    }
    if (!(quotient < 0x1p62)) {
        return fail_count(iris, span, dtype,
                          "too many elements; pass a larger step");
    }
    *count_p = (int64_t)quotient + ((double)(int64_t)quotient < quotient);
    return IRIS_OK;
}

/* Fills in the row, except its address. */
static iris_status_t plan(const iris_t *iris, const struct span *span,
                          struct iris_tensor_request *request,
                          struct iris_row_args *row)
{
    iris_dtype_t dtype = request->dtype;
    int all_whole = is_whole(span);
    int of_64 = dtype == IRIS_DTYPE_I64 || dtype == IRIS_DTYPE_U64;
    double real[3];
    int64_t whole[3] = {0};
    iris_status_t status;

    if (dtype == IRIS_DTYPE_BOOL || iris_i_dtype_is_complex(dtype) ||
        iris_i_dtype_is_float8(dtype)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_arange: dtype %s; pass one of integers or "
                           "real numbers of 16 bits or more",
                           iris_dtype_name(dtype));
    }
    status = read_span(iris, span, all_whole || is_integer(dtype), real, whole);
    if (status != IRIS_OK) {
        return status;
    }
    row->start = real[0];
    row->step = real[2];
    row->whole_start = (uint64_t)whole[0];
    row->whole_step = (uint64_t)whole[2];
    request->shape.ndim = 1;
    if (is_integer(dtype) && whole[2] == 0) {
        return fail_count(iris, span, dtype, step_is_0);
    }
    return all_whole || of_64
               ? count_whole(iris, span, whole, dtype, &request->shape.sizes[0])
               : count_real(iris, span, real, dtype, &request->shape.sizes[0]);
}

static iris_status_t fill_arange(iris_t *iris, const iris_tensor_t *tensor,
                                 const void *arg, iris_stream_t *stream)
{
    struct iris_row_args args = *(const struct iris_row_args *)arg;

    args.data = tensor->data;
    args.count = tensor->shape[0];
    args.stride = args.count > 1 ? tensor->strides[0] : 1;
    return iris_i_tensor_launch(
        iris, iris_i_tensor_kernel(IRIS_TENSOR_ARANGE, tensor->dtype), tensor,
        &args, stream);
}

iris_status_t iris_arange(iris_t *iris, iris_value_t start, iris_value_t end,
                          iris_value_t step,
                          const struct iris_tensor_options *options,
                          iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {"iris_arange",
                                               IRIS_TENSOR_CALL_FIELDS};
    const struct span span = {start, end, step};
    struct iris_row_args row = {.data = NULL};
    struct iris_tensor_request request = {
        .type = &type,
        .dtype = is_whole(&span) ? IRIS_DTYPE_I64 : IRIS_DTYPE_F32,
        .fill = fill_arange,
        .arg = &row};
    iris_status_t status = iris_i_tensor_begin(iris, options, &request);

    if (status != IRIS_OK) {
        return status;
    }
    if (request.checked == IRIS_OK) {
        request.checked = plan(iris, &span, &request, &row);
    }
    return iris_i_tensor_create(iris, &request, tensor_p);
}
