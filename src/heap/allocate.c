/* SPDX-License-Identifier: MIT
 *
 * Collective allocation: a range of the allocator, memory for it, and the
 * agreement of all ranks about both.
 */
#include "config.h"

#include "heap/heap.h"

#include "heap/deferred.h"

#include <stdio.h>

static iris_status_t fail_full(struct iris_heap *heap, size_t bytes,
                               size_t alignment)
{
    struct iris_heap_stats stats;

    iris_i_alloc_stats(heap->alloc, &stats);
    return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY,
                       "no %zu bytes (alignment %zu) on the symmetric heap: "
                       "%zu of %zu bytes are free, %zu in one piece; free "
                       "some, or raise IRIS_HEAP_SIZE",
                       bytes, alignment, stats.free_bytes, heap->region.bytes,
                       stats.largest_free_bytes);
}

/* What an allocation takes of the heap. */
static size_t with_red_zone(const struct iris_heap *heap, size_t bytes)
{
    return bytes > SIZE_MAX - heap->red_zone_bytes
               ? bytes
               : bytes + heap->red_zone_bytes;
}

/* This rank's part of an allocation: takes a range and puts memory behind it.
 * Nothing is taken if it fails. */
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
    status = iris_i_alloc_take(heap->alloc, with_red_zone(heap, bytes),
                               alignment, &offset);
    if (status != IRIS_OK) {
        return fail_full(heap, bytes, alignment);
    }
    status = IRIS_OK;
    if (!request->is_lazy || heap->region.commit != IRIS_COMMIT_SHARED) {
        status = iris_i_heap_commit(heap, offset, bytes);
    }
    if (status != IRIS_OK) {
        iris_i_alloc_untake(heap->alloc, offset);
        return iris_i_fail_on(heap->log, status);
    }
    *offset_p = offset;
    return IRIS_OK;
}

iris_status_t iris_i_heap_synchronize(struct iris_heap *heap)
{
    iris_status_t status;

    iris_i_control_wait_stream(heap->control, 1);
    status = iris_i_queue_synchronize(heap->stream);
    iris_i_control_wait_stream(heap->control, -1);
    return iris_i_fail_on(heap->log, status);
}

iris_status_t iris_i_heap_copy(struct iris_heap *heap, void *dst,
                               const void *src, size_t bytes)
{
    iris_status_t status = iris_i_heap_synchronize(heap);

    if (status == IRIS_OK) { /* so that nothing holds up the copy for long */
        status = iris_i_queue_copy(heap->stream, dst, src, bytes);
    }
    return status != IRIS_OK ? iris_i_fail_on(heap->log, status)
                             : iris_i_heap_synchronize(heap);
}

/* Work is waited for twice, since in a capture of the default stream the first
 * wait fails, while the fill would become part of it. */
iris_status_t iris_i_heap_zero(struct iris_heap *heap, size_t offset,
                               size_t bytes)
{
    iris_status_t status = iris_i_heap_synchronize(heap);

    if (status == IRIS_OK) {
        status = iris_i_queue_set(heap->stream,
                                  (char *)heap->region.base + offset, 0, bytes);
    }
    return status != IRIS_OK ? iris_i_fail_on(heap->log, status)
                             : iris_i_heap_synchronize(heap);
}

static iris_status_t fill(struct iris_heap *heap,
                          const struct iris_heap_request *request,
                          size_t offset)
{
    if (request->fill != NULL) {
        return request->fill(request->arg, (char *)heap->region.base + offset);
    }
    return request->zero ? iris_i_heap_zero(heap, offset, request->bytes)
                         : IRIS_OK;
}

/* This rank's part, before it meets the others. */
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
            iris_i_heap_rollback(heap);
            iris_i_alloc_untake(heap->alloc, *offset_p);
        }
    }
    return status;
}

/* Keeps the message of why the ranks do not agree. */
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

/* Waits until all ranks have given back what they committed for an allocation
 * that failed: else the next one may find the system's memory taken yet. If a
 * rank is out of memory (`full`), deferred frees follow. Returns `status`, with
 * the message it had. */
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

