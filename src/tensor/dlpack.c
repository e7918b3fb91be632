/* SPDX-License-Identifier: MIT
 *
 * Memory of the program and of other libraries as tensors, and the reverse.
 *
 * A tensor that owns its memory passes the ownership to the other library,
 * whose deleter releases it as iris_free_later() does. An imported tensor
 * becomes one of the heap, shared if possible and otherwise copied, and its
 * deleter is called at once.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>
#include <iris/dlpack.h>

#include "context/context.h"
#include "heap/heap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------
 * Makes memory of the program a tensor on the heap.
 */

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

static iris_status_t share_tensor(iris_t *iris,
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

    return status == IRIS_OK ? share_tensor(iris, &what, symmetric_p, shared_p)
                             : status;
}

/* ---------------------------------------------------------------------------
 * Conversion of tensors to and from DLPack.
 */

static const struct dlpack_dtype dtypes[] = {
    [IRIS_DTYPE_BOOL] = {DLPACK_BOOL, 8, 1},
    [IRIS_DTYPE_I8] = {DLPACK_INT, 8, 1},
    [IRIS_DTYPE_I16] = {DLPACK_INT, 16, 1},
    [IRIS_DTYPE_I32] = {DLPACK_INT, 32, 1},
    [IRIS_DTYPE_I64] = {DLPACK_INT, 64, 1},
    [IRIS_DTYPE_U8] = {DLPACK_UINT, 8, 1},
    [IRIS_DTYPE_U16] = {DLPACK_UINT, 16, 1},
    [IRIS_DTYPE_U32] = {DLPACK_UINT, 32, 1},
    [IRIS_DTYPE_U64] = {DLPACK_UINT, 64, 1},
    [IRIS_DTYPE_F16] = {DLPACK_FLOAT, 16, 1},
    [IRIS_DTYPE_BF16] = {DLPACK_BFLOAT, 16, 1},
    [IRIS_DTYPE_F32] = {DLPACK_FLOAT, 32, 1},
    [IRIS_DTYPE_F64] = {DLPACK_FLOAT, 64, 1},
    [IRIS_DTYPE_COMPLEX64] = {DLPACK_COMPLEX, 64, 1},
    [IRIS_DTYPE_COMPLEX128] = {DLPACK_COMPLEX, 128, 1},
    [IRIS_DTYPE_F8E4M3] = {DLPACK_F8E4M3, 8, 1},
    [IRIS_DTYPE_F8E5M2] = {DLPACK_F8E5M2, 8, 1},
};

#define NUM_DTYPES ((int)(sizeof dtypes / sizeof dtypes[0]))

/* ---- To ---- */

/* The object that a consumer gets: the struct, with its arrays. It is a single
 * block of memory, so that releasing it needs no live context. */
struct exported {
    struct DLManagedTensorVersioned managed;
    int64_t shape[IRIS_TENSOR_DIMS_MAX];
    int64_t strides[IRIS_TENSOR_DIMS_MAX];
    iris_t *iris;
    void *owner; /* memory that is freed with it; NULL: none */
};

/* Finalized contexts still answer queries. Their memory is gone then, which is
 * no error here. */
static void release_exported(struct DLManagedTensorVersioned *self)
{
    struct exported *exported = (struct exported *)self;
    iris_t *iris = exported->iris;

    if (exported->owner != NULL && iris->pid == getpid() &&
        iris_i_is_live(iris)) {
        (void)iris_free_later(iris, exported->owner);
    }
    free(exported);
}

/* If the tensor owned its memory, the consumer owns it from now on. */
static void describe_export(iris_t *iris, iris_tensor_t *tensor,
                            struct exported *exported)
{
    struct dlpack_tensor *to = &exported->managed.tensor;
    static const int32_t device_types[] = {[IRIS_MEMORY_HOST] = DLPACK_CPU,
                                           [IRIS_MEMORY_CUDA] = DLPACK_CUDA,
                                           [IRIS_MEMORY_ROCM] = DLPACK_ROCM};

    memcpy(exported->shape, tensor->shape, sizeof exported->shape);
    memcpy(exported->strides, tensor->strides, sizeof exported->strides);
    to->data = iris_tensor_numel(tensor) == 0 ? NULL : tensor->data;
    to->device_type = device_types[iris_i_device(iris)->memory];
    to->device_id =
        to->device_type == DLPACK_CPU ? 0 : iris_i_device(iris)->device_id;
    to->ndim = tensor->ndim;
    to->dtype = dtypes[tensor->dtype];
    to->shape = exported->shape;
    to->strides = exported->strides;
    exported->iris = iris;
    exported->owner = tensor->owner;
    tensor->owner = NULL;
}

iris_status_t iris_tensor_to_dlpack(iris_t *iris, iris_tensor_t *tensor,
                                    struct DLManagedTensorVersioned **managed_p)
{
    static const char call[] = "iris_tensor_to_dlpack";
    struct iris_named_argument argument = {NULL, call, "tensor"};
    struct exported *exported;
    iris_status_t status =
        iris_i_enter_output(iris, call, managed_p, "managed_p");

