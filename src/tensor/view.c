/* SPDX-License-Identifier: MIT
 *
 * Views: the same memory as another tensor. No context is needed.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>

#include "context/context.h"

#include <string.h>

static iris_status_t check_arguments(const char *call,
                                     const iris_tensor_t *tensor,
                                     const iris_tensor_t *view_p)
{
    if (view_p == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "%s: view_p is NULL; pass where to put the view",
                           call);
    }
    return iris_i_view_check(call, tensor);
}

/* Negative dimensions count from the end. */
static iris_status_t find_dim(const char *call, const iris_tensor_t *tensor,
                              const iris_tensor_t *view_p, int *dim)
{
    iris_status_t status = check_arguments(call, tensor, view_p);

    if (status != IRIS_OK) {
        return status;
    }
    if (*dim < -tensor->ndim || *dim >= tensor->ndim) {
        return iris_i_fail(
            NULL, IRIS_ERR_INVALID,
            "%s: dim %d of a tensor of %d dimensions; pass %d to "
            "%d",
            call, *dim, tensor->ndim, -tensor->ndim, tensor->ndim - 1);
    }
    *dim += *dim < 0 ? tensor->ndim : 0;
    return IRIS_OK;
}

/* A tensor without elements may have no memory to point into. */
static void move(iris_tensor_t *view, int64_t elements)
{
    int64_t bytes = elements * (int64_t)iris_dtype_size(view->dtype);

    view->data = (void *)((uintptr_t)view->data + (uintptr_t)bytes);
}

iris_status_t iris_tensor_wrap(void *data, iris_dtype_t dtype,
                               iris_shape_t shape, iris_tensor_t *view_p)
{
    static const char call[] = "iris_tensor_wrap";
    static const struct iris_named_argument argument = {NULL, call,
                                                        "the shape"};
    int64_t strides[IRIS_TENSOR_DIMS_MAX];
    iris_status_t status = iris_i_shape_check(&argument, &shape, dtype);
    iris_tensor_t view;

    if (status != IRIS_OK) {
        return status;
    }
    if (!iris_i_tensor_is_aligned(data, dtype)) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "%s: data %p is not aligned to elements of %s; pass "
                           "memory that is",
                           call, data, iris_dtype_name(dtype));
    }
    iris_i_layout_strides(&shape, IRIS_FORMAT_CONTIGUOUS, NULL, strides);
    view = iris_i_tensor_make(data, dtype, &shape, strides);
    status = check_arguments(call, &view, view_p);
    if (status == IRIS_OK) {
        *view_p = view;
    }
    return status;
}

/* Python's begin or end of a slice of `size` elements. */
static int64_t clip(int64_t index, int64_t size)
{
    index += index < 0 ? size : 0;
    return index < 0 ? 0 : index > size ? size : index;
}

iris_status_t iris_tensor_slice(const iris_tensor_t *tensor, int dim,
                                int64_t start, int64_t stop, int64_t step,
                                iris_tensor_t *view_p)
{
    iris_status_t status = find_dim("iris_tensor_slice", tensor, view_p, &dim);
    iris_tensor_t view;
    int64_t size;

    if (status != IRIS_OK) {
        return status;
    }
    if (step < 1) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "iris_tensor_slice: step %lld; pass 1 or more",
                           (long long)step);
    }
    view = *tensor;
    view.owner = NULL;
    start = clip(start, tensor->shape[dim]);
    stop = clip(stop, tensor->shape[dim]);
    size = stop <= start ? 0 : (stop - start - 1) / step + 1;
    if (size > 0) { /* otherwise the start may be behind the memory */
        move(&view, start * tensor->strides[dim]);
    }
    view.shape[dim] = size;
    view.strides[dim] = tensor->strides[dim] * (size > 1 ? step : 1);
    *view_p = view;
    return IRIS_OK;
}

