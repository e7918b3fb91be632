/* SPDX-License-Identifier: MIT
 *
 * Collective allocation: a range from the allocator, memory for it, and the
 * agreement of all ranks on both.
 */
#include "config.h"

#include "heap/heap.h"

#include "backend/calls.h"

#include <stdio.h>
#include <unistd.h>

/* ---- Memory that peers map ---- */

static iris_status_t take_offer(void *arg, int rank,
                                const struct iris_offer *offer)
{
    struct iris_heap *heap = arg;
    char *at = (char *)(uintptr_t)heap->memory.bases[rank] + offer->offset;

    return iris_i_fail_on(
        heap->log, iris_i_memory_import_range(heap->memory.backend, at,
                                              offer->bytes, &offer->handle));
}

iris_status_t iris_i_heap_share(struct iris_heap *heap,
                                struct iris_offer *offers, size_t num_offers,
                                iris_status_t status)
{
    const struct iris_exchange exchange = {.control = heap->memory.control,
                                           .seq = heap->world->seq,
                                           .offers = offers,
                                           .num_offers = num_offers,
                                           .reachable = heap->memory.reachable,
                                           .take = take_offer,
                                           .arg = heap};

    for (size_t i = 0; i < num_offers; i++) {
        offers[i].handle.fd = -1;
        if (status == IRIS_OK) {
            status = iris_i_memory_export_range(
                heap->memory.backend,
                iris_i_heap_base(&heap->memory) + offers[i].offset,
                &offers[i].handle);
        }
    }
    status = iris_i_exchange(&exchange, iris_i_fail_on(heap->log, status));
    for (size_t i = 0; i < num_offers; i++) {
        if (offers[i].handle.fd >= 0) {
            close(offers[i].handle.fd);
        }
    }
    return status;
}

/* This rank's fresh runs. They depend only on values that all ranks have agreed
 * on. */
static iris_status_t share_fresh(struct iris_heap *heap, struct iris_call *call)
{
    struct iris_offer *offers = heap->offers;
    struct iris_heap_run run = {0};
    size_t count = 0;

    while (iris_i_heap_next_run(&heap->memory, 1,
                                iris_i_heap_bytes(&heap->memory), &run)) {
        offers[count].offset = run.offset;
        offers[count].bytes = run.bytes;
        call->fields[1] += offers[count].bytes;
        count++;
    }
    call->fields[0] = offers[0].offset;
    return iris_i_heap_share(heap, offers, count, IRIS_OK);
}

static const struct iris_call_type settle_call = {
    .name = "iris_malloc",
    .fields = {{.name = "offset"}, {.name = "bytes"}},
};

/* Whether peers have to map each commit. They do if some rank is in another
 * process. All ranks get the same answer. */
static int is_shared_by_offers(const struct iris_heap *heap)
{
    int remote = 0;

    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        remote |= iris_i_control_is_remote(heap->memory.control, rank);
    }
    return remote && heap->memory.region.commit == IRIS_COMMIT_PRIVATE;
}

/* After iris_i_heap_commit(), collectively, once all ranks have agreed that
 * each has committed its memory: maps it everywhere. If that fails on one rank,
 * all ranks decommit it. */
static iris_status_t settle(struct iris_heap *heap)
{
    struct iris_call call = {.type = &settle_call};
    iris_status_t status = IRIS_OK;

    if (heap->memory.num_fresh == 0) {
        return IRIS_OK;
    }
    if (is_shared_by_offers(heap)) {
        iris_i_agree_begin(heap->memory.control, call.type);
        call.status = share_fresh(heap, &call);
        status = iris_i_agree(heap->world, &call);
    }
    if (status != IRIS_OK) {
        iris_i_heap_rollback(&heap->memory);
        return status;
    }
    iris_i_heap_keep(&heap->memory);
    return IRIS_OK;
}

/* ---- Allocation ---- */