    if (status != IRIS_OK) {
        return status;
    }
    argument.log = iris_i_log(iris);
    status = iris_i_tensor_check(&argument, tensor);
    if (status != IRIS_OK) {
        return status;
    }
    exported = calloc(1, sizeof *exported);
    if (exported == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "%s: no memory for a DLPack tensor", call);
    }
    describe_export(iris, tensor, exported);
    exported->managed.major = DLPACK_ABI_MAJOR;
    exported->managed.minor = DLPACK_ABI_MINOR;
    exported->managed.deleter = release_exported;
    *managed_p = &exported->managed;
    return IRIS_OK;
}

/* ---- From ---- */

static int dtype_of_dlpack(struct dlpack_dtype dtype)
{
    for (int i = 0; i < NUM_DTYPES; i++) {
        if (memcmp(&dtypes[i], &dtype, sizeof dtype) == 0) {
            return i;
        }
    }
    return -1;
}

/* Whether this rank's device can copy from there. */
static int is_near(const iris_t *iris, const struct dlpack_tensor *from)
{
    int own = iris_i_device(iris)->device_id;

    switch (from->device_type) {
    case DLPACK_CPU:
        return 1;
    case DLPACK_CUDA:
        return iris_i_device(iris)->memory == IRIS_MEMORY_CUDA &&
               from->device_id == own;
    case DLPACK_CUDA_HOST:
    case DLPACK_CUDA_MANAGED:
        return iris_i_device(iris)->memory == IRIS_MEMORY_CUDA;
    case DLPACK_ROCM:
        return iris_i_device(iris)->memory == IRIS_MEMORY_ROCM &&
               from->device_id == own;
    case DLPACK_ROCM_HOST:
        return iris_i_device(iris)->memory == IRIS_MEMORY_ROCM;
    default:
        return 0;
    }
}

/* The tensor as one of ours, at its old place. */
static iris_status_t read_tensor(const iris_t *iris, const char *call,
                                 const struct dlpack_tensor *from,
                                 iris_tensor_t *tensor_p)
{
    const struct iris_named_argument argument = {iris_i_log(iris), call,
                                                 "the DLPack tensor"};
    int64_t strides[IRIS_TENSOR_DIMS_MAX];
    iris_shape_t shape = {.ndim = from->ndim};
    int dtype = dtype_of_dlpack(from->dtype);
    iris_status_t status;

    if (dtype < 0) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: elements of type code %d with %d bits in %d "
                           "lanes; pass a dtype of <iris/types.h>",
                           call, from->dtype.code, from->dtype.bits,
                           from->dtype.lanes);
    }
    if (!is_near(iris, from)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the tensor is on device %d of type %d, which "
                           "this rank's cannot copy from; move it to the "
                           "rank's device first",
                           call, from->device_id, from->device_type);
    }
    if (from->shape == NULL && from->ndim > 0) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the DLPack tensor has %d dimensions, and its "
                           "shape is NULL; pass their sizes",
                           call, from->ndim);
    }
    for (int i = 0; shape.ndim <= IRIS_TENSOR_DIMS_MAX && i < shape.ndim; i++) {
        shape.sizes[i] = from->shape[i];
    }
    status = iris_i_shape_check(&argument, &shape, (iris_dtype_t)dtype);
    if (status != IRIS_OK) {
        return status;
    }
    if (from->byte_offset > UINTPTR_MAX - (uintptr_t)from->data) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: the DLPack tensor's byte_offset %llu overflows "
                           "the address space; check it",
                           call, (unsigned long long)from->byte_offset);
    }
    iris_i_layout_strides(&shape, IRIS_FORMAT_CONTIGUOUS, NULL, strides);
    *tensor_p = iris_i_tensor_make(
        from->data == NULL ? NULL : (char *)from->data + from->byte_offset,
        (iris_dtype_t)dtype, &shape,
        from->strides == NULL ? strides : from->strides);
    return IRIS_OK;
}

/* Collective, even if this rank has found an error in its own tensor. */
iris_status_t iris_tensor_from_dlpack(iris_t *iris,
                                      struct DLManagedTensorVersioned *managed,
                                      iris_tensor_t *symmetric_p, int *shared_p)
{
    static const struct iris_call_type type = {"iris_tensor_from_dlpack",
                                               IRIS_TENSOR_CALL_FIELDS};
    iris_tensor_t tensor;
    struct iris_tensor_share what = {.type = &type, .tensor = &tensor};
    iris_status_t status = iris_i_enter(iris, type.name);

    if (status != IRIS_OK) {
        return status;
    }
    what.checked =
        managed == NULL || managed->major != DLPACK_ABI_MAJOR
            ? iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                          "%s: managed is NULL, or of another version of "
                          "DLPack than %d.x; pass one of that",
                          type.name, DLPACK_ABI_MAJOR)
            : read_tensor(iris, type.name, &managed->tensor, &tensor);
    status = share_tensor(iris, &what, symmetric_p, shared_p);
    if (status == IRIS_OK && managed->deleter != NULL) {
        managed->deleter(managed);
    }
    return status;
}
