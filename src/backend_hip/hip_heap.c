/* SPDX-License-Identifier: MIT
 *
 * This rank's heap, in fine-grained device memory, and the peers' heaps.
 * Another process maps a heap by IPC handle, or by the descriptors of virtual
 * memory. Rank threads of the same process use its address. (hip_vmem.c has the
 * differences for IRIS_ALLOCATOR=vmem.)
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <iris/heap.h>

#include "backend/backend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- This rank's heap ---- */

static void free_memory(const struct hip_backend *hip, void *raw)
{
    const struct hip_memory memory = {.kind = HIP_DEVICE, .ptr = raw};

    iris_i_hip_free_later(hip, &memory);
}

/* NULL for any error of the runtime. */
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

/* Bytes from an address to the next one at the largest alignment of offsets in
 * a heap. */
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
        /* A runtime may use another error for a size that no GPU could have. */
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

static iris_status_t heap_alloc(struct iris_backend *backend, size_t bytes,
                                struct iris_heap_region *region_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    return hip->params.vmem ? iris_i_hip_vmem_alloc(hip, bytes, region_p)
                            : pool_alloc(hip, bytes, region_p);
}

static void heap_free(struct iris_backend *backend,
                      struct iris_heap_region *region)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    (void)region;
    hip->heap_freed = true;
    iris_i_hip_vmem_free(hip, &hip->heap_memory);
    hip->heap_freed = false;
}

/* ---- Handles ---- */

/* The bytes of a handle. A pid is unique only in its namespace, whose number
 * has 32 bits. */
struct hip_handle {
    char *base; /* in that process */
    uint64_t bytes;
    uint32_t pid_namespace;
    int32_t pid;
    int32_t rank;
    int32_t vmem; /* the allocator, which must be the same on all ranks */
    char pci[HIP_PCI_BYTES];
    union {
        uint64_t offset;    /* pool: offset of the heap in its allocation */
        uint64_t committed; /* vmem: bytes of memory behind the descriptor */
    };
    int32_t error;         /* pool: the error if there is no `ipc`; else 0 */
    int32_t legacy;        /* with HSA_ENABLE_IPC_MODE_LEGACY=1 */
    hipIpcMemHandle_t ipc; /* pool: handle of the whole allocation */
};

_Static_assert(sizeof(struct hip_handle) <= IRIS_HANDLE_BYTES,
               "a hip handle fits in a heap handle");

static uint32_t pid_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : 0;
}

/* ---- Reach ---- */

/* Whether it is the heap of another rank thread of this process. */
static bool is_here(const struct hip_handle *theirs)
{
    return theirs->pid == getpid() && theirs->pid_namespace == pid_namespace();
}

/* Warns once if atomics on a peer's heap may not be atomic, as over PCIe. */
static void warn_of_atomics(struct hip_backend *hip, int peer,
                            const struct hip_handle *theirs)
{
    int native = 1;

    if (hip->warned_of_atomics ||
        hipDeviceGetP2PAttribute(&native, hipDevP2PAttrNativeAtomicSupported,
                                 hip->device, peer) != hipSuccess ||
        native) {
        return;
    }
    hip->warned_of_atomics = true;
    iris_i_warning(NULL,
                   "the link from GPU %d (%s) of rank %d to GPU %d (%s) of "
                   "rank %d has no atomics: iris_atomic_* and iris_signal_add "
                   "there may lose updates",
                   hip->device, hip->pci, hip->params.rank, peer, theirs->pci,
                   theirs->rank);
}

/* Gives kernels here access to the peer's GPU; *can_p: it is possible. On
 * NVIDIA that needs a context on the peer's GPU, and opening a handle or
 * mapping virtual memory does it implicitly. */
static hipError_t enable(const struct hip_backend *hip, int peer,
                         const struct hip_handle *theirs, int *can_p)
{
    hipError_t error = hipDeviceCanAccessPeer(can_p, hip->device, peer);
    bool by_itself = IRIS_HIP_NVIDIA && (hip->params.vmem || !is_here(theirs));

    if (error == hipSuccess && *can_p && !by_itself) {
        error = hipDeviceEnablePeerAccess(peer, 0);
    }
    return error == hipErrorPeerAccessAlreadyEnabled ? hipSuccess : error;
}

