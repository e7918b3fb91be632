/* SPDX-License-Identifier: MIT
 *
 * Memory by the runtime's virtual memory calls: what the files that use them
 * share.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_VMEM_H
#define IRIS_SRC_BACKEND_HIP_HIP_VMEM_H

#include "backend_hip/hip.h"

/* Memory at an address in one of the rooms. */
struct hip_extent {
    struct hip_extent *next;
    char *at;
    size_t bytes;
    hipMemGenericAllocationHandle_t handle;
};

struct hip_vmem {
    size_t granularity;   /* of mappings */
    struct hip_room room; /* this rank's heap */
    struct hip_extent *extents;
    int num_devices; /* that use this rank's memory; its own is the first */
    hipMemAccessDesc access[HIP_MAX_DEVICES];
};

/* hip_extent.c. The extent that begins at an address; NULL: none. */
struct hip_extent *iris_i_hip_extent_find(const struct hip_backend *hip,
                                          const void *at);

/* Maps a copy of the extent for the first devices of `access`. The handle is
 * then its own. */
hipError_t iris_i_hip_extent_map(struct hip_backend *hip,
                                 const struct hip_extent *what,
                                 int num_devices);
void iris_i_hip_extent_unmap(struct hip_backend *hip,
                             struct hip_extent *extent);

#if !IRIS_HIP_NVIDIA
/* HIP's version, as HIP_VERSION counts it; 0: it does not tell. */
int iris_i_hip_version(void);
#endif

/* A descriptor of memory, which is the caller's to close. */
hipError_t iris_i_hip_export_fd(hipMemGenericAllocationHandle_t handle,
                                int *fd_p);

/* The same for the extent at an address. */
iris_status_t iris_i_hip_extent_share(struct hip_backend *hip, const void *at,
                                      uint64_t *bytes_p, int *fd_p);

/* Maps another process's memory, whose descriptor stays the caller's. */
iris_status_t iris_i_hip_extent_import(struct hip_backend *hip, void *at,
                                       uint64_t bytes, int fd);

/* Slots of the memory table: hip_extent.c, */
iris_status_t iris_i_hip_vmem_share(struct iris_backend *backend, void *at,
                                    struct iris_heap_handle *handle_p);
iris_status_t iris_i_hip_vmem_map(struct iris_backend *backend, void *at,
                                  size_t most,
                                  const struct iris_heap_handle *handle);
void iris_i_hip_vmem_unmap(struct iris_backend *backend, void *at);

/* and hip_foreign.c. */
iris_status_t iris_i_hip_vmem_find(struct iris_backend *backend,
                                   const void *ptr, size_t bytes,
                                   struct iris_external *foreign_p);
void iris_i_hip_vmem_drop(struct iris_backend *backend,
                          struct iris_external *foreign);
iris_status_t iris_i_hip_vmem_adopt(struct iris_backend *backend, void *at,
                                    struct iris_external *foreign);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_VMEM_H */
