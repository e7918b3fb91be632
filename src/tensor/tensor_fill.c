/* SPDX-License-Identifier: MIT
 *
 * Fills and copies of tensors with any strides: contiguous parts as ranges,
 * other parts by a kernel that computes each element's address.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>
#include <iris/device/kernels/fill_args.h>

#include "context/context.h"
#include "queue/kernels.h"
#include "queue/queue.h"
#include "tensor/kernels.h"

#include <string.h>

#define BLOCK 256           /* lanes of a workgroup */
#define WG_BYTES (16 << 10) /* bytes that justify a workgroup */
#define WGS_PER_CU 8

iris_status_t iris_i_tensor_launch(iris_t *iris,
                                   const struct iris_kernel *kernel,
                                   const iris_tensor_t *tensor,
                                   const void *args, iris_stream_t *stream)
{
    size_t grid = iris_tensor_bytes(tensor) / WG_BYTES + 1;
    size_t most = (size_t)iris_i_device(iris)->num_cus * WGS_PER_CU;
    struct iris_launch_request request = {
        .kernel = kernel,
        .grid = (unsigned)(grid < most ? grid : most),
        .block = BLOCK,
        .args = args,
        .args_bytes = kernel->args_bytes,
        .own = true};

    return iris_i_launch(iris_i_queue(iris), &request, stream);
}

static iris_status_t launch(iris_t *iris, enum iris_tensor_op op,
                            const iris_tensor_t *tensor, const void *args,
                            iris_stream_t *stream)
{
    return iris_i_tensor_launch(iris, iris_i_tensor_kernel(op, tensor->dtype),
                                tensor, args, stream);
}

/* ---- Dimensions of one or two tensors, joined as far as possible ---- */

struct nest {
    struct iris_d_shape shape;
    int64_t strides[2][IRIS_D_DIMS_MAX];
};

/* Inserts a dimension in the order of the first tensor's strides, the largest
 * first; after others with the same stride. */
static void insert(struct nest *nest, int64_t size, int64_t stride,
                   int64_t other)
{
    int at = nest->shape.ndim++;

    while (at > 0 && nest->strides[0][at - 1] < stride) {
        nest->shape.sizes[at] = nest->shape.sizes[at - 1];
        nest->strides[0][at] = nest->strides[0][at - 1];
        nest->strides[1][at] = nest->strides[1][at - 1];
        at--;
    }
    nest->shape.sizes[at] = size;
    nest->strides[0][at] = stride;
    nest->strides[1][at] = other;
}

static int joins(const struct nest *nest, int at)
{
    int64_t size = nest->shape.sizes[at];

    return nest->strides[0][at - 1] == nest->strides[0][at] * size &&
           nest->strides[1][at - 1] == nest->strides[1][at] * size;
}

/* Joins dimensions that are contiguous in both tensors. */
static void join(struct nest *nest)
{
    int last = 0;

    for (int i = 1; i < nest->shape.ndim; i++) {
        nest->shape.sizes[last + 1] = nest->shape.sizes[i];
        nest->strides[0][last + 1] = nest->strides[0][i];
        nest->strides[1][last + 1] = nest->strides[1][i];
        if (joins(nest, last + 1)) {
            nest->shape.sizes[last + 1] *= nest->shape.sizes[last];
        } else {
            last++;
            continue;
        }
        nest->shape.sizes[last] = nest->shape.sizes[last + 1];
        nest->strides[0][last] = nest->strides[0][last + 1];
        nest->strides[1][last] = nest->strides[1][last + 1];
    }
    nest->shape.ndim = nest->shape.ndim == 0 ? 0 : last + 1;
}

/* A tensor without dimensions becomes one dimension of size 1. */
static void nest_of(const iris_tensor_t *tensor, const iris_tensor_t *other,
                    struct nest *nest_p)
{
    memset(nest_p, 0, sizeof *nest_p);
    nest_p->shape.count = (uint64_t)iris_tensor_numel(tensor);
    nest_p->shape.width = (int32_t)iris_dtype_size(tensor->dtype);
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] != 1) {
            insert(nest_p, tensor->shape[i], tensor->strides[i],
                   other->strides[i]);
        }
    }
    join(nest_p);
    if (nest_p->shape.ndim == 0) {
        insert(nest_p, 1, 1, 1);
    }
}

