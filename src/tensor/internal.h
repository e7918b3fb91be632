/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/tensor: tensors on the heap.
 */
#ifndef IRIS_SRC_TENSOR_INTERNAL_H
#define IRIS_SRC_TENSOR_INTERNAL_H

#include <iris/constants.h>
#include <iris/tensor.h>

#include "base/base.h"
#include "context/context.h"

#include <stdint.h>

/* ---- create.c ---- */

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

/* Launches a kernel that works on a tensor, with a grid for its bytes. */
iris_status_t iris_i_tensor_launch(iris_t *iris,
                                   const struct iris_kernel *kernel,
                                   const iris_tensor_t *tensor,
                                   const void *args, iris_stream_t *stream);

/* ---- layout.c ---- */

int64_t iris_i_shape_numel(const iris_shape_t *shape);
iris_shape_t iris_i_tensor_shape(const iris_tensor_t *tensor);

/* A tensor with this shape and these strides at `data`. It does not own the
 * memory. */
iris_tensor_t iris_i_tensor_make(void *data, iris_dtype_t dtype,
                                 const iris_shape_t *shape,
                                 const int64_t *strides);

/* Strides of a new tensor in a format. `like` may be NULL. */
void iris_i_layout_strides(const iris_shape_t *shape,
                           iris_memory_format_t format,
                           const iris_tensor_t *like, int64_t *strides_p);

/* Strides for the same elements in the same order with another shape; 0: that
 * needs a copy. */
int iris_i_layout_reshape(const iris_tensor_t *tensor,
                          const iris_shape_t *shape, int64_t *strides_p);

/* ---- value.c ---- */

/* A number passed as the argument `name`. */
struct iris_argument {
    const struct iris_log *log;
    const char *call;
    const char *name;
    iris_value_t value;
};

/* Converts it to an element, as iris_full() does. IRIS_ERR_INVALID */
iris_status_t iris_i_value_convert(const struct iris_argument *argument,
                                   iris_dtype_t dtype, void *element_p);
int iris_i_value_is_whole(iris_value_t value);

static inline int iris_i_dtype_is_complex(iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_COMPLEX64 || dtype == IRIS_DTYPE_COMPLEX128;
}

/* Tensors of these are filled and copied, and have no other kernels. */
static inline int iris_i_dtype_is_float8(iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_F8E4M3 || dtype == IRIS_DTYPE_F8E5M2;
}

/* A number as a double; for a complex element, part 0 or 1. */
double iris_i_element_part(const void *element, iris_dtype_t dtype, int part);

/* ---- Dlpack abi ---- */

/* DLPack's structs with the ABI of version 1.0, so that a build needs no header
 * (https://dmlc.github.io/dlpack/latest/c_api.html). tests/tensor/test_dlpack.c compares them with the header. */

#define DLPACK_ABI_MAJOR 1
#define DLPACK_ABI_MINOR 0

/* Kinds of memory. No heap is in the kinds that are not listed. */
enum dlpack_device_type {
    DLPACK_CPU = 1,
    DLPACK_CUDA = 2,
    DLPACK_CUDA_HOST = 3, /* pinned host memory */
    DLPACK_ROCM = 10,
    DLPACK_ROCM_HOST = 11,
    DLPACK_CUDA_MANAGED = 13,
};

enum dlpack_type_code {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6,
    DLPACK_F8E4M3 = 10, /* kDLFloat8_e4m3fn, since 1.1 */
    DLPACK_F8E5M2 = 12, /* kDLFloat8_e5m2 */
};

struct dlpack_dtype {
    uint8_t code;
    uint8_t bits; /* of a lane */
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    struct dlpack_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: contiguous */
    uint64_t byte_offset;
};

struct DLManagedTensorVersioned {
    uint32_t major;
    uint32_t minor;
    void *context;
    /* NULL: not needed */
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags; /* bit 0: read-only, bit 1: a copy */
    struct dlpack_tensor tensor;
};

/* ---- dlpack.c ---- */

/* iris_tensor_as_symmetric(), in a call of another name with the same fields.
 * `checked`: the status of the caller's own checks; if it is an error, the
 * tensor is not read. */
struct iris_tensor_share {
    const struct iris_call_type *type;
    const iris_tensor_t *tensor;
    iris_status_t checked;
};

#endif /* IRIS_SRC_TENSOR_INTERNAL_H */
