/* SPDX-License-Identifier: MIT
 *
 * This rank's heap: fine-grained device memory. (What differs with
 * IRIS_ALLOCATOR=vmem is in hip_vmem.c.)
 */
#include "config.h"

#include "backend_hip/hip_heap.h"

#include "backend_hip/hip_call.h"
#include "backend_hip/hip_copy.h"
#include "backend_hip/hip_deferred.h"
#include "backend_hip/hip_vmem.h"

#include <iris/heap.h>

#include <string.h>

static void free_memory(const struct hip_backend *hip, void *raw)
{
    const struct hip_memory memory = {.kind = HIP_DEVICE, .ptr = raw};

    iris_i_hip_free_later(hip, &memory);
}

/* NULL: what runtimes call an error, of whatever name. */
static void *allocate(const struct hip_backend *hip, size_t bytes,
                      hipError_t *error_p)
{
    unsigned flags = strcmp(hip->params.memory, "uncached") == 0
                         ? hipDeviceMallocUncached
                         : hipDeviceMallocFinegrained;
    void *raw = NULL;

    *error_p = hipExtMallocWithFlags(&raw, bytes, flags);
    if (*error_p == hipErrorOutOfMemory &&
        iris_i_hip_free_deferred(hip->device, NULL, 0)) {
        *error_p = hipExtMallocWithFlags(&raw, bytes, flags);
    }
    return *error_p == hipSuccess ? raw : NULL;
}

/* Bytes from an address to the next that offsets in a heap may have to be
 * multiples of. */
static size_t gap(const void *raw)
{
    return -(uintptr_t)raw % IRIS_ALIGNMENT_MAX;
}

static iris_status_t pool_alloc(struct hip_backend *hip, size_t bytes,
                                struct iris_heap_region *region_p)
{
    size_t free_bytes = 0, total_bytes = 0;
    hipError_t error;
    void *raw = allocate(hip, bytes, &error);
    iris_status_t status;

    if (gap(raw) != 0) {
        free_memory(hip, raw);
        raw = allocate(hip, bytes + IRIS_ALIGNMENT_MAX, &error);
    }
    if (raw == NULL) {
        (void)hipMemGetInfo(&free_bytes, &total_bytes);
        /* A runtime may find another name for what no GPU could have. */
        error = total_bytes != 0 && bytes > total_bytes ? hipErrorOutOfMemory
                                                        : error;
        return iris_i_hip_fail(hip, error,
                               "no heap of %zu bytes, where %zu of %zu bytes "
                               "are free; lower IRIS_HEAP_SIZE",
                               bytes, free_bytes, total_bytes);
    }
    region_p->base = (char *)raw + gap(raw);
    region_p->bytes = bytes;
    status = iris_i_hip_zero(hip, region_p->base, bytes);
    if (status != IRIS_OK) {
        free_memory(hip, raw);
        return status;
    }
    hip->heap = *region_p;
    hip->heap_memory = (struct hip_memory){.kind = HIP_DEVICE, .ptr = raw};
    return IRIS_OK;
}

iris_status_t iris_i_hip_alloc(struct iris_backend *backend, size_t bytes,
                               struct iris_heap_region *region_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    return hip->params.vmem ? iris_i_hip_vmem_alloc(hip, bytes, region_p)
                            : pool_alloc(hip, bytes, region_p);
}

void iris_i_hip_free(struct iris_backend *backend,
                     struct iris_heap_region *region)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    (void)region;
    hip->heap_freed = true;
    iris_i_hip_vmem_free(hip, &hip->heap_memory);
    hip->heap_freed = false;
}
