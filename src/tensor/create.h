/* SPDX-License-Identifier: MIT
 *
 * Creation calls: options, new memory or the program's, and a fill.
 */
#ifndef IRIS_SRC_TENSOR_CREATE_H
#define IRIS_SRC_TENSOR_CREATE_H

#include <iris/constants.h>
#include <iris/tensor.h>

#include "context/context_type.h"

/* One creation call. The public function sets the members, and
 * iris_i_tensor_begin() adds the options. */
struct iris_tensor_request {
    const struct iris_call_type *type;
    iris_shape_t shape;
    iris_dtype_t dtype; /* unless the options set another */
    struct iris_tensor_options options;
    /* The status so far. Every rank has to learn of an error, so the call goes
     * on to iris_i_tensor_create() all the same. */
    iris_status_t checked;
    const iris_tensor_t *like; /* the layout of PRESERVE is this tensor's; or
                                * NULL */
    /* Enqueues the fill of the tensor; NULL: no fill. `arg` is passed back. */
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

/* Starts a call: checks the context and reads the options. An error here
 * concerns this context alone. */
iris_status_t iris_i_tensor_begin(iris_t *iris,
                                  const struct iris_tensor_options *options,
                                  struct iris_tensor_request *request);

/* The rest of the call, on all ranks or, with options.out, on this rank
 * only. */
iris_status_t iris_i_tensor_create(iris_t *iris,
                                   const struct iris_tensor_request *request,
                                   iris_tensor_t *tensor_p);

#endif /* IRIS_SRC_TENSOR_CREATE_H */
