/* SPDX-License-Identifier: MIT
 *
 * Heaps on GPUs: fine-grained device memory, mapped by IPC handle in another
 * process and used as it is by rank threads of the same one. (What differs with
 * IRIS_ALLOCATOR=vmem is in hip_vmem.c.)
 */
#include "config.h"

#include "backend_hip/hip.h"

#include <iris/heap.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct hip_handle) <= IRIS_HANDLE_BYTES,
               "a hip handle fits in a heap handle");

/* An allocation of another process that is open in this one, for all contexts
 * together: the runtime refuses to open one twice. */
struct hip_opened {
    struct hip_opened *next;
    uint64_t generation; /* these four are a handle's */
    uint32_t pid_namespace;
    int32_t pid;
    const char *allocation; /* in that process */
    int device;             /* that maps it */
    unsigned refs;
    void *base; /* here */
};

static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hip_opened *opened;

static uint32_t pid_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : 0;
}

static void give_back(const struct hip_backend *hip, void *raw)
{
    const struct hip_thing thing = {.kind = HIP_MEMORY, .ptr = raw};

    iris_i_hip_discard(hip, &thing);
}

static hipError_t allocate(const struct hip_backend *hip, size_t bytes,
                           void **raw_p)
{
    hipError_t error =
        hipExtMallocWithFlags(raw_p, bytes, hipDeviceMallocFinegrained);

    if (error == hipErrorOutOfMemory && iris_i_hip_flush(hip)) {
        error = hipExtMallocWithFlags(raw_p, bytes, hipDeviceMallocFinegrained);
    }
    if (error != hipSuccess) {
        (void)hipGetLastError();
        *raw_p = NULL;
    }
    return error;
}

/* Fine-grained memory for a heap, aligned as offsets in it may have to be; the
 * allocation itself is *raw_p. */
static hipError_t allocate_aligned(const struct hip_backend *hip, size_t bytes,
                                   void **raw_p, void **base_p)
{
    hipError_t error = allocate(hip, bytes, raw_p);
    uintptr_t past = (uintptr_t)*raw_p % IRIS_ALIGNMENT_MAX;

    if (error == hipSuccess && past != 0) {
        give_back(hip, *raw_p);
        error = allocate(hip, bytes + IRIS_ALIGNMENT_MAX, raw_p);
        past = (uintptr_t)*raw_p % IRIS_ALIGNMENT_MAX;
    }
    *base_p = (char *)*raw_p + (past == 0 ? 0 : IRIS_ALIGNMENT_MAX - past);
    return error;
}

static iris_status_t pool_alloc(struct hip_backend *hip, size_t bytes,
                                struct iris_heap_region *region_p)
{
    size_t free_bytes = 0, total_bytes = 0;
    void *raw, *base;
    hipError_t error = allocate_aligned(hip, bytes, &raw, &base);
    iris_status_t status;

    if (error != hipSuccess) {
        (void)hipMemGetInfo(&free_bytes, &total_bytes);
        /* A runtime may find another name for what no GPU could have. */
        return iris_i_hip_fail(
            total_bytes != 0 && bytes > total_bytes ? hipErrorOutOfMemory
                                                    : error,
            "rank %d gets no heap of %zu bytes on GPU %d, where %zu of %zu "
            "bytes are free; lower IRIS_HEAP_SIZE",
            hip->params.rank, bytes, hip->device, free_bytes, total_bytes);
    }
    status = iris_i_hip_zero(hip, base, bytes);
    if (status != IRIS_OK) {
        give_back(hip, raw);
        return status;
    }
    region_p->base = base;
    region_p->bytes = bytes;
    region_p->cookie = raw;
    hip->heap = *region_p;
    return IRIS_OK;
}

