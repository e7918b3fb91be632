/* SPDX-License-Identifier: MIT
 *
 * Simulated heaps: unnamed shared memory.
 *
 * A heap is a file without a name, mapped by the rank that made it. Other
 * processes map the file by a descriptor of their own, which comes in the handle.
 * Rank threads of one process use the owner's mapping, so that pointers compare
 * equal and race detectors see one memory; it counts its users, and the last one
 * unmaps it. Mappings stay, though, if a kernel that could not be ended may still
 * use them.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include "backend/backend.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A heap's mapping in the process that made it. Rank threads of that process
 * use the same mapping, so that pointers compare equal and race detectors see
 * one memory. The last of them unmaps it. */
struct sim_mapping {
    void *base;
    size_t bytes;
    int fd;                 /* the owner's; importers do not use it */
    uint64_t pid_namespace; /* that of the owner's process */
    int64_t pid;
    atomic_uint refs;
    atomic_bool keep; /* a kernel that could not be ended may still use it */
};

/* The bytes of a handle. A pid is unique only in its namespace, and two
 * containers that share a network may both have pid 1. */
struct sim_handle {
    uint64_t pid_namespace;
    int64_t pid;
    struct sim_mapping *mapping; /* valid in that process only */
};

_Static_assert(sizeof(struct sim_handle) <= IRIS_HANDLE_BYTES,
               "a sim handle fits in a heap handle");

struct sim_import {
    struct sim_import *next;
    void *base;
    struct sim_mapping *mapping; /* NULL: mapped for this import alone */
};

static void put_mapping(const struct sim_backend *sim,
                        struct sim_mapping *mapping)
{
    if (sim->abandoned) {
        atomic_store(&mapping->keep, true);
    }
    if (atomic_fetch_sub(&mapping->refs, 1) != 1) {
        return;
    }
    if (!atomic_load(&mapping->keep)) {
        iris_i_shm_unmap(mapping->base, mapping->bytes);
    }
    free(mapping);
}

static uint64_t read_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

static iris_status_t alloc_heap(struct iris_backend *backend, size_t bytes,
                                struct iris_heap_region *region_p)
{
    struct sim_mapping *mapping = calloc(1, sizeof *mapping);
    iris_status_t status;

    if (mapping == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for a heap's record");
    }
    mapping->fd = -1;
    status = iris_i_shm_create(bytes, &mapping->fd);
    status =
        status ? status : iris_i_shm_map(mapping->fd, bytes, &mapping->base);
    if (status != IRIS_OK) {
        if (mapping->fd >= 0) {
            close(mapping->fd);
        }
        free(mapping);
        return status;
    }
    mapping->bytes = bytes;
    mapping->pid_namespace = read_namespace();
    mapping->pid = getpid();
    atomic_init(&mapping->refs, 1);
    memset(region_p, 0, sizeof *region_p);
    region_p->base = mapping->base;
    region_p->bytes = bytes;
    region_p->commit = IRIS_COMMIT_SHARED;
    region_p->guarded = 1;
    region_p->ahead_bytes = iris_i_shm_guard_bytes();
    region_p->cookie = mapping;
    ((struct sim_backend *)backend)->heap = *region_p;
    return IRIS_OK;
}

static void free_heap(struct iris_backend *backend,
                      struct iris_heap_region *region)
{
    const struct sim_backend *sim = (const struct sim_backend *)backend;
    struct sim_mapping *mapping = region->cookie;

    close(mapping->fd);
    put_mapping(sim, mapping);
}

/* Limits a range to the heap's end. The core passes whole pieces; memory beyond
 * the end would make the file longer than peers expect. */
static size_t clip_range(const struct sim_backend *sim, size_t offset,
                         size_t bytes)
{
    size_t left = sim->heap.bytes - offset;

    return bytes > left ? left : bytes;
}

static iris_status_t commit_heap(struct iris_backend *backend, void *at,
                                 size_t bytes)
{
    const struct sim_backend *sim = (const struct sim_backend *)backend;
    const struct sim_mapping *mapping = sim->heap.cookie;
    size_t offset = (size_t)((char *)at - (char *)sim->heap.base);

    return iris_i_shm_commit(mapping->fd, offset,
                             clip_range(sim, offset, bytes));
}

static void decommit_heap(struct iris_backend *backend, void *at, size_t bytes)
{
    const struct sim_backend *sim = (const struct sim_backend *)backend;
    const struct sim_mapping *mapping = sim->heap.cookie;
    size_t offset = (size_t)((char *)at - (char *)sim->heap.base);

    iris_i_shm_decommit(mapping->fd, offset, clip_range(sim, offset, bytes));
}

