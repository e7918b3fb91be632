/* SPDX-License-Identifier: MIT
 *
 * Tensors and their heaps: whether a tensor is symmetric, and its address on a
 * peer.
 */
#include "config.h"

#include "context/context.h"
#include "heap/heap.h"

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
