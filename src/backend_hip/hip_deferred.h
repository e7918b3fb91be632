/* SPDX-License-Identifier: MIT
 *
 * Memory that is freed when no other context uses the GPU.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_DEFERRED_H
#define IRIS_SRC_BACKEND_HIP_HIP_DEFERRED_H

#include "backend_hip/hip.h"

/* Each context of this process joins its GPU, which sets hip->gpu, and leaves
 * it. Deferred memory is freed in the order of arrival, at the latest when the
 * last context leaves; then iris_i_hip_memory_leave() returns true. */
void iris_i_hip_memory_join(struct hip_backend *hip);
bool iris_i_hip_memory_leave(const struct hip_backend *hip);
void iris_i_hip_free_later(const struct hip_backend *hip,
                           const struct hip_memory *memory);

/* Frees now the deferred memory of the GPU (-1: all GPUs without users) that,
 * unless `bytes` is 0, is mapped at these addresses. Returns whether there was
 * any. May wait for other contexts' kernels. */
bool iris_i_hip_free_deferred(int device, const void *at, size_t bytes);

/* A context begins to use a rank thread's heap by its owner's pointer, or
 * stops. No heap is freed in between: kernels may write there, from other GPUs
 * as well. */
void iris_i_hip_import_local(int count);

/* Makes hip->pinned; the memory may have been used before. */
hipError_t iris_i_hip_pin(struct hip_backend *hip);

/* Records that a kernel of this backend cannot be ended. From then on no memory
 * of any context is freed: freeing would wait for the kernel, or the kernel may
 * use it. The process's end frees it. */
void iris_i_hip_stick(struct hip_backend *hip);
bool iris_i_hip_any_stuck(void);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_DEFERRED_H */
