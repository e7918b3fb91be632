/* SPDX-License-Identifier: MIT
 *
 * Makes memory of the program a tensor on the heap.
 */
#ifndef IRIS_SRC_TENSOR_TENSOR_SHARE_H
#define IRIS_SRC_TENSOR_TENSOR_SHARE_H

#include <iris/tensor.h>

#include "context/context_type.h"

/* iris_tensor_as_symmetric(), in a call of another name with the same fields.
 * `checked`: the status of the caller's own checks; if it is an error, the
 * tensor is not read. */
struct iris_tensor_share {
    const struct iris_call_type *type;
    const iris_tensor_t *tensor;
    iris_status_t checked;
};
iris_status_t iris_i_tensor_share(iris_t *iris,
                                  const struct iris_tensor_share *what,
                                  iris_tensor_t *symmetric_p, int *shared_p);

#endif /* IRIS_SRC_TENSOR_TENSOR_SHARE_H */