/* Whether this rank's GPU can reach the peer's. */
static iris_status_t check_reach(struct hip_backend *hip,
                                 const struct hip_handle *theirs)
{
    int peer, can = 0;
    hipError_t error;

    if (strcmp(hip->pci, theirs->pci) == 0) {
        return hip->params.ranks_on_device > 1
                   ? IRIS_OK
                   : iris_i_fail(NULL, IRIS_ERR_BACKEND,
                                 "ranks %d and %d are both on GPU %s; share "
                                 "it with IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu",
                                 hip->params.rank, theirs->rank, hip->pci);
    }
    error = hipDeviceGetByPCIBusId(&peer, theirs->pci);
    if (error != hipSuccess) {
        return iris_i_hip_fail(hip, error,
                               "rank %d's GPU %s is not seen; show every "
                               "rank all GPUs (%s_VISIBLE_DEVICES)",
                               theirs->rank, theirs->pci,
                               IRIS_HIP_NVIDIA ? "CUDA" : "HIP");
    }
    error = enable(hip, peer, theirs, &can);
    if (error == hipSuccess && can) {
        warn_of_atomics(hip, peer, theirs);
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_UNREACHABLE,
                       "GPU %d (%s) of rank %d cannot reach GPU %d (%s) of "
                       "rank %d: %s. Use GPUs that are linked, or "
                       "IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu",
                       hip->device, hip->pci, hip->params.rank, peer,
                       theirs->pci, theirs->rank,
                       error == hipSuccess ? "no peer access between them"
                                           : hipGetErrorString(error));
}

/* ---- Exporting ---- */

static iris_status_t pool_export(const struct hip_backend *hip,
                                 struct hip_handle *handle)
{
    const char *legacy = getenv("HSA_ENABLE_IPC_MODE_LEGACY");
    hipDeviceptr_t start;
    int tries = 0;
    size_t bytes;
    hipError_t error =
        hipMemGetAddressRange(&start, &bytes, (hipDeviceptr_t)handle->base);

    if (error != hipSuccess) {
        return iris_i_hip_fail(hip, error, "the heap cannot be shared");
    }
    handle->offset = (uint64_t)(handle->base - (char *)start);
    do {
        error = hipIpcGetMemHandle(&handle->ipc, hip->heap_memory.ptr);
    } while (iris_i_hip_try_again(error, &tries));
    handle->error = (int32_t)error;
    handle->legacy = legacy != NULL && strcmp(legacy, "1") == 0;
    return IRIS_OK;
}

static iris_status_t heap_export(struct iris_backend *backend,
                                 const struct iris_heap_region *region,
                                 struct iris_heap_handle *handle_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_handle handle = {.pid_namespace = pid_namespace(),
                                .pid = getpid(),
                                .base = region->base,
                                .bytes = region->bytes,
                                .rank = hip->params.rank,
                                .vmem = hip->params.vmem};
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    int fd = -1;
    iris_status_t status =
        hip->params.vmem
            ? iris_i_hip_vmem_export(hip, handle.base, &handle.committed, &fd)
            : pool_export(hip, &handle);

    if (status == IRIS_OK) {
        memcpy(handle.pci, hip->pci, sizeof hip->pci);
        handle_p->fd = fd;
        handle_p->num_bytes = sizeof handle;
        memcpy(handle_p->bytes, &handle, sizeof handle);
    }
    return status;
}

/* ---- Importing ---- */

/* The runtime counts the opens of a handle: other contexts of this process may
 * have opened it, too. */
static iris_status_t pool_import(struct hip_backend *hip,
                                 const struct hip_handle *theirs,
                                 struct hip_import *import)
{
    hipError_t error;
    int tries = 0;

    if (theirs->error != hipSuccess) {
        return iris_i_hip_fail(
            hip, (hipError_t)theirs->error,
            "rank %d, process %d on GPU %s, cannot share its heap with other "
            "processes (hipIpcGetMemHandle); %sset IRIS_ALLOCATOR=vmem, or "
            "IRIS_SPAWN=threads",
            theirs->rank, (int)theirs->pid, theirs->pci,
            theirs->legacy ? "unset HSA_ENABLE_IPC_MODE_LEGACY there, " : "");
    }
    do {
        error = hipIpcOpenMemHandle(&import->memory.ptr, theirs->ipc,
                                    hipIpcMemLazyEnablePeerAccess);
    } while (iris_i_hip_try_again(error, &tries));
    if (error == hipSuccess) {
        import->base = (char *)import->memory.ptr + theirs->offset;
    }
    return iris_i_hip_fail(
        hip, error, "the heap of rank %d, process %d on GPU %s, is not mapped",
        theirs->rank, (int)theirs->pid, theirs->pci);
}