/* The time, or what comes after the last one. */
static uint64_t next_generation(void)
{
    static _Atomic uint64_t last;
    uint64_t before = atomic_load(&last), next;
    struct timespec now = {0};

    do {
        (void)clock_gettime(CLOCK_REALTIME, &now);
        next = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        next = next > before ? next : before + 1;
    } while (!atomic_compare_exchange_weak(&last, &before, next));
    return next;
}

iris_status_t iris_i_hip_heap_alloc(struct iris_backend *backend, size_t bytes,
                                    struct iris_heap_region *region_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);
    iris_status_t status = hip->vmem != NULL
                               ? iris_i_hip_vmem_alloc(hip, bytes, region_p)
                               : pool_alloc(hip, bytes, region_p);

    hip->heap_generation = next_generation();
    iris_i_hip_leave(hip, before);
    return status;
}

void iris_i_hip_heap_free(struct iris_backend *backend,
                          struct iris_heap_region *region)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);

    hip->heap_leaving = hip->heap_generation;
    iris_i_hip_vmem_free(hip);
    give_back(hip, region->cookie);
    hip->heap_leaving = 0;
    iris_i_hip_leave(hip, before);
}

static iris_status_t pool_export(const struct hip_backend *hip,
                                 const struct iris_heap_region *region,
                                 struct hip_handle *handle)
{
    hipDeviceptr_t start;
    size_t bytes;
    hipError_t error =
        hipMemGetAddressRange(&start, &bytes, (hipDeviceptr_t)region->base);

    if (error == hipSuccess) {
        handle->offset = (uint64_t)(handle->base - (char *)start);
        error = hipIpcGetMemHandle(&handle->ipc, region->cookie);
    }
    return error == hipSuccess
               ? IRIS_OK
               : iris_i_hip_fail(error,
                                 "rank %d cannot share its heap with other "
                                 "processes",
                                 hip->params.rank);
}