static iris_status_t export_heap(struct iris_backend *backend,
                                 const struct iris_heap_region *region,
                                 struct iris_heap_handle *handle_p)
{
    struct sim_mapping *mapping = region->cookie;
    const struct sim_handle handle = {.pid_namespace = mapping->pid_namespace,
                                      .pid = mapping->pid,
                                      .mapping = mapping};
    int fd = fcntl(mapping->fd, F_DUPFD_CLOEXEC, 0);

    (void)backend;
    if (fd < 0) {
        return iris_i_fail_fd(errno, "cannot name a heap to other ranks");
    }
    handle_p->fd = fd;
    handle_p->num_bytes = sizeof handle;
    memcpy(handle_p->bytes, &handle, sizeof handle);
    return IRIS_OK;
}

/* Maps the file behind a peer's handle, after checking its size against the
 * peer's: access beyond a file's end raises SIGBUS. */
static iris_status_t map_peer(int fd, size_t bytes, void **base_p)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "a peer's heap came without a usable file "
                                 "descriptor");
    }
    if (st.st_size < 0 || (uint64_t)st.st_size != bytes) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "a peer's heap has %lld bytes instead of %zu",
                           (long long)st.st_size, bytes);
    }
    return iris_i_shm_map(fd, bytes, base_p);
}

/* The handle's mapping if this process made it, else NULL. A rank imports every
 * peer's heap, so it asks the system for its own identity only once, for its
 * own heap. */
static struct sim_mapping *find_own(const struct sim_backend *sim,
                                    const struct iris_heap_handle *handle)
{
    const struct sim_mapping *own = sim->heap.cookie;
    struct sim_handle theirs;

    memcpy(&theirs, handle->bytes, sizeof theirs);
    return own != NULL && theirs.pid == own->pid &&
                   theirs.pid_namespace == own->pid_namespace
               ? theirs.mapping
               : NULL;
}

static iris_status_t import_heap(struct iris_backend *backend,
                                 const struct iris_heap_handle *handle,
                                 size_t bytes, void **base_p)
{
    struct sim_backend *sim = (struct sim_backend *)backend;
    struct sim_import *import;
    iris_status_t status = IRIS_OK;

    if (handle->num_bytes != sizeof(struct sim_handle)) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "a peer's heap handle has %u bytes instead of %zu: "
                           "the ranks use different builds of this library",
                           (unsigned)handle->num_bytes,
                           sizeof(struct sim_handle));
    }
    import = calloc(1, sizeof *import);
    if (import == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for the record of a peer's heap");
    }
    import->mapping = find_own(sim, handle);
    if (import->mapping == NULL) {
        status = map_peer(handle->fd, bytes, &import->base);
    } else if (import->mapping->bytes != bytes) {
        status = iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                             "a peer's heap has %zu bytes instead of %zu",
                             import->mapping->bytes, bytes);
    } else {
        atomic_fetch_add(&import->mapping->refs, 1);
        import->base = import->mapping->base;
    }
    if (status != IRIS_OK) {
        free(import);
        return status;
    }
    import->next = sim->imports;
    sim->imports = import;
    *base_p = import->base;
    return IRIS_OK;
}

static void unimport_heap(struct iris_backend *backend, void *base,
                          size_t bytes)
{
    struct sim_backend *sim = (struct sim_backend *)backend;
    struct sim_import **link = &sim->imports;
    struct sim_import *import;

    while (*link != NULL && (*link)->base != base) {
        link = &(*link)->next;
    }
    import = *link;
    if (import == NULL) {
        iris_i_error(NULL, "rank %d: no peer's heap is mapped at %p",
                     sim->params.rank, base);
        return;
    }
    *link = import->next;
    if (import->mapping != NULL) {
        put_mapping(sim, import->mapping);
    } else if (!sim->abandoned) {
        iris_i_shm_unmap(base, bytes);
    }
    free(import);
}

const struct iris_memory_ops iris_i_sim_heap_ops = {
    .alloc = alloc_heap,
    .free = free_heap,
    .check_access = iris_i_all_accessible,
    .export_heap = export_heap,
    .import_heap = import_heap,
    .unimport_heap = unimport_heap,
    .commit = commit_heap,
    .decommit = decommit_heap,
    IRIS_NO_RANGE_SLOTS,
    IRIS_NO_PIN_SLOTS,
};
