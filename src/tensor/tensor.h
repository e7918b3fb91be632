/* SPDX-License-Identifier: MIT
 *
 * What the files of tensors share: creation calls in their making, memory
 * layouts, numbers as bytes of a dtype, and the kernels that fill.
 */
#ifndef IRIS_SRC_TENSOR_TENSOR_H
#define IRIS_SRC_TENSOR_TENSOR_H

#include <iris/constants.h>
#include <iris/tensor.h>

#include "context/context_type.h"
#include "context/tensor_check.h"
#include "tensor/kernels.h"

/* ---- Creation (create.c) ---- */

/* One creation call. iris_i_tensor_begin() fills it in from the options; the
 * public function adds the rest. */
struct iris_tensor_request {
    const struct iris_call_type *type;
    struct iris_tensor_options options;
    /* What is wrong so far: every rank has to be told, so the call goes on to
     * iris_i_tensor_create() even then. */
    iris_status_t checked;
    iris_shape_t shape;
    iris_dtype_t dtype;
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
                                  const struct iris_call_type *type,
                                  const struct iris_tensor_options *options,
                                  struct iris_tensor_request *request_p);

/* The dtype that the options ask for, else `preferred`. */
iris_dtype_t iris_i_tensor_dtype(const struct iris_tensor_request *request,
                                 iris_dtype_t preferred);

/* The rest of the call, on all ranks or, with options.out, on this one. */
iris_status_t iris_i_tensor_create(iris_t *iris,
                                   const struct iris_tensor_request *request,
                                   iris_tensor_t *tensor_p);

/* ---- Layouts (layout.c) ---- */

int64_t iris_i_shape_numel(const iris_shape_t *shape);
iris_shape_t iris_i_tensor_shape(const iris_tensor_t *tensor);

/* A tensor with this shape and these strides around `data`, without owner. */
iris_tensor_t iris_i_tensor_make(void *data, iris_dtype_t dtype,
                                 const iris_shape_t *shape,
                                 const int64_t *strides);

/* Strides of a new tensor in a format. `like` may be NULL. */
void iris_i_layout_strides(const iris_shape_t *shape,
                           iris_memory_format_t format,
                           const iris_tensor_t *like, int64_t *strides_p);

/* Strides of the same elements in the same order as another shape; 0: it would
 * take a copy. */
int iris_i_layout_reshape(const iris_tensor_t *tensor,
                          const iris_shape_t *shape, int64_t *strides_p);

/* ---- Views (view.c) ---- */

/* iris_i_tensor_check() of the argument `tensor` of a call without a context.
 */
iris_status_t iris_i_view_check(const char *call, const iris_tensor_t *tensor);

/* ---- On the heap (remote.c) ---- */

/* What iris_tensor_as_symmetric() does, in a call of another name with the same
 * fields; `checked`: what is wrong already, the tensor is not looked at then.
 */
struct iris_tensor_share {
    const struct iris_call_type *type;
    const iris_tensor_t *tensor;
    iris_status_t checked;
};
iris_status_t iris_i_tensor_share(iris_t *iris,
                                  const struct iris_tensor_share *what,
                                  iris_tensor_t *symmetric_p, int *shared_p);

/* ---- Numbers (value.c) ---- */

/* A number that a call got as its argument `name`. */
struct iris_argument {
    const struct iris_log *log;
    const char *call;
    const char *name;
    iris_value_t value;
};

/* As an element, converted as iris_full() says. IRIS_ERR_INVALID */
iris_status_t iris_i_value_convert(const struct iris_argument *argument,
                                   iris_dtype_t dtype, void *element_p);
int iris_i_value_is_whole(iris_value_t value);

/* ---- Fills (fill.c) ---- */

/* Enqueues the fill of a tensor of any strides with one element. */
iris_status_t iris_i_tensor_fill(iris_t *iris, const iris_tensor_t *tensor,
                                 const void *element, iris_stream_t *stream);

/* Launches a kernel that works on a tensor, with a grid for its bytes. */
iris_status_t iris_i_tensor_launch(iris_t *iris, enum iris_tensor_op op,
                                   const iris_tensor_t *tensor,
                                   const void *args, iris_stream_t *stream);

#endif /* IRIS_SRC_TENSOR_TENSOR_H */
