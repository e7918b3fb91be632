/* SPDX-License-Identifier: MIT
 *
 * The checks that public calls begin with, which concern the context, output
 * arguments and tensors; and the fused operation that the calling thread is in.
 *
 * Layers below `context` do not check a context again. A tensor that has passed
 * iris_i_tensor_check() has sizes, strides and offsets whose products cannot
 * overflow, so `tensor` and `ops` compute with them freely.
 */
#include "config.h"

#include "context/context.h"

#include "base/base.h"
#include "heap/heap.h"
#include <iris/constants.h>

iris_status_t iris_i_enter(const iris_t *iris, const char *call)
{
    if (iris == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "%s: the context is NULL; call iris_init first",
                           call);
    }
    if (!iris_i_is_live(iris)) {
        return iris_i_fail(NULL, IRIS_ERR_STATE,
                           "%s: the context has been finalized; no call may "
                           "follow iris_finalize",
                           call);
    }
    if (iris->pid != iris_i_process_id()) {
        return iris_i_fail(&iris->log, IRIS_ERR_STATE,
                           "%s: the context belongs to process %ld, which "
                           "forked this one; call iris_init in the child, or "
                           "fork before it",
                           call, (long)iris->pid);
    }
    return IRIS_OK;
}

iris_status_t iris_i_enter_output(const iris_t *iris, const char *call,
                                  const void *output, const char *name)
{
    iris_status_t status = iris_i_enter(iris, call);

    if (status == IRIS_OK && output == NULL) {
        status = iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                             "%s: %s is NULL; pass where to put the result",
                             call, name);
    }
    return status;
}

/* ---- Tensors ---- */

/* Half of the address space, so that a sum plus one more step cannot
 * overflow. */
#define SPAN_MAX (PTRDIFF_MAX / 2)

iris_status_t iris_i_shape_check(const struct iris_named_argument *argument,
                                 const iris_shape_t *shape, iris_dtype_t dtype)
{
    size_t bytes = iris_dtype_size(dtype);
    int64_t most = bytes == 0 ? 0 : SPAN_MAX / (int64_t)bytes;

    if (bytes == 0) {
        return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                           "%s: %s has dtype %d, which does not exist; pass an "
                           "iris_dtype_t",
                           argument->call, argument->name, (int)dtype);
    }
    if (shape->ndim < 0 || shape->ndim > IRIS_TENSOR_DIMS_MAX) {
        return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                           "%s: %s has %d dimensions; pass 0 to %d",
                           argument->call, argument->name, shape->ndim,
                           IRIS_TENSOR_DIMS_MAX);
    }
    for (int i = 0; i < shape->ndim; i++) {
        int64_t size = shape->sizes[i];

        if (size < 0) {
            return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                               "%s: dimension %d of %s has size %lld; pass 0 "
                               "or more",
                               argument->call, i, argument->name,
                               (long long)size);
        }
        if (size > most) {
            return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                               "%s: with dimension %d, of size %lld, %s has "
                               "more elements of %zu bytes than memory can "
                               "hold; pass less",
                               argument->call, i, (long long)size,
                               argument->name, bytes);
        }
        most /= size > 1 ? size : 1;
    }
    return IRIS_OK;
}

int iris_i_tensor_is_aligned(const void *data, iris_dtype_t dtype)
{
    size_t bytes = iris_dtype_size(dtype);

    return (uintptr_t)data % (bytes < 8 ? bytes : 8) == 0;
}

/* Distances, in bytes, from the first element to the lowest and to the highest
 * one. */
struct reach {
    int64_t before;
    int64_t behind;
};

/* Whether the reach is at most SPAN_MAX. Every dimension counts, even if
 * another one is empty: views multiply its stride. */
static int find_reach(const iris_tensor_t *tensor, struct reach *reach_p)
{
    int64_t bytes = (int64_t)iris_dtype_size(tensor->dtype);
    int64_t left = SPAN_MAX / bytes - 1;
    struct reach reach = {0, 0};

    for (int i = 0; i < tensor->ndim; i++) {
        int64_t stride = tensor->strides[i], steps = tensor->shape[i] - 1;

        if (steps < 1 || stride == 0) {
            continue;
        }
        if (stride > left / steps || stride < -(left / steps)) {
            return 0;
        }
        left -= steps * (stride < 0 ? -stride : stride);
        reach.before += stride < 0 ? -(steps * stride) : 0;
        reach.behind += stride > 0 ? steps * stride : 0;
    }
    reach_p->before = reach.before * bytes;
    reach_p->behind = (reach.behind + 1) * bytes;
    return 1;
}