iris_status_t iris_i_hip_heap_export(struct iris_backend *backend,
                                     const struct iris_heap_region *region,
                                     struct iris_heap_handle *handle_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_handle handle = {.generation = hip->heap_generation,
                                .pid_namespace = pid_namespace(),
                                .pid = getpid(),
                                .base = region->base,
                                .bytes = region->bytes,
                                .rank = hip->params.rank,
                                .vmem = hip->vmem != NULL};
    struct hip_before before = iris_i_hip_enter(hip);
    int fd = -1;
    iris_status_t status = hip->vmem != NULL
                               ? iris_i_hip_vmem_export(hip, &handle, &fd)
                               : pool_export(hip, region, &handle);

    if (status == IRIS_OK) {
        memcpy(handle.pci, hip->pci, sizeof hip->pci);
        handle_p->fd = fd;
        handle_p->num_bytes = sizeof handle;
        memcpy(handle_p->bytes, &handle, sizeof handle);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

/* Is it a heap of another rank thread of this process? */
static bool is_here(const struct hip_handle *theirs)
{
    return theirs->pid == getpid() && theirs->pid_namespace == pid_namespace();
}

/* Whether kernels here need peer access for the heap. On NVIDIA it takes a
 * context on the peer's GPU, and opening a handle or mapping memory by request
 * does it by itself. */
static bool needs_access(const struct hip_backend *hip,
                         const struct hip_handle *theirs)
{
    return !IRIS_HIP_NVIDIA || (hip->vmem == NULL && is_here(theirs));
}

/* Says once if atomics on a peer's heap need not be atomic, as over PCIe. */
static void warn_of_atomics(struct hip_backend *hip, int peer,
                            const struct hip_handle *theirs)
{
    int native = 1;

    if (hip->warned_of_atomics) {
        return;
    }
    if (hipDeviceGetP2PAttribute(&native, hipDevP2PAttrNativeAtomicSupported,
                                 hip->device, peer) != hipSuccess) {
        (void)hipGetLastError(); /* it does not tell */
    }
    if (!native) {
        hip->warned_of_atomics = true;
        iris_i_warning(NULL,
                       "the link from GPU %d (%s) of rank %d to GPU %d (%s) of "
                       "rank %d has no atomics: iris_atomic_* and "
                       "iris_signal_add on that rank's heap may lose updates, "
                       "iris_store and iris_signal_set do not",
                       hip->device, hip->pci, hip->params.rank, peer,
                       theirs->pci, theirs->rank);
    }
}

/* Can this rank's GPU reach the peer's? */
static iris_status_t check_reach(struct hip_backend *hip,
                                 const struct hip_handle *theirs)
{
    int peer, can = 0;
    hipError_t error;

    if (strcmp(hip->pci, theirs->pci) == 0) {
        return hip->params.ranks_on_device > 1
                   ? IRIS_OK
                   : iris_i_fail(NULL, IRIS_ERR_BACKEND,
                                 "ranks %d and %d are both on GPU %s; give "
                                 "each rank its own, or let them share with "
                                 "IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu",
                                 hip->params.rank, theirs->rank, hip->pci);
    }
    error = hipDeviceGetByPCIBusId(&peer, theirs->pci);
    if (error != hipSuccess) {
        return iris_i_hip_fail(
            error,
            "rank %d does not see rank %d's GPU %s; let every rank see all "
            "GPUs (%s_VISIBLE_DEVICES)",
            hip->params.rank, theirs->rank, theirs->pci,
            IRIS_HIP_NVIDIA ? "CUDA" : "HIP");
    }
    error = hipDeviceCanAccessPeer(&can, hip->device, peer);
    if (error == hipSuccess && can && needs_access(hip, theirs)) {
        error = hipDeviceEnablePeerAccess(peer, 0);
        if (error == hipErrorPeerAccessAlreadyEnabled) {
            (void)hipGetLastError();
            error = hipSuccess;
        }
    }
    if (error == hipSuccess && can) {
        warn_of_atomics(hip, peer, theirs);
        return IRIS_OK;
    }
    (void)hipGetLastError();
    return iris_i_fail(NULL, IRIS_ERR_UNREACHABLE,
                       "GPU %d (%s) of rank %d cannot reach GPU %d (%s) of "
                       "rank %d: %s. Use GPUs that are linked, or "
                       "IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu",
                       hip->device, hip->pci, hip->params.rank, peer,
                       theirs->pci, theirs->rank,
                       error == hipSuccess ? "no peer access between them"
                                           : hipGetErrorString(error));
}

/* Opens the peer's allocation, or finds it open; the lock is held. */
static iris_status_t open_locked(const struct hip_backend *hip,
                                 const struct hip_handle *theirs,
                                 struct hip_opened **opened_p)
{
    const char *allocation = theirs->base - theirs->offset;
    struct hip_opened *one = opened;
    hipError_t error;

    while (one != NULL &&
           (one->generation != theirs->generation ||
            one->pid_namespace != theirs->pid_namespace ||
            one->pid != theirs->pid || one->allocation != allocation ||
            one->device != hip->device)) {
        one = one->next;
    }
    if (one == NULL) {
        one = calloc(1, sizeof *one);
        if (one == NULL) {
            return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
        }
        *one = (struct hip_opened){.generation = theirs->generation,
                                   .pid_namespace = theirs->pid_namespace,
                                   .pid = theirs->pid,
                                   .allocation = allocation,
                                   .device = hip->device};
        error = hipIpcOpenMemHandle(&one->base, theirs->ipc,
                                    hipIpcMemLazyEnablePeerAccess);
        if (error != hipSuccess) {
            free(one);
            return iris_i_hip_fail(error,
                                   "rank %d cannot map the heap of rank %d, "
                                   "process %d on GPU %s",
                                   hip->params.rank, theirs->rank,
                                   (int)theirs->pid, theirs->pci);
        }
        one->next = opened;
        opened = one;
    }
    one->refs++;
    *opened_p = one;
    return IRIS_OK;
}

static void close_opened(struct hip_opened *one)
{
    struct hip_opened **link = &opened;

    pthread_mutex_lock(&opened_lock);
    if (--one->refs == 0) {
        while (*link != one) {
            link = &(*link)->next;
        }
        *link = one->next;
        if (!iris_i_hip_keeps_all() &&
            hipIpcCloseMemHandle(one->base) != hipSuccess) {
            (void)hipGetLastError();
        }
        free(one);
    }
    pthread_mutex_unlock(&opened_lock);
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
        iris_i_hip_borrow(import, theirs->generation);
        return IRIS_OK;
    }
    if (hip->vmem != NULL) {
        return iris_i_hip_vmem_import(hip, theirs, fd, import);
    }
    pthread_mutex_lock(&opened_lock);
    status = open_locked(hip, theirs, &import->opened);
    pthread_mutex_unlock(&opened_lock);
    if (status == IRIS_OK) {
        import->base = (char *)import->opened->base + theirs->offset;
    }
    return status;
}

iris_status_t iris_i_hip_heap_import(struct iris_backend *backend,
                                     const struct iris_heap_handle *handle,
                                     size_t bytes, void **base_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_handle theirs;
    struct hip_import *mapped;
    iris_status_t status;
    struct hip_before before;

    if (handle->num_bytes != sizeof theirs) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "a peer's heap handle has %u bytes instead of %zu: "
                           "the ranks use different builds of this library",
                           (unsigned)handle->num_bytes, sizeof theirs);
    }
    memcpy(&theirs, handle->bytes, sizeof theirs);
    if (theirs.bytes != bytes) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "a peer's heap has %llu bytes instead of %zu",
                           (unsigned long long)theirs.bytes, bytes);
    }
    if (theirs.vmem != (hip->vmem != NULL)) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d has IRIS_ALLOCATOR=%s, rank %d another; "
                           "give all ranks the same",
                           hip->params.rank,
                           hip->vmem != NULL ? "vmem" : "pool", theirs.rank);
    }
    mapped = calloc(1, sizeof *mapped);
    if (mapped == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for the record of a peer's heap");
    }
    before = iris_i_hip_enter(hip);
    status = import(hip, &theirs, handle->fd, mapped);
    iris_i_hip_leave(hip, before);
    if (status != IRIS_OK) {
        free(mapped);
        return status;
    }
    mapped->bytes = hip->vmem != NULL ? hip->heap.bytes : bytes;
    mapped->next = hip->imports;
    hip->imports = mapped;
    *base_p = mapped->base;
    return IRIS_OK;
}

