/* SPDX-License-Identifier: MIT
 *
 * Creation calls: options, memory that is new or the program's, and a fill.
 */
#ifndef IRIS_SRC_TENSOR_CREATE_H
#define IRIS_SRC_TENSOR_CREATE_H

#include <iris/constants.h>
#include <iris/tensor.h>

#include "context/context_type.h"

/* One creation call: the public function says what it is, and
 * iris_i_tensor_begin() adds the options. */
struct iris_tensor_request {
    const struct iris_call_type *type;
    iris_shape_t shape;
    iris_dtype_t dtype; /* until the options say another */
    struct iris_tensor_options options;
    /* What is wrong so far: every rank has to be told, so the call goes on to
     * iris_i_tensor_create() even then. */
    iris_status_t checked;
    const iris_tensor_t *like; /* whose layout PRESERVE means, or NULL */
    /* Enqueues what fills the tensor; NULL: nothing does. `arg` comes back. */
    iris_status_t (*fill)(iris_t *iris, const iris_tensor_t *tensor,
                          const void *arg, iris_stream_t *stream);
    const void *arg;
};

/* The fields of every creation call. */
#define IRIS_TENSOR_CALL_FIELDS                   \
    {                                             \
        {.name = "bytes"}, {.name = "alignment"}, \
        {                                         \
            .name = "offset"                      \
        }                                         \
    }

/* Starts a call: the context is checked, the options are read. An error here is
 * of the context alone. */
iris_status_t iris_i_tensor_begin(iris_t *iris,
                                  const struct iris_tensor_options *options,
                                  struct iris_tensor_request *request);

/* The rest of the call, on all ranks or, with options.out, on this one. */
iris_status_t iris_i_tensor_create(iris_t *iris,
                                   const struct iris_tensor_request *request,
                                   iris_tensor_t *tensor_p);

#endif /* IRIS_SRC_TENSOR_CREATE_H */
