/* SPDX-License-Identifier: MIT
 *
 * Tensors to and from other libraries, PyTorch's and NumPy's among them, by
 * DLPack. Its structs are in <dlpack/dlpack.h>, which need not be there.
 */
#ifndef IRIS_DLPACK_H
#define IRIS_DLPACK_H

#include <iris/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** A tensor for another library, without a copy: what a Python object's
 *  __dlpack__() puts into a capsule named "dltensor_versioned" or, in the form
 *  before version 1.0, "dltensor". Its device is DLPack's CPU, CUDA or ROCm
 *  with iris_device_id(). It may be a view, also of a peer's memory.
 *
 *  A tensor that owns its memory hands it over: *tensor is a view from then on,
 *  and the struct's deleter releases the memory as iris_free_later() does, so
 *  that it goes when every rank's deleter has run, or that rank has made that
 *  call. An exported view, such as a copy of *tensor with owner NULL, keeps no
 *  memory: free the owner only once the other library has let go.
 *
 *  The deleter may run on any thread and at any time; after iris_finalize(),
 *  which frees everything, elements may not be touched any more, and it frees
 *  the struct alone. The other library calls it when its own work is over, of
 *  which Iris knows nothing. The caller has synchronised the streams that write
 *  the tensor, or orders the other library's work behind them. Local, does not
 *  block.
 *
 *  IRIS_ERR_INVALID      tensor is NULL or not a valid tensor, or managed_p is
 *                        NULL
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_STATE
 *
 *  On an error *tensor is unchanged. */
IRIS_API iris_status_t
iris_tensor_to_dlpack(iris_t *iris, iris_tensor_t *tensor,
                      struct DLManagedTensorVersioned **managed_p);
IRIS_API iris_status_t iris_tensor_to_dlpack_unversioned(
    iris_t *iris, iris_tensor_t *tensor, struct DLManagedTensor **managed_p);

/** Another library's tensor on the heap, as iris_tensor_as_symmetric() puts it
 *  there: shared where that can be, else copied. Collective over the job.
 *  On success `managed` is consumed: its deleter has been called, as the memory
 *  that is shared stays by itself. After an error it is still the caller's. It
 *  may be in the host's memory or in that of this rank's device; the caller has
 *  waited for what writes it.
 *
 *  IRIS_ERR_INVALID      managed is NULL, of a version of DLPack this library
 *                        does not know, of a dtype that Iris lacks, has more
 *                        than IRIS_TENSOR_DIMS_MAX dimensions, or is on a
 *                        device that this rank's device cannot copy from
 *
 *  Also returns the statuses of iris_tensor_as_symmetric(). */
IRIS_API iris_status_t
iris_tensor_from_dlpack(iris_t *iris, struct DLManagedTensorVersioned *managed,
                        iris_tensor_t *symmetric_p, int *shared_p);
IRIS_API iris_status_t iris_tensor_from_dlpack_unversioned(
    iris_t *iris, struct DLManagedTensor *managed, iris_tensor_t *symmetric_p,
    int *shared_p);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_DLPACK_H */
