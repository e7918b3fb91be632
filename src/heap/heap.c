/* SPDX-License-Identifier: MIT
 *
 * The heap's making and unmaking: this rank's memory, its records, and every
 * peer's mapping.
 */
#include "config.h"

#include "heap/heap.h"

#include "heap/deferred.h"

#include "base/wait.h"
#include "control/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The allocator's first range is the library's own, with memory committed. */
static iris_status_t make_records(struct iris_heap *heap)
{
    struct iris_device_info info;
    size_t pieces, offset;
    iris_status_t status = IRIS_OK;

    iris_i_device_info(heap->backend, &info);
    heap->piece_bytes = info.page_bytes > IRIS_COMMIT_BYTES ? info.page_bytes
                                                            : IRIS_COMMIT_BYTES;
    pieces = heap->region.bytes / heap->piece_bytes + 1;
    heap->committed = calloc(pieces / 64 + 1, sizeof heap->committed[0]);
    heap->fresh = calloc(pieces / 64 + 1, sizeof heap->fresh[0]);
    heap->offers = calloc(pieces / 2 + 1, sizeof heap->offers[0]);
    if (heap->region.window_bytes > 0) {
        status = iris_i_alloc_create(heap->region.window_bytes, &heap->window);
    }
    if (status != IRIS_OK || heap->committed == NULL || heap->fresh == NULL ||
        heap->offers == NULL ||
        iris_i_alloc_create(heap->region.bytes, &heap->alloc) != IRIS_OK ||
        iris_i_alloc_take(heap->alloc, heap->reserved_bytes, IRIS_ALIGNMENT,
                          &offset) != IRIS_OK) {
        return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the heap's own records");
    }
    if (heap->region.commit == IRIS_COMMIT_NOTHING) {
        heap->num_committed = pieces;
        return IRIS_OK;
    }
    status = iris_i_heap_commit(heap, 0, heap->reserved_bytes);
    if (status == IRIS_OK) { /* peers get it with the heap */
        iris_i_heap_keep(heap);
    }
    return status;
}

iris_status_t iris_i_heap_open(struct iris_heap *heap, size_t bytes,
                               size_t reserved_bytes)
{
    iris_status_t status;

    pthread_mutex_init(&heap->externals_lock, NULL);
    pthread_mutex_init(&heap->names_lock, NULL);
    pthread_mutex_init(&heap->deferred.lock, NULL);
    heap->reserved_bytes = reserved_bytes;
    status = iris_i_memory_alloc(heap->backend, bytes, &heap->region);
    return status == IRIS_OK ? make_records(heap) : status;
}

iris_status_t iris_i_heap_export(const struct iris_heap *heap,
                                 struct iris_heap_handle *handle_p)
{
    return iris_i_memory_export(heap->backend, &heap->region, handle_p);
}

/* A peer that died has taken its memory with it. */
static iris_status_t fail_import(const struct iris_heap *heap,
                                 iris_status_t status)
{
    char message[IRIS_MESSAGE_BYTES];
    struct iris_wait wait;
    iris_status_t lost;

    snprintf(message, sizeof message, "%s", iris_last_error());
    iris_i_wait_moment(&wait, IRIS_DEATH_MS);
    do {
        lost = iris_i_peers_check_all(heap->control);
    } while (lost == IRIS_OK && iris_i_wait_tick(&wait) == IRIS_OK);
    return lost != IRIS_OK ? lost : iris_i_fail_again(status, message);
}

static iris_status_t map_peer(struct iris_heap *heap, int rank,
                              const struct iris_heap_handle *handle,
                              void **base_p)
{
    if (rank == heap->log->rank) {
        *base_p = heap->region.base;
        return IRIS_OK;
    }
    if (handle == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_UNREACHABLE,
                           "rank %d is on another node than rank %d, whose "
                           "memory cannot be mapped here",
                           rank, heap->log->rank);
    }
    return iris_i_memory_import(heap->backend, handle, heap->region.bytes,
                                base_p);
}

/* Some drivers have mapped other memory, without an error (ROCm/rocm-systems
 * #11892). *wrong_p: this is not the peer's heap. */
static iris_status_t check_peer(struct iris_heap *heap, int rank,
                                const struct iris_heap_peers *peers,
                                const char *base, int *wrong_p)
{
    uint64_t id = peers->id(peers->arg, rank), seen = 0;
    iris_status_t status =
        iris_i_heap_copy(heap, &seen, base + peers->id_offset, sizeof seen);

    *wrong_p = status == IRIS_OK && seen != id;
    return *wrong_p
               ? iris_i_fail(heap->log, IRIS_ERR_SYSTEM,
                             "what is mapped on rank %d as the heap of rank %d "
                             "is other memory: it begins with %llx instead of "
                             "%llx; start the job again, or set "
                             "IRIS_ALLOCATOR=vmem",
                             heap->log->rank, rank, (unsigned long long)seen,
                             (unsigned long long)id)
               : status;
}

/* Maps a peer's heap; once more if it is other memory. A thread of this process
 * has not mapped it by a handle, but says where it is. */