static iris_status_t fail_full(struct iris_heap *heap, size_t bytes,
                               size_t alignment)
{
    struct iris_heap_stats stats;

    iris_i_alloc_stats(heap->names.alloc, &stats);
    return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY,
                       "no %zu bytes (alignment %zu) on the symmetric heap: "
                       "%zu of %zu bytes are free, %zu in one piece; free "
                       "some, or raise IRIS_HEAP_SIZE",
                       bytes, alignment, stats.free_bytes,
                       iris_i_heap_bytes(&heap->memory),
                       stats.largest_free_bytes);
}

/* The size of an allocation on the heap, including the red zone. */
static size_t with_red_zone(const struct iris_heap *heap, size_t bytes)
{
    return bytes > SIZE_MAX - heap->names.red_zone_bytes
               ? bytes
               : bytes + heap->names.red_zone_bytes;
}

/* This rank's part of an allocation: takes a range and commits memory to it.
 * Takes nothing if it fails. */
static iris_status_t take(struct iris_heap *heap,
                          const struct iris_heap_request *request,
                          size_t *offset_p)
{
    size_t bytes = request->bytes, alignment = request->alignment, offset;
    iris_status_t status;

    if (bytes == 0) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "an allocation of 0 bytes; ask for at least 1");
    }
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 ||
        alignment > IRIS_ALIGNMENT_MAX) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "alignment %zu is not a power of two up to %zu; "
                           "pass one such as 256, or call iris_malloc",
                           alignment, IRIS_ALIGNMENT_MAX);
    }
    status = iris_i_alloc_take(heap->names.alloc, with_red_zone(heap, bytes),
                               alignment, &offset);
    if (status != IRIS_OK) {
        return fail_full(heap, bytes, alignment);
    }
    status = IRIS_OK;
    if (!request->is_lazy || heap->memory.region.commit != IRIS_COMMIT_SHARED) {
        status = iris_i_heap_commit(&heap->memory, offset, bytes);
    }
    if (status != IRIS_OK) {
        iris_i_alloc_untake(heap->names.alloc, offset);
        return iris_i_fail_on(heap->log, status);
    }
    *offset_p = offset;
    return IRIS_OK;
}

static iris_status_t fill(struct iris_heap *heap,
                          const struct iris_heap_request *request,
                          size_t offset)
{
    if (request->fill != NULL) {
        return request->fill(request->arg,
                             iris_i_heap_base(&heap->memory) + offset);
    }
    return request->zero
               ? iris_i_heap_zero(&heap->memory, offset, request->bytes)
               : IRIS_OK;
}

/* This rank's part, before the agreement with the others. */
static iris_status_t prepare(struct iris_heap *heap,
                             const struct iris_heap_request *request,
                             void **ptr_p, size_t *offset_p)
{
    iris_status_t status;

    if (ptr_p == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "ptr_p is NULL; pass where to put the pointer");
    }
    status = take(heap, request, offset_p);
    if (status == IRIS_OK) {
        status = fill(heap, request, *offset_p);
        if (status != IRIS_OK) {
            iris_i_heap_rollback(&heap->memory);
            iris_i_alloc_untake(heap->names.alloc, *offset_p);
        }
    }
    return status;
}

/* Ends the fill, and keeps the message that says why the ranks do not agree. */
static void end_fill(const struct iris_heap_request *request)
{
    char message[IRIS_MESSAGE_BYTES];

    if (request->end_fill != NULL) {
        snprintf(message, sizeof message, "%s", iris_last_error());
        request->end_fill(request->arg);
        (void)iris_i_fail_again(IRIS_OK, message);
    }
}

static const struct iris_call_type undo_call = {.name = "iris_malloc"};

/* Waits until all ranks have decommitted the memory of a failed allocation:
 * otherwise the next allocation may find the system's memory still in use. If a
 * rank is out of memory (`full`), deferred frees follow. Returns `status`, with
 * its original message. */
