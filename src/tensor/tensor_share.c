/* SPDX-License-Identifier: MIT
 *
 * Makes memory of the program a tensor on the heap.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>

#include "context/context.h"
#include "heap/heap.h"

/* Tensors without elements have no memory to share, but get an address, as new
 * ones do. */
static iris_status_t share_nothing(iris_t *iris,
                                   const struct iris_call_type *type,
                                   const iris_tensor_t *tensor,
                                   iris_tensor_t *symmetric_p, int *shared_p)
{
    struct iris_tensor_request request = {.type = type,
                                          .shape = iris_i_tensor_shape(tensor),
                                          .dtype = tensor->dtype,
                                          .like = tensor};
    iris_status_t status = iris_i_tensor_begin(iris, NULL, &request);

    if (status == IRIS_OK) {
        status = iris_i_tensor_create(iris, &request, symmetric_p);
    }
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
    const struct iris_named_argument argument = {iris_i_log(iris),
                                                 what->type->name, "tensor"};
    struct iris_tensor_extent extent = {NULL, 1}; /* for a malformed tensor */
    iris_status_t status;
    iris_tensor_t result;
    void *symmetric;

    if (request.checked == IRIS_OK) {
        request.checked =
            iris_i_tensor_check_access(iris_i_heap(iris), &argument, tensor, 0);
    }
    if (request.checked == IRIS_OK) {
        extent = iris_i_tensor_extent(tensor);
    }
    if (extent.bytes == 0) {
        return share_nothing(iris, what->type, tensor, symmetric_p, shared_p);
    }
    request.bytes = extent.bytes;
    status = iris_i_external_share(iris_i_heap(iris), &request, extent.start,
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