static iris_status_t import(struct hip_backend *hip,
                            const struct hip_handle *theirs, int fd,
                            struct hip_import *import)
{
    iris_status_t status = check_reach(hip, theirs);

    if (status != IRIS_OK) {
        return status;
    }
    if (is_here(theirs)) {
        import->base = theirs->base;
        import->local = true;
        iris_i_hip_import_local(1);
        return IRIS_OK;
    }
    return hip->params.vmem
               ? iris_i_hip_vmem_import(hip, theirs->rank, theirs->committed,
                                        fd, import)
               : pool_import(hip, theirs, import);
}

/* Reads a peer's handle. */
static iris_status_t read_handle(const struct hip_backend *hip,
                                 const struct iris_heap_handle *handle,
                                 size_t bytes, struct hip_handle *theirs)
{
    if (handle->num_bytes != sizeof *theirs) {
        return iris_i_hip_refuse(hip, IRIS_ERR_MISMATCH,
                                 "a peer's handle has %u bytes, not %zu: the "
                                 "ranks use different builds of this library",
                                 (unsigned)handle->num_bytes, sizeof *theirs);
    }
    memcpy(theirs, handle->bytes, sizeof *theirs);
    if (theirs->bytes != bytes) {
        return iris_i_hip_refuse(hip, IRIS_ERR_SYSTEM,
                                 "a peer's heap has %llu bytes instead of %zu",
                                 (unsigned long long)theirs->bytes, bytes);
    }
    if (theirs->vmem != hip->params.vmem) {
        return iris_i_hip_refuse(hip, IRIS_ERR_MISMATCH,
                                 "IRIS_ALLOCATOR=%s, but rank %d has another; "
                                 "give all ranks the same",
                                 hip->params.vmem ? "vmem" : "pool",
                                 theirs->rank);
    }
    return IRIS_OK;
}

static iris_status_t heap_import(struct iris_backend *backend,
                                 const struct iris_heap_handle *handle,
                                 size_t bytes, void **base_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_import *mapped = calloc(1, sizeof *mapped);
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    struct hip_handle theirs;
    iris_status_t status =
        mapped == NULL ? iris_i_hip_refuse(hip, IRIS_ERR_NO_MEMORY, "no memory")
                       : read_handle(hip, handle, bytes, &theirs);

    status = status ? status : import(hip, &theirs, handle->fd, mapped);
    if (status != IRIS_OK) {
        free(mapped);
        return status;
    }
    mapped->bytes = hip->params.vmem ? hip->heap.bytes : bytes;
    mapped->next = hip->imports;
    hip->imports = mapped;
    *base_p = mapped->base;
    return IRIS_OK;
}

static void heap_unimport(struct iris_backend *backend, void *base,
                          size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_import **link = &hip->imports, *mapped;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    (void)bytes;
    while (*link != NULL && (*link)->base != base) {
        link = &(*link)->next;
    }
    mapped = *link;
    if (mapped == NULL) { /* not one of ours */
        return;
    }
    *link = mapped->next;
    if (mapped->local) {
        iris_i_hip_import_local(-1);
    } else if (hip->params.vmem) {
        iris_i_hip_vmem_free(hip, &mapped->memory);
    } else if (!iris_i_hip_any_stuck()) {
        (void)hipIpcCloseMemHandle(mapped->memory.ptr);
    }
    free(mapped);
}

#define HEAP_SLOTS                                                       \
    .alloc = heap_alloc, .free = heap_free,                              \
    .check_access = iris_i_hip_check_access, .export_heap = heap_export, \
    .import_heap = heap_import, .unimport_heap = heap_unimport
const struct iris_memory_ops iris_i_hip_pool_ops = {
    HEAP_SLOTS,
    IRIS_ALL_COMMITTED_SLOTS,
    IRIS_NO_RANGE_SLOTS,
};

const struct iris_memory_ops iris_i_hip_vmem_ops = {
    HEAP_SLOTS,
    .commit = iris_i_hip_commit,
    .decommit = iris_i_hip_decommit,
    .export_range = iris_i_hip_export_range,
    .import_range = iris_i_hip_import_range,
    .hold_external = iris_i_hip_hold_external,
    .release_external = iris_i_hip_release_external,
    .map_external = iris_i_hip_map_external,
};
#undef HEAP_SLOTS
