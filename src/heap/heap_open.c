/* SPDX-License-Identifier: MIT
 *
 * Opens and closes the heap.
 */
#include "config.h"

#include "heap/heap.h"

#include "backend/calls.h"
#include "base/base.h"
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

iris_status_t iris_i_heap_open(struct iris_heap *heap,
                               const struct iris_heap_params *params)
{
    struct iris_heap_memory *memory = &heap->memory;
    iris_status_t status;

    heap->log = memory->log = params->log;
    memory->backend = params->backend;
    memory->stream = params->stream;
    heap->hooks = params->hooks;
    heap->names.reserved_bytes = params->reserved_bytes;
    heap->names.red_zone_bytes = params->red_zone_bytes;
    pthread_mutex_init(&heap->deferred.lock, NULL);
    status = iris_i_heap_memory_open(memory, params->bytes);
    if (status != IRIS_OK) {
        return status;
    }
    heap->offers = calloc(memory->region.bytes / memory->piece_bytes / 2 + 1,
                          sizeof heap->offers[0]);
    if (iris_i_heap_names_open(&heap->names, memory) != IRIS_OK ||
        iris_i_window_open(&heap->window, memory) != IRIS_OK ||
        heap->offers == NULL) {
        return iris_i_fail(memory->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the heap's own records");
    }
    status = iris_i_heap_commit(memory, 0, params->reserved_bytes);
    if (status == IRIS_OK) { /* peers get it with the heap */
        iris_i_heap_keep(memory);
    }
    return status;
}

iris_status_t iris_i_heap_export(const struct iris_heap *heap,
                                 struct iris_heap_handle *handle_p)
{
    return iris_i_memory_export(heap->memory.backend, &heap->memory.region,
                                handle_p);
}

/* Reports a failed import. If the peer died, its memory is gone with it. */
static iris_status_t fail_import(const struct iris_heap *heap,
                                 iris_status_t status)
{
    char message[IRIS_MESSAGE_BYTES];
    struct iris_wait wait;
    iris_status_t lost;

    snprintf(message, sizeof message, "%s", iris_last_error());
    iris_i_wait_moment(&wait, IRIS_DEATH_MS);
    do {
        lost = iris_i_peers_check_all(heap->memory.control);
    } while (lost == IRIS_OK && iris_i_wait_tick(&wait) == IRIS_OK);
    return lost != IRIS_OK ? lost : iris_i_fail_again(status, message);
}

static iris_status_t map_peer(struct iris_heap *heap, int rank,
                              const struct iris_heap_handle *handle,
                              void **base_p)
{
    if (rank == heap->log->rank) {
        *base_p = iris_i_heap_base(&heap->memory);
        return IRIS_OK;
    }
    if (iris_i_heap_is_far(&heap->memory, rank)) {
        return iris_i_fail(heap->log, IRIS_ERR_UNREACHABLE,
                           "rank %d is on another node than rank %d, whose "
                           "memory cannot be mapped here",
                           rank, heap->log->rank);
    }
    return iris_i_memory_import(heap->memory.backend, handle,
                                iris_i_heap_bytes(&heap->memory), base_p);
}

/* Some drivers have mapped other memory, without an error (ROCm/rocm-systems
 * #11892). *wrong_p: this is not the peer's heap. */
static iris_status_t check_peer(struct iris_heap *heap, int rank,
                                const struct iris_heap_peers *peers,
                                const char *base, int *wrong_p)
{
    uint64_t id = peers->id(peers->arg, rank), seen = 0;
    iris_status_t status = iris_i_heap_copy(
        &heap->memory, &seen, base + peers->id_offset, sizeof seen);

    *wrong_p = status == IRIS_OK && seen != id;
    return *wrong_p
               ? iris_i_fail(heap->log, IRIS_ERR_SYSTEM,
                             "the memory that rank %d mapped as rank %d's heap "
                             "is other memory: it begins with %llx instead of "
                             "%llx; start the job again, or set "
                             "IRIS_ALLOCATOR=vmem",
                             heap->log->rank, rank, (unsigned long long)seen,
                             (unsigned long long)id)
               : status;
}

/* Maps a peer's heap, and tries once more if the wrong memory was mapped. A
 * peer that is a thread of this process is not mapped by a handle: its address
 * is used. */
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
            !iris_i_control_is_remote(heap->memory.control, rank)) {
            return status;
        }
        status = check_peer(heap, rank, peers, *base_p, &wrong);
        if (status != IRIS_OK) {
            iris_i_memory_unimport(heap->memory.backend, *base_p,
                                   iris_i_heap_bytes(&heap->memory));
        }
    }
    return status;
}