static iris_status_t undone(struct iris_heap *heap, iris_status_t status,
                            int full, struct iris_deferred_plan *plan)
{
    struct iris_call call = {.type = &undo_call};
    char message[IRIS_MESSAGE_BYTES];

    plan->lister = -1;
    if (!iris_i_agree_all_called(heap->world)) {
        return status;
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    iris_i_deferred_post_failure(heap, full, &call, plan);
    if (iris_i_agree(heap->world, &call) == IRIS_OK) {
        iris_i_deferred_judge(heap, plan);
    }
    return iris_i_fail_again(status, message);
}

/* Prepares, agrees, and undoes the preparation unless all agree. After a call
 * on which the ranks differed, the offsets of the next call must not differ. */
static iris_status_t allocate(struct iris_heap *heap,
                              const struct iris_heap_request *request,
                              void **ptr_p, struct iris_deferred_plan *plan)
{
    struct iris_call call = {.type = request->type, .status = request->checked};
    size_t offset = 0;
    iris_status_t status;

    iris_i_agree_begin(heap->memory.control, call.type);
    if (request->checked == IRIS_OK) {
        call.status = prepare(heap, request, ptr_p, &offset);
    }
    call.fields[0] = request->bytes;
    call.fields[1] = request->alignment;
    call.fields[2] = offset;
    iris_i_deferred_post(heap, &call, plan);
    status = iris_i_agree(heap->world, &call);
    if (status == IRIS_OK) {
        iris_i_deferred_judge(heap, plan);
        status = settle(heap);
    } else if (call.status == IRIS_OK) {
        end_fill(request);
        iris_i_heap_rollback(&heap->memory);
    }
    if (status != IRIS_OK) {
        if (call.status == IRIS_OK) {
            iris_i_alloc_untake(heap->names.alloc, offset);
        }
        return undone(heap, status, call.status == IRIS_ERR_NO_MEMORY, plan);
    }
    iris_i_heap_note_alloc(&heap->names, offset);
    *ptr_p = iris_i_heap_base(&heap->memory) + offset;
    return IRIS_OK;
}

static iris_status_t allocate_watched(struct iris_heap *heap,
                                      const struct iris_heap_request *request,
                                      void **ptr_p,
                                      struct iris_deferred_plan *plan)
{
    struct iris_host_event event = {.op = IRIS_HOST_ALLOC,
                                    .rank = heap->log->rank,
                                    .target_rank = -1,
                                    .bytes = request->bytes};
    iris_status_t status;

    iris_i_hooks_before(heap->hooks, &event);
    status = allocate(heap, request, ptr_p, plan);
    event.address = status == IRIS_OK ? *ptr_p : NULL;
    return iris_i_hooks_after(heap->hooks, &event, status);
}

iris_status_t iris_i_heap_allocate(struct iris_heap *heap,
                                   const struct iris_heap_request *request,
                                   void **ptr_p)
{
    struct iris_deferred_plan plan;
    iris_status_t status = allocate_watched(heap, request, ptr_p, &plan);
    char message[IRIS_MESSAGE_BYTES];

    if (status == IRIS_OK) {
        (void)iris_i_deferred_follow(heap, &plan);
        return IRIS_OK;
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    return iris_i_deferred_follow(heap, &plan) > 0
               ? allocate_watched(heap, request, ptr_p, &plan)
               : iris_i_fail_again(status, message);
}

void iris_i_heap_stats(const struct iris_heap *heap,
                       struct iris_heap_stats *stats_p)
{
    size_t committed;

    iris_i_alloc_stats(heap->names.alloc, stats_p);
    committed = heap->memory.num_committed * heap->memory.piece_bytes;
    stats_p->used_bytes -= heap->names.reserved_bytes;
    stats_p->peak_bytes -= heap->names.reserved_bytes;
    stats_p->num_allocs -= 1;
    stats_p->mapped_bytes = committed > iris_i_heap_bytes(&heap->memory)
                                ? iris_i_heap_bytes(&heap->memory)
                                : committed;
    stats_p->reserved_bytes = iris_i_heap_bytes(&heap->memory);
    stats_p->num_deferred = heap->deferred.count;
}
