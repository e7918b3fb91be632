/* SPDX-License-Identifier: MIT
 *
 * Whether kernels can access memory of the program. The runtime is asked once
 * for a range: a kernel that accesses pageable host memory would end the
 * context.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <string.h>

static bool is_known(struct hip_backend *hip, uintptr_t start, size_t bytes)
{
    unsigned waits = atomic_load_explicit(&hip->waits, memory_order_relaxed);
    bool found = false;

    pthread_mutex_lock(&hip->known_lock);
    for (int i = 0; i < HIP_KNOWN && !found; i++) {
        const struct hip_known *one = &hip->known[i];

        found = start - one->start < one->bytes &&
                bytes <= one->bytes - (start - one->start) &&
                (one->waits == waits || one->waits == HIP_KNOWN_FOREVER);
    }
    pthread_mutex_unlock(&hip->known_lock);
    return found;
}

static void remember(struct hip_backend *hip, struct hip_known known)
{
    pthread_mutex_lock(&hip->known_lock);
    hip->known[hip->next_known++ % HIP_KNOWN] = known;
    pthread_mutex_unlock(&hip->known_lock);
}

/* Whether it is known that kernels cannot access the byte. Errors other than
 * this one say nothing. */
static bool is_pageable(const void *ptr, hipPointerAttribute_t *what)
{
    hipError_t error;

    memset(what, 0, sizeof *what);
    error = hipPointerGetAttributes(what, ptr);
    return error == hipSuccess ? iris_i_hip_is_unknown(what)
                               : error == hipErrorInvalidValue;
}

iris_status_t iris_i_hip_check_access(struct iris_backend *backend,
                                      const char *name, const void *ptr,
                                      size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_known known = {(uintptr_t)ptr, bytes, 0};
    hipPointerAttribute_t first, last;
    hipDeviceptr_t start = 0;
    size_t whole = 0;

    if (is_known(hip, (uintptr_t)ptr, bytes)) {
        return IRIS_OK;
    }

    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    known.waits = atomic_load_explicit(&hip->waits, memory_order_relaxed);
    if ((is_pageable(ptr, &first) ||
         is_pageable((const char *)ptr + bytes - 1, &last)) &&
        iris_i_hip_attribute(hip, hipDeviceAttributePageableMemoryAccess, 0) ==
            0) {
        return iris_i_hip_refuse(
            hip, IRIS_ERR_INVALID,
            "%s: %zu bytes at %p are host memory, which kernels of this GPU "
            "cannot access; pass memory from iris_malloc, memory of the GPU, "
            "or pinned memory (hipHostMalloc, hipHostRegister or those of "
            "CUDA)",
            name, bytes, ptr);
    }
    if (iris_i_hip_is_device(&first)) {
        known.waits = HIP_KNOWN_FOREVER;
        if (hipMemGetAddressRange(&start, &whole, (hipDeviceptr_t)ptr) ==
                hipSuccess &&
            known.start - (uintptr_t)start < whole) {
            known.start = (uintptr_t)start;
            known.bytes = whole > bytes ? whole : bytes;
        }
    }
    remember(hip, known);
    return IRIS_OK;
}
