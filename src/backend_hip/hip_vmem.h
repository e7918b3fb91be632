/* SPDX-License-Identifier: MIT
 *
 * Heaps as reserved addresses with memory committed on demand: makes hip->vmem,
 * and implements the slots for such heaps. A mapping includes the window behind
 * the heap.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_VMEM_H
#define IRIS_SRC_BACKEND_HIP_HIP_VMEM_H

#include "backend_hip/hip.h"

iris_status_t iris_i_hip_vmem_open(struct hip_backend *hip);
iris_status_t iris_i_hip_vmem_alloc(struct hip_backend *hip, size_t bytes,
                                    struct iris_heap_region *region_p);

/* Exports the memory that begins there; nothing, if there is no memory. */
iris_status_t iris_i_hip_vmem_export(struct hip_backend *hip, const void *at,
                                     uint64_t *bytes_p, int *fd_p);
iris_status_t iris_i_hip_vmem_import(struct hip_backend *hip, int rank,
                                     uint64_t committed, int fd,
                                     struct hip_import *import);

/* Frees memory or addresses, and the mappings there. */
void iris_i_hip_vmem_free(struct hip_backend *hip,
                          const struct hip_memory *memory);

/* Maps memory for the last `num_devices` of `access`. The range owns the handle
 * from then on, and releases it if this fails. */
hipError_t iris_i_hip_range_map(struct hip_backend *hip,
                                const struct hip_memory *what, int num_devices);

IRIS_SLOT(iris_i_hip_commit, memory, commit);
IRIS_SLOT(iris_i_hip_decommit, memory, decommit);
IRIS_SLOT(iris_i_hip_export_range, memory, export_range);
IRIS_SLOT(iris_i_hip_import_range, memory, import_range);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_VMEM_H */