static int is_range(const struct nest *nest)
{
    return nest->shape.ndim == 1 && nest->strides[0][0] == 1 &&
           nest->strides[1][0] == 1;
}

/* ---- Fills ---- */

/* Repeats the first `width` bytes up to 16. */
static void repeat(const void *element, size_t width, uint64_t *pattern_p)
{
    char *bytes = (char *)pattern_p;

    for (size_t i = 0; i < 2 * sizeof *pattern_p; i += width) {
        memcpy(bytes + i, element, width);
    }
}

static iris_status_t fill_strided(iris_t *iris, const iris_tensor_t *tensor,
                                  const struct nest *nest,
                                  const uint64_t *element,
                                  iris_stream_t *stream)
{
    struct iris_fill_strided_args args = {.data = tensor->data,
                                          .shape = nest->shape,
                                          .element = {element[0], element[1]}};

    memcpy(args.strides, nest->strides[0], sizeof args.strides);
    return launch(iris, IRIS_TENSOR_FILL_STRIDED, tensor, &args, stream);
}

iris_status_t iris_i_tensor_fill(iris_t *iris, const iris_tensor_t *tensor,
                                 const void *element, iris_stream_t *stream)
{
    struct nest nest;
    uint64_t pattern[2];

    nest_of(tensor, tensor, &nest);
    repeat(element, (size_t)nest.shape.width, pattern);
    if (is_range(&nest)) {
        struct iris_fill_args args = {
            tensor->data, iris_tensor_bytes(tensor), {pattern[0], pattern[1]}};

        return launch(iris, IRIS_TENSOR_FILL, tensor, &args, stream);
    }
    return fill_strided(iris, tensor, &nest, pattern, stream);
}

/* ---- Copies ---- */

static iris_status_t check_copy(const iris_t *iris, const iris_tensor_t *to,
                                const iris_tensor_t *from, int by_kernel)
{
    static const char call[] = "iris_tensor_copy";
    const struct iris_named_argument to_argument = {iris_i_log(iris), call,
                                                    "to"};
    const struct iris_named_argument from_argument = {iris_i_log(iris), call,
                                                      "from"};
    iris_status_t status = iris_i_tensor_check_access(
        iris_i_heap(iris), &to_argument, to, by_kernel + 1);
    int same;

    if (status == IRIS_OK) {
        status = iris_i_tensor_check_access(iris_i_heap(iris), &from_argument,
                                            from, by_kernel);
    }
    if (status != IRIS_OK) {
        return status;
    }
    same = to->dtype == from->dtype && to->ndim == from->ndim;
    for (int i = 0; same && i < to->ndim; i++) {
        same = to->shape[i] == from->shape[i];
    }
    return same ? IRIS_OK
                : iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                              "%s: the tensors differ in dtype or shape; pass "
                              "two that agree",
                              call);
}

static iris_status_t copy_strided(iris_t *iris, const iris_tensor_t *to,
                                  const iris_tensor_t *from,
                                  const struct nest *nest,
                                  iris_stream_t *stream)
{
    struct iris_copy_strided_args args = {
        .to = to->data, .from = from->data, .shape = nest->shape};

    memcpy(args.to_strides, nest->strides[0], sizeof args.to_strides);
    memcpy(args.from_strides, nest->strides[1], sizeof args.from_strides);
    return launch(iris, IRIS_TENSOR_COPY_STRIDED, to, &args, stream);
}

iris_status_t iris_tensor_copy(iris_t *iris, const iris_tensor_t *to,
                               const iris_tensor_t *from, iris_stream_t *stream)
{
    iris_status_t status = iris_i_enter(iris, "iris_tensor_copy");
    struct nest nest;

    if (status == IRIS_OK) {
        status = check_copy(iris, to, from, 0);
    }
    if (status != IRIS_OK || iris_tensor_numel(to) == 0) {
        return status;
    }
    nest_of(to, from, &nest);
    if (is_range(&nest)) {
        return iris_i_copy(iris_i_queue(iris), to->data, from->data,
                           iris_tensor_bytes(to), stream);
    }
    status = check_copy(iris, to, from, IRIS_BY_KERNEL);
    return status == IRIS_OK ? copy_strided(iris, to, from, &nest, stream)
                             : status;
}