static int has_elements(const iris_tensor_t *tensor)
{
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] == 0) {
            return 0;
        }
    }
    return 1;
}

static iris_status_t check_data(const struct iris_named_argument *argument,
                                const iris_tensor_t *tensor,
                                const struct reach *reach)
{
    uintptr_t data = (uintptr_t)tensor->data;

    if (tensor->data == NULL) {
        return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                           "%s: %s has elements, and its data is NULL; pass a "
                           "tensor with memory",
                           argument->call, argument->name);
    }
    if (!iris_i_tensor_is_aligned(tensor->data, tensor->dtype)) {
        return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                           "%s: the data of %s, at %p, is not aligned to "
                           "elements of %s; pass memory that is aligned",
                           argument->call, argument->name, tensor->data,
                           iris_dtype_name(tensor->dtype));
    }
    if (data < (uintptr_t)reach->before ||
        data > UINTPTR_MAX - (uintptr_t)reach->behind) {
        return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                           "%s: the elements of %s, at %p, span %lld bytes "
                           "before and %lld behind it, beyond the address "
                           "space; check shape and strides",
                           argument->call, argument->name, tensor->data,
                           (long long)reach->before, (long long)reach->behind);
    }
    return IRIS_OK;
}

iris_status_t iris_i_tensor_check(const struct iris_named_argument *argument,
                                  const iris_tensor_t *tensor)
{
    iris_shape_t shape;
    struct reach reach;
    iris_status_t status;

    if (tensor == NULL) {
        return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                           "%s: %s is NULL; pass a tensor", argument->call,
                           argument->name);
    }
    shape.ndim = tensor->ndim;
    for (int i = 0; i < IRIS_TENSOR_DIMS_MAX; i++) {
        shape.sizes[i] = tensor->shape[i];
    }
    status = iris_i_shape_check(argument, &shape, tensor->dtype);
    if (status != IRIS_OK) {
        return status;
    }
    if (!find_reach(tensor, &reach)) {
        return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                           "%s: with its strides, the elements of %s span more "
                           "than the address space; check shape and strides",
                           argument->call, argument->name);
    }
    return has_elements(tensor) ? check_data(argument, tensor, &reach)
                                : IRIS_OK;
}

struct iris_tensor_extent iris_i_tensor_extent(const iris_tensor_t *tensor)
{
    struct iris_tensor_extent extent = {tensor->data, 0};
    struct reach reach;

    if (has_elements(tensor) && find_reach(tensor, &reach)) {
        extent.start -= reach.before;
        extent.bytes = (size_t)(reach.before + reach.behind);
    }
    return extent;
}

iris_status_t
iris_i_tensor_check_access(const struct iris_heap *heap,
                           const struct iris_named_argument *argument,
                           const iris_tensor_t *tensor, int access)
{
    iris_status_t status = iris_i_tensor_check(argument, tensor);
    struct iris_heap_range range = {.call = argument->call,
                                    .name = argument->name,
                                    .writes = access & 1,
                                    .by_kernel = access & IRIS_BY_KERNEL};
    struct iris_tensor_extent extent;

    if (status != IRIS_OK) {
        return status;
    }
    extent = iris_i_tensor_extent(tensor);
    range.ptr = extent.start;
    range.bytes = extent.bytes;
    return extent.bytes == 0 ? IRIS_OK : iris_i_heap_check_range(heap, &range);
}

/* ---- Fused operations ---- */

/* A fused operation calls public functions for the collectives that are part of
 * it. They have no argument for the operation. */
static _Thread_local const struct iris_fused *fused;

void iris_i_fused_set(const struct iris_fused *call)
{
    fused = call;
}

const struct iris_fused *iris_i_fused(void)
{
    return fused;
}
