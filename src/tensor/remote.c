/* SPDX-License-Identifier: MIT
 *
 * Tensors and the heaps they are on: is one symmetric, where a peer keeps it,
 * and how memory of the program's own gets there.
 */
#include "config.h"

#include "context/enter.h"
#include "tensor/tensor.h"

int iris_tensor_is_symmetric(const iris_t *iris, const iris_tensor_t *tensor)
{
    static const char call[] = "iris_tensor_is_symmetric";
    struct iris_named_argument argument = {NULL, call, "tensor"};
    struct iris_tensor_extent extent;

    if (iris_i_enter(iris, call) != IRIS_OK) {
        return 0;
    }
    argument.log = &iris->log;
    if (iris_i_tensor_check(&argument, tensor) != IRIS_OK) {
        return 0;
    }
    extent = iris_i_tensor_extent(tensor);
    return extent.bytes == 0 ||
           iris_i_heap_bytes_from(&iris->heap, extent.start) >= extent.bytes;
}

/* What is no tensor of the heap comes before what is no rank, as upstream. A
 * tensor without elements may have its address anywhere. */
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
    argument.log = &iris->log;
    status = iris_i_tensor_check(&argument, tensor);
    if (status != IRIS_OK) {
        return status;
    }
    if (!iris_tensor_is_symmetric(iris, tensor)) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "%s: the tensor, at %p, is not on the symmetric "
                           "heap; pass one that a creation call made",
                           call, tensor->data);
    }
    view = *tensor;
    view.owner = NULL;
    if (iris_tensor_numel(tensor) == 0 &&
        iris_i_heap_bytes_from(&iris->heap, tensor->data) == 0) {
        *view_p = view;
        return IRIS_OK;
    }
    status =
        iris_i_heap_translate(&iris->heap, call, tensor->data, rank, &remote);
    if (status == IRIS_OK) {
        view.data = remote;
        *view_p = view;
    }
    return status;
}

/* Tensors without elements have no memory to share, but they get a place, as
 * new ones do. */
static iris_status_t share_nothing(iris_t *iris,
                                   const struct iris_call_type *type,
                                   const iris_tensor_t *tensor,
                                   iris_tensor_t *symmetric_p, int *shared_p)
{
    struct iris_tensor_request request;
    iris_status_t status = iris_i_tensor_begin(iris, type, NULL, &request);

    request.like = tensor;
    request.shape = iris_i_tensor_shape(tensor);
    request.dtype = tensor->dtype;
    status = status == IRIS_OK
                 ? iris_i_tensor_create(iris, &request, symmetric_p)
                 : status;
    if (status == IRIS_OK && shared_p != NULL) {
        *shared_p = 0;
    }
    return status;
}

iris_status_t iris_i_tensor_share(iris_t *iris,
                                  const struct iris_tensor_share *what,
                                  iris_tensor_t *symmetric_p, int *shared_p)
{
    const iris_tensor_t *tensor = what->tensor;
    struct iris_heap_request request = {.type = what->type,
                                        .alignment = IRIS_ALIGNMENT,
                                        .checked = what->checked};
    const struct iris_named_argument argument = {&iris->log, what->type->name,
                                                 "tensor"};
    struct iris_tensor_extent extent = {NULL, 1}; /* of a malformed tensor */
    iris_status_t status;
    iris_tensor_t result;
    void *symmetric;

    if (request.checked == IRIS_OK) {
        request.checked =
            iris_i_tensor_check_access(&iris->heap, &argument, tensor, 0);
    }
    if (request.checked == IRIS_OK) {
        extent = iris_i_tensor_extent(tensor);
    }
    if (extent.bytes == 0) {
        return share_nothing(iris, what->type, tensor, symmetric_p, shared_p);
    }
    request.bytes = extent.bytes;
    status = iris_i_external_share(&iris->heap, &request, extent.start,
                                   symmetric_p == NULL ? NULL : &symmetric,
                                   shared_p);
    if (status == IRIS_OK) {
        result = *tensor;
        result.owner = symmetric;
        result.data = (char *)symmetric + ((char *)tensor->data - extent.start);
        *symmetric_p = result;
    }
    return status;
}

iris_status_t iris_tensor_as_symmetric(iris_t *iris,
                                       const iris_tensor_t *tensor,
                                       iris_tensor_t *symmetric_p,
                                       int *shared_p)
{
    static const struct iris_call_type type = {"iris_tensor_as_symmetric",
                                               IRIS_TENSOR_CALL_FIELDS};
    const struct iris_tensor_share what = {.type = &type, .tensor = tensor};
    iris_status_t status = iris_i_enter(iris, type.name);

    return status == IRIS_OK
               ? iris_i_tensor_share(iris, &what, symmetric_p, shared_p)
               : status;
}