/* Prepares, agrees, and undoes the preparation unless all agree: ranks that
 * differed in this call must not differ in the offsets of the next. */
static iris_status_t allocate(struct iris_heap *heap,
                              const struct iris_heap_request *request,
                              void **ptr_p, struct iris_deferred_plan *plan)
{
    struct iris_call call = {.type = request->type, .status = request->checked};
    size_t offset = 0;
    iris_status_t status;

    iris_i_agree_begin(heap->control, call.type);
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
        status = iris_i_heap_settle(heap);
    } else if (call.status == IRIS_OK) {
        end_fill(request);
        iris_i_heap_rollback(heap);
    }
    if (status != IRIS_OK) {
        if (call.status == IRIS_OK) {
            iris_i_alloc_untake(heap->alloc, offset);
        }
        return undone(heap, status, call.status == IRIS_ERR_NO_MEMORY, plan);
    }
    iris_i_heap_note_alloc(heap, offset);
    *ptr_p = (char *)heap->region.base + offset;
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

static const struct iris_call_type free_call = {
    .name = "iris_free",
    .fields = {{.name = "offset"}},
};

/* Gives back an allocation on whose name all ranks agree. */
static void give(struct iris_heap *heap, size_t name)
{
    if (name >= heap->region.bytes) {
        iris_i_external_release(heap, name);
    } else {
        iris_i_heap_note_free(heap, name);
        iris_i_heap_give_back(heap, name);
    }
}

static iris_status_t release(struct iris_heap *heap, void *ptr,
                             iris_status_t checked)
{
    struct iris_call call = {
        .type = &free_call, .status = checked, .fields = {SIZE_MAX}};
    struct iris_deferred_plan plan;
    size_t name = SIZE_MAX;
    iris_status_t status;

    if (ptr != NULL && checked == IRIS_OK) {
        call.status = iris_i_heap_find_start(heap, "iris_free", ptr, 1, &name);
        call.fields[0] = (uintptr_t)ptr - (uintptr_t)heap->region.base;
    }
    iris_i_deferred_post(heap, &call, &plan);
    status = iris_i_agree(heap->world, &call);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_deferred_judge(heap, &plan);
    if (ptr != NULL) {
        give(heap, name);
    }
    (void)iris_i_deferred_follow(heap, &plan);
    return IRIS_OK;
}

void iris_i_heap_give(struct iris_heap *heap, size_t name)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_FREE,
        .rank = heap->log->rank,
        .target_rank = -1,
        .address = name >= heap->region.bytes
                       ? iris_i_external_address(heap, name)
                       : (char *)heap->region.base + name};

    iris_i_hooks_before(heap->hooks, &event);
    give(heap, name);
    (void)iris_i_hooks_after(heap->hooks, &event, IRIS_OK);
}

iris_status_t iris_i_heap_release(struct iris_heap *heap, void *ptr,
                                  iris_status_t checked)
{
    struct iris_host_event event = {.op = IRIS_HOST_FREE,
                                    .rank = heap->log->rank,
                                    .target_rank = -1,
                                    .address = ptr};

    iris_i_hooks_before(heap->hooks, &event);
    return iris_i_hooks_after(heap->hooks, &event, release(heap, ptr, checked));
}

void iris_i_heap_stats(const struct iris_heap *heap,
                       struct iris_heap_stats *stats_p)
{
    size_t committed;

    iris_i_alloc_stats(heap->alloc, stats_p);
    committed = heap->num_committed * heap->piece_bytes;
    stats_p->used_bytes -= heap->reserved_bytes;
    stats_p->peak_bytes -= heap->reserved_bytes;
    stats_p->num_allocs -= 1;
    stats_p->mapped_bytes =
        committed > heap->region.bytes ? heap->region.bytes : committed;
    stats_p->reserved_bytes = heap->region.bytes;
    stats_p->num_deferred = heap->deferred.count;
}