iris_status_t iris_tensor_select(const iris_tensor_t *tensor, int dim,
                                 int64_t index, iris_tensor_t *view_p)
{
    iris_status_t status = find_dim("iris_tensor_select", tensor, view_p, &dim);
    iris_tensor_t view;
    int64_t size;

    if (status != IRIS_OK) {
        return status;
    }
    size = tensor->shape[dim];
    if (index < -size || index >= size) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "iris_tensor_select: index %lld of dimension %d, "
                           "which has %lld; pass a lower one",
                           (long long)index, dim, (long long)size);
    }
    view = *tensor;
    view.owner = NULL;
    move(&view, (index < 0 ? index + size : index) * tensor->strides[dim]);
    view.ndim--;
    for (int i = dim; i < view.ndim; i++) {
        view.shape[i] = view.shape[i + 1];
        view.strides[i] = view.strides[i + 1];
    }
    view.shape[view.ndim] = view.strides[view.ndim] = 0;
    *view_p = view;
    return IRIS_OK;
}

iris_status_t iris_tensor_permute(const iris_tensor_t *tensor, const int *order,
                                  iris_tensor_t *view_p)
{
    iris_status_t status =
        check_arguments("iris_tensor_permute", tensor, view_p);
    unsigned seen = 0;
    iris_tensor_t view;

    if (status != IRIS_OK) {
        return status;
    }
    view = *tensor;
    view.owner = NULL;
    for (int i = 0; i < tensor->ndim; i++) {
        int dim = order == NULL ? -tensor->ndim - 1 : order[i];

        dim += dim < 0 ? tensor->ndim : 0;
        if (dim < 0 || dim >= tensor->ndim || (seen >> dim & 1) != 0) {
            return iris_i_fail(
                NULL, IRIS_ERR_INVALID,
                "iris_tensor_permute: order is NULL, or order[%d]"
                " is no dimension of %d, or there twice; name "
                "each once",
                i, tensor->ndim);
        }
        seen |= 1u << dim;
        view.shape[i] = tensor->shape[dim];
        view.strides[i] = tensor->strides[dim];
    }
    *view_p = view;
    return IRIS_OK;
}

static iris_status_t fail_reshape(const iris_tensor_t *tensor, const char *why)
{
    return iris_i_fail(NULL, IRIS_ERR_INVALID,
                       "iris_tensor_reshape of %lld elements: %s",
                       (long long)iris_tensor_numel(tensor), why);
}

/* Replaces a size of -1 by the number of remaining elements. */
static iris_status_t complete(const iris_tensor_t *tensor, iris_shape_t *shape)
{
    int64_t numel = 1, whole = iris_tensor_numel(tensor);
    int open = -1;

    if (shape->ndim < 0 || shape->ndim > IRIS_TENSOR_DIMS_MAX) {
        return fail_reshape(tensor, "too many dimensions; pass 0 to 8");
    }
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->sizes[i] != -1) {
            if (shape->sizes[i] < 0 ||
                (shape->sizes[i] > 0 && numel > INT64_MAX / shape->sizes[i])) {
                return fail_reshape(tensor, "a size that is negative or too "
                                            "large; pass 0 or more, or one -1");
            }
            numel *= shape->sizes[i];
        } else if (open >= 0) {
            return fail_reshape(tensor, "-1 twice; leave one size open");
        } else {
            open = i;
        }
    }
    if (open >= 0 && numel > 0 && whole % numel == 0) {
        shape->sizes[open] = whole / numel;
        numel = whole;
    }
    return numel == whole && (open < 0 || shape->sizes[open] >= 0)
               ? IRIS_OK
               : fail_reshape(tensor, "the shape has another number of "
                                      "elements; pass one that has as many");
}

iris_status_t iris_tensor_reshape(const iris_tensor_t *tensor,
                                  iris_shape_t shape, iris_tensor_t *view_p)
{
    static const struct iris_named_argument argument = {
        NULL, "iris_tensor_reshape", "the shape"};
    int64_t strides[IRIS_TENSOR_DIMS_MAX];
    iris_status_t status = check_arguments(argument.call, tensor, view_p);

    if (status == IRIS_OK) {
        status = complete(tensor, &shape);
    }
    if (status == IRIS_OK) { /* sizes beside a 0 have a limit, too */
        status = iris_i_shape_check(&argument, &shape, tensor->dtype);
    }
    if (status != IRIS_OK) {
        return status;
    }
    if (!iris_i_layout_reshape(tensor, &shape, strides)) {
        return fail_reshape(tensor, "its strides allow no view of that shape; "
                                    "copy it to a contiguous tensor first");
    }
    *view_p = iris_i_tensor_make(tensor->data, tensor->dtype, &shape, strides);
    return IRIS_OK;
}
