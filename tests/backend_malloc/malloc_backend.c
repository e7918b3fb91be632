/* SPDX-License-Identifier: MIT
 *
 * A backend over malloc(): heaps that rank threads of one process share, and
 * streams that run everything at once, in the thread that enqueues it.
 * docs/backends.md quotes this file.
 */
#include "config.h"

#include "backend_malloc/malloc_backend.h"

#include <iris/heap.h>
#include <iris/launch.h>

#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct malloc_backend {
    struct iris_backend base; /* first, so that one is the other */
    struct iris_backend_params params;
    struct iris_heap_region heap; /* this rank's */
    pthread_mutex_t lock; /* held while something runs: one thing at a time */
};

static iris_status_t no_memory(const char *what)
{
    return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %s", what);
}

/* ---- Heaps ---- */

#define UNIT IRIS_ALIGNMENT_MAX

/* Lies right before a heap's base, so that the base is enough to find it. */
struct malloc_heap {
    size_t bytes;
    atomic_uint refs; /* the owner and who has imported it */
};

/* What a handle's bytes hold: an address, and the process it is of. */
struct malloc_handle {
    void *base;
    pid_t pid;
};

static struct malloc_heap *heap_of(void *base)
{
    return (struct malloc_heap *)base - 1;
}

/* More than the machine has is refused here: zeroing it would end it. */
static iris_status_t heap_alloc(struct iris_backend *backend, size_t bytes,
                                struct iris_heap_region *region_p)
{
    size_t most = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)getpagesize();
    size_t more = (bytes / UNIT + 2) * UNIT;
    char *raw = bytes > most ? NULL : aligned_alloc(UNIT, more), *base;

    if (raw == NULL) {
        return no_memory("a heap; lower IRIS_HEAP_SIZE");
    }
    base = raw + UNIT;
    memset(base, 0, bytes);
    heap_of(base)->bytes = bytes;
    atomic_init(&heap_of(base)->refs, 1);
    *region_p = (struct iris_heap_region){
        .base = base, .bytes = bytes, .commit = IRIS_COMMIT_NOTHING};
    ((struct malloc_backend *)backend)->heap = *region_p;
    return IRIS_OK;
}

static void heap_unimport(struct iris_backend *backend, void *base,
                          size_t bytes)
{
    (void)backend, (void)bytes;
    if (atomic_fetch_sub(&heap_of(base)->refs, 1) == 1) {
        free((char *)base - UNIT);
    }
}

/* A peer's kernel may use it for longer, where a rank has left in haste. */
static void heap_free(struct iris_backend *backend,
                      struct iris_heap_region *region)
{
    heap_unimport(backend, region->base, region->bytes);
}

static iris_status_t heap_export(struct iris_backend *backend,
                                 const struct iris_heap_region *region,
                                 struct iris_heap_handle *handle_p)
{
    const struct malloc_handle handle = {region->base, getpid()};

    (void)backend;
    handle_p->fd = -1;
    handle_p->num_bytes = sizeof handle;
    memcpy(handle_p->bytes, &handle, sizeof handle);
    return IRIS_OK;
}

static iris_status_t heap_import(struct iris_backend *backend,
                                 const struct iris_heap_handle *handle,
                                 size_t bytes, void **base_p)
{
    struct malloc_handle theirs;

    (void)backend;
    memcpy(&theirs, handle->bytes, sizeof theirs);
    if (theirs.pid != getpid()) {
        return iris_i_fail(NULL, IRIS_ERR_UNREACHABLE,
                           "the malloc backend is for ranks of one process "
                           "(IRIS_SPAWN=threads)");
    }
    if (heap_of(theirs.base)->bytes != bytes) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "a peer's heap has %zu bytes instead of %zu",
                           heap_of(theirs.base)->bytes, bytes);
    }
    atomic_fetch_add(&heap_of(theirs.base)->refs, 1);
    *base_p = theirs.base;
    return IRIS_OK;
}

static const struct iris_memory_ops memory_ops = {
    .alloc = heap_alloc,
    .free = heap_free,
    .check_access = iris_i_all_accessible,
    .export_heap = heap_export,
    .import_heap = heap_import,
    .unimport_heap = heap_unimport,
    IRIS_ALL_COMMITTED_SLOTS,
    IRIS_NO_RANGE_SLOTS,
    IRIS_NO_PIN_SLOTS,
};

/* ---- Streams ---- */

static iris_status_t stream_create(struct iris_backend *backend,
                                   struct iris_stream **stream_p)
{
    struct iris_stream *stream = calloc(1, sizeof *stream);

    if (stream == NULL) {
        return no_memory("a stream");
    }
    stream->backend = backend;
    *stream_p = stream;
    return IRIS_OK;
}

static void stream_destroy(struct iris_stream *stream)
{
    free(stream);
}

static pthread_mutex_t *lock_of(const struct iris_stream *stream)
{
    return &((struct malloc_backend *)stream->backend)->lock;
}

static iris_status_t copy(struct iris_stream *stream, void *dst,
                          const void *src, size_t bytes)
{
    pthread_mutex_lock(lock_of(stream));
    memmove(dst, src, bytes);
    pthread_mutex_unlock(lock_of(stream));
    return IRIS_OK;
}

static iris_status_t set(struct iris_stream *stream, void *dst, int value,
                         size_t bytes)
{
    pthread_mutex_lock(lock_of(stream));
    memset(dst, value, bytes);
    pthread_mutex_unlock(lock_of(stream));
    return IRIS_OK;
}

/* What was enqueued has been done. */
static iris_status_t synchronize(struct iris_stream *stream)
{
    return iris_i_fault_check(stream->backend);
}

