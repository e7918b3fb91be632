/* SPDX-License-Identifier: MIT
 *
 * iris_linspace(): the ends and the step in the arithmetic of the dtype, as in
 * PyTorch. A complex row is two rows of real numbers.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>
#include <iris/device/core/half.h>
#include <iris/device/kernels/fill_args.h>

#include "base/fp_env.h"
#include "context/context.h"
#include "tensor/kernels.h"

#include <string.h>

static const char call[] = "iris_linspace";

struct rows {
    struct iris_row_args row[2];
    int count;
    unsigned char start[16]; /* the element */
};

/* (end - start) / (count - 1), each operation rounded to the dtype. */
static double step_of(double start, double end, int64_t count,
                      iris_dtype_t dtype)
{
    float distance = (float)end - (float)start, steps = (float)(count - 1);

    switch (dtype) {
    case IRIS_DTYPE_F16:
        distance = iris_f16_to_f32(iris_f16_from_f32(distance));
        steps = iris_f16_to_f32(iris_f16_from_f32(steps));
        return iris_f16_to_f32(iris_f16_from_f32(distance / steps));
    case IRIS_DTYPE_BF16:
        distance = iris_bf16_to_f32(iris_bf16_from_f32(distance));
        steps = iris_bf16_to_f32(iris_bf16_from_f32(steps));
        return iris_bf16_to_f32(iris_bf16_from_f32(distance / steps));
    case IRIS_DTYPE_F32:
    case IRIS_DTYPE_COMPLEX64:
        return distance / steps;
    default:
        return (end - start) / (double)(count - 1);
    }
}

static void plan_row(const unsigned char *start, const unsigned char *end,
                     int part, const struct iris_tensor_request *request,
                     struct iris_row_args *row)
{
    int64_t count = request->shape.sizes[0];
    uint64_t fp;

    row->start = iris_i_element_part(start, request->dtype, part);
    row->end = iris_i_element_part(end, request->dtype, part);
    fp = iris_i_fp_enter();
    row->step =
        count < 2 ? 0 : step_of(row->start, row->end, count, request->dtype);
    iris_i_fp_leave(fp);
}

static iris_status_t plan(const iris_t *iris, iris_value_t start,
                          iris_value_t end,
                          const struct iris_tensor_request *request,
                          struct rows *rows)
{
    const struct iris_argument first = {iris_i_log(iris), call, "start", start};
    const struct iris_argument last = {iris_i_log(iris), call, "end", end};
    unsigned char last_element[16];
    iris_dtype_t dtype = request->dtype;
    iris_status_t status;

    if (request->shape.sizes[0] < 0) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: steps is %lld; pass 0 or more", call,
                           (long long)request->shape.sizes[0]);
    }
    if (iris_i_dtype_is_float8(dtype)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: dtype %s; pass one of 16 bits or more", call,
                           iris_dtype_name(dtype));
    }
    rows->count = 1 + iris_i_dtype_is_complex(dtype);
    if (dtype == IRIS_DTYPE_BOOL ||
        (rows->count == 1 && (start.kind == IRIS_VALUE_COMPLEX ||
                              end.kind == IRIS_VALUE_COMPLEX))) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: dtype %s from %s numbers; pass %s", call,
                           iris_dtype_name(dtype),
                           dtype == IRIS_DTYPE_BOOL ? "any" : "complex",
                           dtype == IRIS_DTYPE_BOOL ? "one of numbers"
                                                    : "a complex dtype");
    }
    status = iris_i_value_convert(&first, dtype, rows->start);
    if (status == IRIS_OK) {
        status = iris_i_value_convert(&last, dtype, last_element);
    }
    for (int i = 0; i < rows->count && status == IRIS_OK; i++) {
        plan_row(rows->start, last_element, i, request, &rows->row[i]);
    }
    return status;
}

static iris_status_t fill_linspace(iris_t *iris, const iris_tensor_t *tensor,
                                   const void *arg, iris_stream_t *stream)
{
    const struct rows *rows = arg;
    size_t bytes = iris_dtype_size(tensor->dtype) / (size_t)rows->count;
    iris_status_t status = IRIS_OK;

    /* Uses the value directly: f64 does not hold every integer. */
    if (tensor->shape[0] == 1) {
        return iris_i_tensor_fill(iris, tensor, rows->start, stream);
    }
    for (int i = 0; i < rows->count && status == IRIS_OK; i++) {
        struct iris_row_args args = rows->row[i];

        args.data = (char *)tensor->data + (size_t)i * bytes;
        args.count = tensor->shape[0];
        args.stride = args.count > 1 ? tensor->strides[0] : 1;
        args.stride *= rows->count;
        status = iris_i_tensor_launch(
            iris, iris_i_tensor_kernel(IRIS_TENSOR_LINSPACE, tensor->dtype),
            tensor, &args, stream);
    }
    return status;
}

iris_status_t iris_linspace(iris_t *iris, iris_value_t start, iris_value_t end,
                            int64_t steps,
                            const struct iris_tensor_options *options,
                            iris_tensor_t *tensor_p)
{
    static const struct iris_call_type type = {call, IRIS_TENSOR_CALL_FIELDS};
    struct rows rows = {.count = 0};
    struct iris_tensor_request request = {
        .type = &type,
        .shape = {.ndim = 1, .sizes = {steps}},
        .dtype =
            start.kind == IRIS_VALUE_COMPLEX || end.kind == IRIS_VALUE_COMPLEX
                ? IRIS_DTYPE_COMPLEX64
                : IRIS_DTYPE_F32,
        .fill = fill_linspace,
        .arg = &rows};
    iris_status_t status = iris_i_tensor_begin(iris, options, &request);

    if (status != IRIS_OK) {
        return status;
    }
    if (request.checked == IRIS_OK) {
        request.checked = plan(iris, start, end, &request, &rows);
    }
    return iris_i_tensor_create(iris, &request, tensor_p);
}
