/* SPDX-License-Identifier: MIT
 *
 * Exchange of tensors with other libraries, such as PyTorch and NumPy, by
 * DLPack. <dlpack/dlpack.h> defines its structs; this header does not need it.
 */
#ifndef IRIS_DLPACK_H
#define IRIS_DLPACK_H

#include <iris/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensorVersioned;

/** Exports a tensor to another library without a copy. A Python object's
 *  __dlpack__() puts the result into a capsule named "dltensor_versioned". Its
 *  device is DLPack's CPU, CUDA or ROCm, with iris_device_id(). The tensor may be
 *  a view, also of a peer's memory. Local, does not block.
 *
 *  Before the call, synchronize the streams that write the tensor, or order the
 *  other library's work behind them.
 *
 *  If *tensor owns its memory, the call transfers the ownership to the result,
 *  and *tensor becomes a view. The result's deleter releases the memory as
 *  iris_free_later() does: it is freed once every rank has released it, with its
 *  deleter or with that call. An exported view (for example a copy of *tensor
 *  with owner NULL) does not keep the memory alive. Free the owner only after
 *  the other library has called the deleter.
 *
 *  The other library calls the deleter when its own work has completed; Iris
 *  does not know about that work. The deleter may run on any thread and at any
 *  time. iris_finalize() frees the elements, so nobody may touch them
 *  afterwards; a later deleter frees only the struct.
 *
 *  IRIS_ERR_INVALID      tensor is NULL or not a valid tensor, or managed_p is
 *                        NULL
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_STATE
 *
 *  On an error *tensor is unchanged.
 *  @use local; never blocks; apart
 *  @param managed_p  receives DLPack's struct */
IRIS_API iris_status_t
iris_tensor_to_dlpack(iris_t *iris, iris_tensor_t *tensor,
                      struct DLManagedTensorVersioned **managed_p);

/** Imports another library's tensor to the heap as iris_tensor_as_symmetric()
 *  does: shared if possible, otherwise copied. Collective over the job. The
 *  tensor may be in host memory or in the memory of this rank's device. Before
 *  the call, wait for the work that writes it.
 *
 *  On success the call consumes `managed`: it has called the deleter, because
 *  shared memory stays without it. After an error the caller still owns it.
 *
 *  IRIS_ERR_INVALID      managed is NULL, has a version of DLPack that this
 *                        library does not know, has a dtype that Iris lacks, has
 *                        more than IRIS_TENSOR_DIMS_MAX dimensions, or is on a
 *                        device that this rank's device cannot copy from
 *
 *  Also returns the statuses of iris_tensor_as_symmetric().
 *  @use job; blocks; refused
 *  @param managed  DLPack's struct, which the call consumes */
IRIS_API iris_status_t
iris_tensor_from_dlpack(iris_t *iris, struct DLManagedTensorVersioned *managed,
                        iris_tensor_t *symmetric_p, int *shared_p);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_DLPACK_H */
