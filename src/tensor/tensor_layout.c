/* SPDX-License-Identifier: MIT
 *
 * Shapes and strides: sizes, the strides of each format, and reshaping.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>

#include "context/context.h"

#include <string.h>

int64_t iris_i_shape_numel(const iris_shape_t *shape)
{
    int64_t numel = 1;

    for (int i = 0; i < shape->ndim; i++) {
        numel *= shape->sizes[i];
    }
    return numel;
}

iris_shape_t iris_i_tensor_shape(const iris_tensor_t *tensor)
{
    iris_shape_t shape = {.ndim = tensor->ndim};

    memcpy(shape.sizes, tensor->shape, sizeof shape.sizes);
    return shape;
}

iris_tensor_t iris_i_tensor_make(void *data, iris_dtype_t dtype,
                                 const iris_shape_t *shape,
                                 const int64_t *strides)
{
    iris_tensor_t tensor = {.data = data, .dtype = dtype, .ndim = shape->ndim};

    for (int i = 0; i < shape->ndim; i++) {
        tensor.shape[i] = shape->sizes[i];
        tensor.strides[i] = strides[i];
    }
    return tensor;
}

/* Uses the shape alone: `data` and strides may be unset. */
int64_t iris_tensor_numel(const iris_tensor_t *tensor)
{
    static const struct iris_named_argument argument = {
        NULL, "iris_tensor_numel", "tensor"};
    iris_shape_t shape;

    if (tensor == NULL) {
        (void)iris_i_tensor_check(&argument, tensor);
        return 0;
    }
    shape = iris_i_tensor_shape(tensor);
    return iris_i_shape_check(&argument, &shape, tensor->dtype) == IRIS_OK
               ? iris_i_shape_numel(&shape)
               : 0;
}

iris_status_t iris_i_view_check(const char *call, const iris_tensor_t *tensor)
{
    const struct iris_named_argument argument = {NULL, call, "tensor"};

    return iris_i_tensor_check(&argument, tensor);
}

/* ---- Formats ---- */

/* Contiguous strides for dimensions in this order, outermost first. A dimension
 * of size 0 counts as size 1, as in PyTorch. */
static void dense_strides(const int64_t *sizes, const int *order, int ndim,
                          int64_t *strides_p)
{
    int64_t stride = 1;

    for (int i = ndim - 1; i >= 0; i--) {
        strides_p[order[i]] = stride;
        stride *= sizes[order[i]] > 1 ? sizes[order[i]] : 1;
    }
}

static const int natural[] = {0, 1, 2, 3, 4, 5, 6, 7};

/* The order of the dimensions in memory, outermost first. */
static const int *order_of(int ndim, iris_memory_format_t format)
{
    static const int channels_last[] = {0, 2, 3, 1};
    static const int channels_last_3d[] = {0, 2, 3, 4, 1};

    if (format == IRIS_FORMAT_CHANNELS_LAST && ndim == 4) {
        return channels_last;
    }
    return format == IRIS_FORMAT_CHANNELS_LAST_3D && ndim == 5
               ? channels_last_3d
               : natural;
}

/* Sorts dimensions by falling strides; stable. */
static void order_by_strides(const iris_tensor_t *tensor, int *order_p)
{
    for (int i = 0; i < tensor->ndim; i++) {
        int at = i;

        while (at > 0 &&
               tensor->strides[order_p[at - 1]] < tensor->strides[i]) {
            order_p[at] = order_p[at - 1];
            at--;
        }
        order_p[at] = i;
    }
}

/* Whether the elements fill a range of memory without gaps or overlaps. */
static int is_dense(const iris_tensor_t *tensor, const int *order)
{
    int64_t stride = 1;

    for (int i = tensor->ndim - 1; i >= 0; i--) {
        int64_t size = tensor->shape[order[i]];

        if (size == 0) {
            return 1;
        }
        if (size > 1 && tensor->strides[order[i]] != stride) {
            return 0;
        }
        stride *= size;
    }
    return 1;
}

void iris_i_layout_strides(const iris_shape_t *shape,
                           iris_memory_format_t format,
                           const iris_tensor_t *like, int64_t *strides_p)
{
    const int *order = order_of(shape->ndim, format);
    int found[IRIS_TENSOR_DIMS_MAX];

    if (format == IRIS_FORMAT_PRESERVE && like != NULL) {
        order_by_strides(like, found);
        if (is_dense(like, found)) {
            memcpy(strides_p, like->strides, sizeof like->strides);
            return;
        }
        order = found;
    }
    dense_strides(shape->sizes, order, shape->ndim, strides_p);
}

int iris_tensor_is_contiguous(const iris_tensor_t *tensor,
                              iris_memory_format_t format)
{
    if (iris_i_view_check("iris_tensor_is_contiguous", tensor) != IRIS_OK) {
        return 0;
    }
    return iris_tensor_numel(tensor) == 0 ||
           is_dense(tensor, order_of(tensor->ndim, format));
}

/* ---- Reshaping ---- */

/* Gives strides, from `stride` up, to the new dimensions from *next_p down, as
 * long as they have at most `numel` elements. Returns 0 if they do not have
 * exactly `numel`. */
static int split(const iris_shape_t *shape, int *next_p, int64_t numel,
                 int64_t stride, int64_t *strides_p)
{
    int64_t count = 1;

    while (*next_p >= 0 && (count < numel || shape->sizes[*next_p] == 1)) {
        strides_p[*next_p] = stride * count;
        count *= shape->sizes[*next_p];
        *next_p -= 1;
    }
    return count == numel;
}

int iris_i_layout_reshape(const iris_tensor_t *tensor,
                          const iris_shape_t *shape, int64_t *strides_p)
{
    int next = shape->ndim - 1;
    int64_t numel = 1, stride = 1;

    if (iris_tensor_numel(tensor) == 0) {
        dense_strides(shape->sizes, natural, shape->ndim, strides_p);
        return 1;
    }
    /* Runs of dimensions that are contiguous in each other, innermost first. */
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] == 1) {
            continue;
        }
        if (numel > 1 && tensor->strides[i] != stride * numel) {
            if (!split(shape, &next, numel, stride, strides_p)) {
                return 0;
            }
            numel = 1;
        }
        stride = numel == 1 ? tensor->strides[i] : stride;
        numel *= tensor->shape[i];
    }
    if (!split(shape, &next, numel, stride, strides_p)) {
        return 0;
    }
    return next < 0;
}