static iris_status_t map_and_check(struct iris_heap *heap, int rank,
                                   const struct iris_heap_peers *peers,
                                   void **base_p)
{
    const struct iris_heap_handle *handle = peers->handle(peers->arg, rank);
    iris_status_t status = IRIS_OK;
    int wrong = 1;

    for (int tries = 0; wrong && tries < 2; tries++) {
        status = map_peer(heap, rank, handle, base_p);
        if (status != IRIS_OK || rank == heap->log->rank ||
            !iris_i_control_is_remote(heap->control, rank)) {
            return status;
        }
        status = check_peer(heap, rank, peers, *base_p, &wrong);
        if (status != IRIS_OK) {
            iris_i_memory_unimport(heap->backend, *base_p, heap->region.bytes);
        }
    }
    return status;
}

iris_status_t iris_i_heap_connect(struct iris_heap *heap,
                                  struct iris_members *world,
                                  const struct iris_heap_peers *peers)
{
    size_t num_ranks = (size_t)heap->log->num_ranks;

    heap->world = world;
    heap->control = world->control;
    heap->bases = calloc(num_ranks, sizeof heap->bases[0]);
    heap->reachable = calloc(num_ranks, sizeof heap->reachable[0]);
    if (heap->bases == NULL || heap->reachable == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY, "no memory");
    }
    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        void *base = NULL;
        iris_status_t status = map_and_check(heap, rank, peers, &base);

        if (status == IRIS_ERR_UNREACHABLE && !peers->require_all) {
            iris_i_debug(heap->log, "rank %d is unreachable: %s", rank,
                         iris_last_error());
            continue;
        }
        if (status != IRIS_OK) {
            return fail_import(heap, status);
        }
        heap->bases[rank] = (int64_t)(uintptr_t)base;
        heap->reachable[rank] = 1;
    }
    return IRIS_OK;
}

static void unmap_peer(struct iris_heap *heap, int rank)
{
    iris_i_memory_unimport(heap->backend, (void *)(uintptr_t)heap->bases[rank],
                           heap->region.bytes);
    heap->bases[rank] = 0;
    heap->reachable[rank] = 0;
}

static const struct iris_call_type reach_call = {.name = "iris_init"};

/* Whether `rank` has said that it reaches this one. */
static int is_reached_by(const struct iris_heap *heap, int rank)
{
    unsigned char theirs[IRIS_PAYLOAD_BYTES];
    size_t bytes =
        iris_i_agree_payload(heap->world, rank, theirs, sizeof theirs);

    return (size_t)heap->log->rank < bytes && theirs[heap->log->rank];
}

/* Ends a CPU kernel ahead of an operation on a heap that is not mapped. */
static iris_status_t guard(void *self, const struct iris_cpu_event *event)
{
    const struct iris_heap *heap = self;
    char why[128];

    if (event->after || event->target_rank < 0 ||
        event->target_rank >= heap->log->num_ranks ||
        heap->reachable[event->target_rank]) {
        return IRIS_OK;
    }
    snprintf(why, sizeof why,
             "rank %d's heap is not mapped on rank %d: they are on different "
             "nodes; ask iris_is_reachable() first",
             event->target_rank, heap->log->rank);
    return iris_i_fail_access(event, IRIS_ERR_UNREACHABLE, why);
}

static iris_status_t open_guard(struct iris_heap *heap)
{
    size_t num_ranks = (size_t)heap->log->num_ranks;

    if (memchr(heap->reachable, 0, num_ranks) == NULL || heap->hooks == NULL) {
        return IRIS_OK;
    }
    heap->guard.device = guard;
    heap->guard.self = heap;
    return iris_i_hooks_add(heap->hooks, &heap->guard);
}

iris_status_t iris_i_heap_agree_on_reach(struct iris_heap *heap, int *changed_p)
{
    struct iris_call call = {.type = &reach_call,
                             .payload = heap->reachable,
                             .payload_bytes = (size_t)heap->log->num_ranks};
    iris_status_t status = iris_i_agree(heap->world, &call);

    *changed_p = 0;
    for (int rank = 0; status == IRIS_OK && rank < heap->log->num_ranks;
         rank++) {
        if (heap->reachable[rank] && !is_reached_by(heap, rank)) {
            iris_i_debug(heap->log, "rank %d does not reach rank %d", rank,
                         heap->log->rank);
            unmap_peer(heap, rank);
            *changed_p = 1;
        }
    }
    return status == IRIS_OK ? open_guard(heap) : status;
}

void iris_i_heap_disconnect(struct iris_heap *heap)
{
    /* The reverse of iris_i_heap_connect(): a backend finds the latest first. */
    for (int rank = heap->log->num_ranks - 1; heap->bases != NULL && rank >= 0;
         rank--) {
        if (rank != heap->log->rank && heap->bases[rank] != 0) {
            unmap_peer(heap, rank);
        }
    }
}

void iris_i_heap_close(struct iris_heap *heap)
{
    iris_i_deferred_close(heap);
    iris_i_heap_disconnect(heap);
    if (heap->guard.device != NULL) {
        iris_i_hooks_remove(heap->hooks, &heap->guard);
    }
    if (heap->region.base != NULL) {
        iris_i_memory_free(heap->backend, &heap->region);
    }
    iris_i_external_close(heap);
    iris_i_heap_names_close(heap);
    iris_i_alloc_destroy(heap->window);
    iris_i_alloc_destroy(heap->alloc);
    free(heap->offers);
    free(heap->fresh);
    free(heap->committed);
    free(heap->reachable);
    free(heap->bases);
}
