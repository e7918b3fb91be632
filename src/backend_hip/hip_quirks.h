/* SPDX-License-Identifier: MIT
 *
 * Quirks of runtimes and drivers; hip_quirks.c names the versions in which each
 * was observed.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_QUIRKS_H
#define IRIS_SRC_BACKEND_HIP_HIP_QUIRKS_H

#include "backend_hip/hip.h"

/* Whether streams write and wait for words by themselves. */
#if IRIS_HIP_NVIDIA || IRIS_HIP_FAKE
#define HIP_QUEUE_WAITS 1
#else
#define HIP_QUEUE_WAITS 0
#endif

/* Sets variables that the runtime reads when it begins. */
void iris_i_hip_set_environment(void);

/* Enqueues a stream's first work. */
hipError_t iris_i_hip_give_first_work(const struct hip_backend *hip,
                                      hipStream_t native);

/* Makes the GPU allocate the memory that streams need, and warns if the kernels
 * of the contexts cannot all run at once. */
void iris_i_hip_prepare(const struct hip_backend *hip);

/* Loads all of a module's functions now. */
void iris_i_hip_load_functions(hipModule_t module);

/* The GPU of a stream; unchanged if the runtime does not tell. */
hipError_t iris_i_hip_stream_device(hipStream_t native, int *device_p);

/* Whether this is memory that the runtime does not know. */
bool iris_i_hip_is_unknown(const hipPointerAttribute_t *what);

/* Whether it is memory of a GPU. */
bool iris_i_hip_is_device(const hipPointerAttribute_t *what);

/* Whether memory of the pool can be shared with other processes. */
bool iris_i_hip_can_share(const struct hip_backend *hip);

/* The rate of the clock that kernels read. */
int64_t iris_i_hip_clock_khz(const struct hip_backend *hip);

/* The type of memory for heaps that grow: sets hip->vmem.uncached. `prop`
 * describes other memory for them. */
iris_status_t iris_i_hip_choose_type(struct hip_backend *hip,
                                     hipMemAllocationProp prop);

/* Gives devices access to mapped memory. */
hipError_t iris_i_hip_set_access(const struct hip_backend *hip,
                                 const struct hip_memory *what,
                                 const hipMemAccessDesc *access, size_t count);

/* The form in which a descriptor is passed to the import. */
void *iris_i_hip_os_handle(int *fd);

/* The reason why the program's memory cannot be referenced; NULL: it can. */
const char *iris_i_hip_cannot_retain(void);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_QUIRKS_H */