static int query(struct iris_stream *stream, uint64_t *target_p)
{
    (void)stream, (void)target_p;
    return 1;
}

/* Another thread's kernel, if it waits, is about to end. */
static iris_status_t clear_fault(struct iris_backend *backend)
{
    pthread_mutex_lock(&((struct malloc_backend *)backend)->lock);
    iris_i_fault_clear(backend);
    pthread_mutex_unlock(&((struct malloc_backend *)backend)->lock);
    return IRIS_OK;
}

static void renumber(struct iris_backend *backend, int rank, int num_ranks)
{
    ((struct malloc_backend *)backend)->params.rank = rank;
    ((struct malloc_backend *)backend)->params.num_ranks = num_ranks;
}

/* ---- Kernels ---- */

/* The instance's fault itself is what ends kernels that wait. */
static void stop(void *stream, iris_status_t status, enum iris_cpu_stop why,
                 const struct iris_cpu_wg *cpu)
{
    (void)why, (void)cpu;
    (void)iris_i_fault_set(((struct iris_stream *)stream)->backend, status,
                           iris_last_error());
}

static void ended(void *stream, const struct iris_cpu_wg *cpu)
{
    (void)stream, (void)cpu; /* the message says enough */
}

static void progress(void *stream, const struct iris_cpu_wg *cpu, uint32_t grid,
                     uint32_t *begun_p, uint32_t *done_p)
{
    (void)stream, (void)grid;
    *begun_p = cpu->workgroup + 1;
    *done_p = cpu->workgroup;
}

static iris_status_t launch(struct iris_stream *stream,
                            const struct iris_launch *launch)
{
    static const struct iris_cpu_job_ops ops = {
        .stop = stop, .ended = ended, .progress = progress};
    struct malloc_backend *backend = (struct malloc_backend *)stream->backend;
    struct iris_host_event event;
    struct iris_cpu_job job = {.ops = &ops,
                               .stream = stream,
                               .params = &backend->params,
                               .stopped = &backend->base.fault.status,
                               .heap = backend->heap,
                               .kernel = launch->kernel,
                               .grid = launch->grid,
                               .block = launch->block,
                               .args = launch->args};

    if (launch->kernel->cpu_entry == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "kernel %s has no CPU version in this program",
                           launch->kernel->name);
    }
    pthread_mutex_lock(&backend->lock);
    iris_i_cpu_job_begin(&job, &event);
    for (uint32_t i = 0; i < job.grid && *job.stopped == IRIS_OK; i++) {
        iris_i_cpu_job_run(&job, i);
    }
    iris_i_cpu_job_end(&job, &event, IRIS_OK);
    pthread_mutex_unlock(&backend->lock);
    return IRIS_OK; /* if the kernel failed, that is the fault by now */
}

static const struct iris_queue_ops queue_ops = {
    .synchronize = synchronize,
    .query = query,
    .copy = copy,
    .copy_rows = iris_i_no_copy_rows,
    .set = set,
    .launch = launch,
    .signal = iris_i_no_signal,
    .wait = iris_i_no_wait,
    .follow = iris_i_no_follow,
    .capture_begin = iris_i_no_capture_begin,
    .capture_end = iris_i_no_capture_end,
    .graph_launch = iris_i_no_graph_launch,
    .native = iris_i_no_native,
    .call = iris_i_no_call,
};

/* ---- Opening and closing ---- */

static void malloc_close(struct iris_backend *backend)
{
    pthread_mutex_destroy(&((struct malloc_backend *)backend)->lock);
    free(backend);
}

static void malloc_info(const struct iris_backend *backend,
                        struct iris_device_info *info_p)
{
    (void)backend;
    *info_p = (struct iris_device_info){.name = "malloc",
                                        .num_cus = 1,
                                        .wavefront = 1,
                                        .page_bytes = (size_t)getpagesize()};
}

static const struct iris_device_ops device_ops = {
    .info = malloc_info,
    .stream_create = stream_create,
    .stream_wrap = iris_i_no_stream_wrap,
    .stream_destroy = stream_destroy,
    .graph_destroy = iris_i_no_graph_destroy,
    .clear_fault = clear_fault,
    .renumber = renumber,
    .close = malloc_close,
};

static iris_status_t malloc_probe(int *num_devices_p)
{
    *num_devices_p = 1;
    return IRIS_OK;
}

static iris_status_t malloc_survey(struct iris_survey *survey_p)
{
    *survey_p = (struct iris_survey){
        .runtime = "malloc",
        .num_devices = 1,
        .devices = {{.name = "process", .access = 1, .atomics = 1}},
    };
    return IRIS_OK;
}

static iris_status_t malloc_open(const struct iris_backend_params *params,
                                 struct iris_backend **backend_p)
{
    struct malloc_backend *backend;

    if (params->vmem) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "IRIS_ALLOCATOR=vmem needs a GPU; here use pool");
    }
    backend = calloc(1, sizeof *backend);
    if (backend == NULL) {
        return no_memory("a backend");
    }
    backend->base.type = &malloc_backend_type;
    backend->base.device = &device_ops;
    backend->base.memory = &memory_ops;
    backend->base.queue = &queue_ops;
    iris_i_backend_made(&backend->base);
    pthread_mutex_init(&backend->lock, NULL);
    backend->params = *params;
    if (params->device_timeout_ms == 0) {
        /* Who enqueues a kernel waits for it: no longer than a synchronize. */
        backend->params.device_timeout_ms = params->waiter->timeout_ms;
    }
    *backend_p = &backend->base;
    return IRIS_OK;
}

const struct iris_backend_type malloc_backend_type = {
    .name = "malloc",
    .probe = malloc_probe,
    .survey = malloc_survey,
    .open = malloc_open,
};
