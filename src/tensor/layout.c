/* SPDX-License-Identifier: MIT
 *
 * Shapes, strides and views.
 *
 * A tensor is a plain struct of its caller: nothing here has state. A tensor is
 * checked before its strides are used, so that no sum or product below can
 * overflow. Views have no owner.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>

#include "context/context.h"
#include "heap/heap.h"

#include <string.h>

/* ---------------------------------------------------------------------------
 * Shapes and strides: sizes, the strides of each format, and reshaping.
 */

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

/* iris_i_tensor_check() of the argument `tensor` of a call without a context.
 */
static iris_status_t check_view(const char *call, const iris_tensor_t *tensor)
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
    if (check_view("iris_tensor_is_contiguous", tensor) != IRIS_OK) {
        return 0;
    }
    return iris_tensor_numel(tensor) == 0 ||
           is_dense(tensor, order_of(tensor->ndim, format));
}

/* ---- Reshaping ---- */

/* Gives strides, from `stride` up, to the new dimensions from *next_p down, as
 * long as they have at most `numel` elements. Returns 0 if they do not have
 * exactly `numel`. */
static int split_dims(const iris_shape_t *shape, int *next_p, int64_t numel,
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
            if (!split_dims(shape, &next, numel, stride, strides_p)) {
                return 0;
            }
            numel = 1;
        }
        stride = numel == 1 ? tensor->strides[i] : stride;
        numel *= tensor->shape[i];
    }
    if (!split_dims(shape, &next, numel, stride, strides_p)) {
        return 0;
    }
    return next < 0;
}

/* ---------------------------------------------------------------------------
 * Views: the same memory as another tensor. No context is needed.
 */

static iris_status_t check_arguments(const char *call,
                                     const iris_tensor_t *tensor,
                                     const iris_tensor_t *view_p)
{
    if (view_p == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "%s: view_p is NULL; pass where to put the view",
                           call);
    }
    return check_view(call, tensor);
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
static void move_view(iris_tensor_t *view, int64_t elements)
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
static int64_t clip_index(int64_t index, int64_t size)
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
    start = clip_index(start, tensor->shape[dim]);
    stop = clip_index(stop, tensor->shape[dim]);
    size = stop <= start ? 0 : (stop - start - 1) / step + 1;
    if (size > 0) { /* otherwise the start may be behind the memory */
        move_view(&view, start * tensor->strides[dim]);
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
    move_view(&view, (index < 0 ? index + size : index) * tensor->strides[dim]);
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
static iris_status_t infer_size(const iris_tensor_t *tensor,
                                iris_shape_t *shape)
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
        status = infer_size(tensor, &shape);
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

/* ---------------------------------------------------------------------------
 * Tensors and their heaps: whether a tensor is symmetric, and its address on a
 * peer.
 */

int iris_tensor_is_symmetric(const iris_t *iris, const iris_tensor_t *tensor)
{
    static const char call[] = "iris_tensor_is_symmetric";
    struct iris_named_argument argument = {NULL, call, "tensor"};
    struct iris_tensor_extent extent;

    if (iris_i_enter(iris, call) != IRIS_OK) {
        return 0;
    }
    argument.log = iris_i_log(iris);
    if (iris_i_tensor_check(&argument, tensor) != IRIS_OK) {
        return 0;
    }
    extent = iris_i_tensor_extent(tensor);
    return extent.bytes == 0 ||
           iris_i_heap_bytes_from(iris_i_heap(iris), extent.start) >=
               extent.bytes;
}

/* Checks the tensor before the rank, as upstream does. A tensor without
 * elements may have any address. */
iris_status_t iris_tensor_as_remote(const iris_t *iris,
                                    const iris_tensor_t *tensor, int rank,
                                    iris_tensor_t *view_p)
{
    static const char call[] = "iris_tensor_as_remote";
    struct iris_named_argument argument = {NULL, call, "tensor"};
    iris_status_t status = iris_i_enter_output(iris, call, view_p, "view_p");
    iris_tensor_t view;
    void *remote;

    if (status != IRIS_OK) {
        return status;
    }
    argument.log = iris_i_log(iris);
    status = iris_i_tensor_check(&argument, tensor);
    if (status != IRIS_OK) {
        return status;
    }
    if (!iris_tensor_is_symmetric(iris, tensor)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the tensor, at %p, is not on the symmetric "
                           "heap; pass one that a creation call made",
                           call, tensor->data);
    }
    view = *tensor;
    view.owner = NULL;
    if (iris_tensor_numel(tensor) == 0 &&
        iris_i_heap_bytes_from(iris_i_heap(iris), tensor->data) == 0) {
        *view_p = view;
        return IRIS_OK;
    }
    status = iris_i_heap_translate(iris_i_heap(iris), call, tensor->data, rank,
                                   &remote);
    if (status == IRIS_OK) {
        view.data = remote;
        *view_p = view;
    }
    return status;
}