void iris_i_hip_heap_unimport(struct iris_backend *backend, void *base,
                              size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_import **link = &hip->imports;
    struct hip_import *mapped;
    struct hip_before before;

    (void)bytes;
    while (*link != NULL && (*link)->base != base) {
        link = &(*link)->next;
    }
    mapped = *link;
    if (mapped == NULL) {
        iris_i_error(NULL, "rank %d: no peer's heap is mapped at %p",
                     hip->params.rank, base);
        return;
    }
    *link = mapped->next;
    before = iris_i_hip_enter(hip);
    if (mapped->borrowed != 0) {
        iris_i_hip_unborrow(mapped);
    } else if (mapped->opened != NULL) {
        close_opened(mapped->opened);
    } else if (mapped->room.bytes != 0) {
        iris_i_hip_vmem_unimport(hip, mapped);
    }
    iris_i_hip_leave(hip, before);
    free(mapped);
}

bool iris_i_hip_is_heap(const struct hip_backend *hip, const void *ptr)
{
    const struct hip_import *mapped = hip->imports;

    if ((uintptr_t)ptr - (uintptr_t)hip->heap.base < hip->heap.bytes) {
        return true;
    }
    while (mapped != NULL &&
           (uintptr_t)ptr - (uintptr_t)mapped->base >= mapped->bytes) {
        mapped = mapped->next;
    }
    return mapped != NULL;
}