static void number_nodes(struct iris_heap_memory *memory,
                         const struct iris_heap_peers *peers)
{
    for (int rank = 0; rank < memory->log->num_ranks; rank++) {
        int first = 0;

        while (first < rank && !peers->same_node(peers->arg, first, rank)) {
            first++;
        }
        memory->nodes[rank] =
            first < rank ? memory->nodes[first] : memory->num_nodes++;
    }
}

iris_status_t iris_i_heap_connect(struct iris_heap *heap,
                                  struct iris_members *world,
                                  const struct iris_heap_peers *peers)
{
    size_t num_ranks = (size_t)heap->log->num_ranks;

    heap->world = world;
    heap->memory.control = world->control;
    heap->memory.bases = calloc(num_ranks, sizeof heap->memory.bases[0]);
    heap->memory.reachable =
        calloc(num_ranks, sizeof heap->memory.reachable[0]);
    heap->memory.nodes = calloc(num_ranks, sizeof heap->memory.nodes[0]);
    if (heap->memory.bases == NULL || heap->memory.reachable == NULL ||
        heap->memory.nodes == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY, "no memory");
    }
    number_nodes(&heap->memory, peers);
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
        heap->memory.bases[rank] = (int64_t)(uintptr_t)base;
        heap->memory.reachable[rank] = 1;
    }
    return IRIS_OK;
}

static void unmap_peer(struct iris_heap *heap, int rank)
{
    iris_i_memory_unimport(heap->memory.backend,
                           (void *)(uintptr_t)heap->memory.bases[rank],
                           iris_i_heap_bytes(&heap->memory));
    heap->memory.bases[rank] = 0;
    heap->memory.reachable[rank] = 0;
}

static const struct iris_call_type reach_call = {.name = "iris_init"};

/* Whether `rank` has said that it reaches this rank. */
static int is_reached_by(const struct iris_heap *heap, int rank)
{
    unsigned char theirs[IRIS_PAYLOAD_BYTES];
    size_t bytes =
        iris_i_agree_payload(heap->world, rank, theirs, sizeof theirs);

    return (size_t)heap->log->rank < bytes && theirs[heap->log->rank];
}

/* Ends a CPU kernel before it accesses a heap that is not mapped. */
static iris_status_t guard(void *self, const struct iris_cpu_event *event)
{
    const struct iris_heap *heap = self;
    char why[128];

    if (event->after || event->target_rank < 0 ||
        event->target_rank >= heap->log->num_ranks ||
        heap->memory.reachable[event->target_rank]) {
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

    if (memchr(heap->memory.reachable, 0, num_ranks) == NULL ||
        heap->hooks == NULL || heap->has_proxy) {
        return IRIS_OK;
    }
    heap->guard.device = guard;
    heap->guard.self = heap;
    return iris_i_hooks_add(heap->hooks, &heap->guard);
}

iris_status_t iris_i_heap_agree_on_reach(struct iris_heap *heap, int *changed_p)
{
    struct iris_call call = {.type = &reach_call,
                             .payload = heap->memory.reachable,
                             .payload_bytes = (size_t)heap->log->num_ranks};
    iris_status_t status = iris_i_agree(heap->world, &call);

    *changed_p = 0;
    for (int rank = 0; status == IRIS_OK && rank < heap->log->num_ranks;
         rank++) {
        if (heap->memory.reachable[rank] && !is_reached_by(heap, rank)) {
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
    const int64_t *bases = heap->memory.bases;

    if (bases == NULL) {
        return;
    }
    /* The reverse order of iris_i_heap_connect(): a backend finds the latest
     * mapping first. */
    for (int rank = heap->log->num_ranks - 1; rank >= 0; rank--) {
        if (rank != heap->log->rank && bases[rank] != 0) {
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
    iris_i_heap_memory_close(&heap->memory);
    iris_i_window_close(&heap->window);
    iris_i_heap_names_close(&heap->names);
    free(heap->offers);
}
