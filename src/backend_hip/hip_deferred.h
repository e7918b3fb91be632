/* SPDX-License-Identifier: MIT
 *
 * Memory that goes when nobody else uses the GPU.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_DEFERRED_H
#define IRIS_SRC_BACKEND_HIP_HIP_DEFERRED_H

#include "backend_hip/hip.h"

/* Each context of this process joins its GPU, which fills in hip->gpu, and leaves
 * it. Memory that is freed later is freed in the order it came, at the latest
 * when the last context leaves; then iris_i_hip_memory_leave() returns true. */
void iris_i_hip_memory_join(struct hip_backend *hip);
bool iris_i_hip_memory_leave(const struct hip_backend *hip);
void iris_i_hip_free_later(const struct hip_backend *hip,
                           const struct hip_memory *memory);

/* Frees now what is deferred of the GPU (-1: of those that nobody uses) and,
 * unless `bytes` is 0, mapped at these addresses; whether there was any. May
 * wait for other contexts' kernels. */
bool iris_i_hip_free_deferred(int device, const void *at, size_t bytes);

/* A context uses a rank thread's heap, by its owner's pointer, or no longer. No
 * heap is freed between: kernels may write there, from other GPUs as well. */
void iris_i_hip_import_local(int count);

/* Makes hip->pinned, of memory that may have been used before. */
hipError_t iris_i_hip_pin(struct hip_backend *hip);

/* Notes that a kernel of this backend cannot be ended. From then on no memory
 * is freed, whoever has it: that would wait for the kernel, or the kernel may
 * use it. The process's end frees all the same. */
void iris_i_hip_stick(struct hip_backend *hip);
bool iris_i_hip_any_stuck(void);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_DEFERRED_H */
