/* SPDX-License-Identifier: MIT
 *
 * External memory, owned by the program, on the symmetric heap. If possible,
 * the same memory is mapped a second time behind the heap of every rank;
 * otherwise it is copied.
 */
#include "config.h"

#include "heap/heap.h"

#include "backend/calls.h"

#include <stdlib.h>
#include <string.h>

/* A rank's message to the others about its memory. */
struct finding {
    struct iris_deferred_post deferred;
    uint64_t bytes; /* bytes of the whole allocation; 0: it cannot be shared */
    uint64_t offset;
    uint64_t mapped; /* 1 + its offset in the window if it is mapped there;
                      * else 0 */
};

static const struct iris_call_type share_call = {
    .name = "iris_as_symmetric",
    .fields = {{.name = "offset"}, {.name = "bytes"}},
};

/* One call in progress. */
struct request {
    const void *ptr;
    size_t bytes;
    struct iris_external external; /* held if the memory was found */
    int found;
    struct iris_external_range *record;
};

static iris_status_t check(struct iris_heap *heap,
                           const struct request *request, void **symmetric_p)
{
    const struct iris_heap_range range = {
        "iris_as_symmetric", "ptr", request->ptr, request->bytes, 0, 0};

    if (request->ptr == NULL || request->bytes == 0 || symmetric_p == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID, "iris_as_symmetric: %s",
                           request->ptr == NULL
                               ? "ptr is NULL; pass the memory to share"
                           : request->bytes == 0
                               ? "0 bytes of memory; pass at least 1"
                               : "symmetric_p is NULL; pass where to put the "
                                 "address");
    }
    if (iris_i_heap_bytes_from(heap, request->ptr) > 0) {
        return iris_i_fail(
            heap->log, IRIS_ERR_INVALID,
            "iris_as_symmetric: ptr %p is on the heap already; use it directly",
            request->ptr);
    }
    return iris_i_heap_check_range(heap, &range);
}

/* Takes a reference to the memory if it can be shared. */
static struct finding find(struct iris_heap *heap, struct request *request)
{
    struct finding finding = {0};
    iris_status_t status;

    if (heap->memory.region.window_bytes == 0) {
        return finding;
    }
    request->record = calloc(1, sizeof *request->record);
    status =
        request->record == NULL
            ? IRIS_ERR_NO_MEMORY
            : iris_i_memory_hold_external(heap->memory.backend, request->ptr,
                                          request->bytes, &request->external);
    if (status != IRIS_OK) {
        iris_i_debug(heap->log, "iris_as_symmetric copies: %s",
                     iris_last_error());
        return finding;
    }
    request->found = 1;
    finding.bytes = request->external.bytes;
    finding.offset = request->external.offset;
    request->record->cookie = request->external.cookie;
    for (const struct iris_external_range *one = heap->window.ranges;
         one != NULL && finding.mapped == 0; one = one->next) {
        finding.mapped =
            one->cookie == request->external.cookie ? one->start + 1 : 0;
    }
    return finding;
}

/* Bytes of the largest allocation if all ranks can share theirs, else 0. All
 * ranks get the same result. *mapped_p: all of them are mapped already, at the
 * same place. */
static size_t agree(struct iris_heap *heap, const struct finding *own,
                    int *mapped_p)
{
    uint64_t most = own->bytes;
    int mapped = own->mapped != 0;

    if (own->bytes == 0) {
        return 0;
    }
    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        struct finding theirs = {0};

        (void)iris_i_agree_payload(heap->world, rank, &theirs, sizeof theirs);
        if (theirs.bytes == 0 || theirs.offset != own->offset) {
            return 0;
        }
        most = theirs.bytes > most ? theirs.bytes : most;
        mapped &= theirs.mapped == own->mapped;
    }
    *mapped_p = mapped;
    return (size_t)most;
}

static int fits(struct iris_heap *heap, size_t bytes)
{
    struct iris_heap_stats stats = {0};

    if (bytes > 0) {
        iris_i_alloc_stats(heap->window.alloc, &stats);
    }
    return bytes <= stats.largest_free_bytes;
}

/* Keeps the record of the mapping at `start`. */
static void *keep(struct iris_heap *heap, struct request *request, size_t start)
{
    struct iris_external_range *record = request->record;

    record->start = start;
    record->offset = start + request->external.offset;
    record->bytes = request->bytes;
    request->record = NULL;
    return iris_i_window_add(&heap->window, record);
}

/* Maps the memory of all ranks on every rank, or nothing. */
static iris_status_t share(struct iris_heap *heap, struct request *request,
                           size_t most, void **symmetric_p)
{
    struct iris_call call = {.type = &share_call};
    struct iris_offer offer = {.bytes = most};
    size_t start = 0;
    iris_status_t status, taken;

    iris_i_agree_begin(heap->memory.control, call.type);
    taken = iris_i_alloc_take(heap->window.alloc, most, IRIS_ALIGNMENT, &start);
    offer.offset = heap->memory.region.window + start;
    if (taken == IRIS_OK) {
        status = iris_i_fail_on(
            heap->log, iris_i_memory_map_external(
                           heap->memory.backend,
                           iris_i_heap_base(&heap->memory) + offer.offset,
                           &request->external));
    } else {
        status = iris_i_fail(heap->log, taken, "no memory for a record");
    }
    status = iris_i_heap_share(heap, &offer, 1, status);
    call.status = status;
    call.fields[0] = offer.offset;
    call.fields[1] = most;
    status = iris_i_agree(heap->world, &call);
    if (status != IRIS_OK) {
        if (taken == IRIS_OK) {
            iris_i_heap_unmap(&heap->memory, offer.offset);
            iris_i_alloc_untake(heap->window.alloc, start);
        }
        return status;
    }
    *symmetric_p = keep(heap, request, start);
    return IRIS_OK;
}

/* The alternative: memory of the heap, with the same contents. */
static iris_status_t copy(struct iris_heap *heap, const struct request *request,
                          const struct iris_heap_request *asked,
                          void **symmetric_p)
{
    struct iris_call call = {.type = asked->type};
    void *ptr = NULL;
    iris_status_t status = iris_i_heap_allocate(heap, asked, &ptr);

    if (status != IRIS_OK) {
        return status;
    }
    iris_i_agree_begin(heap->memory.control, call.type);
    call.status =
        iris_i_heap_copy(&heap->memory, ptr, request->ptr, request->bytes);
    call.fields[0] = request->bytes;
    status = iris_i_agree(heap->world, &call);
    if (status == IRIS_OK) {
        *symmetric_p = ptr;
    } else {
        iris_i_heap_give(heap, iris_i_heap_offset(&heap->memory, ptr));
    }
    return status;
}

iris_status_t iris_i_external_share(struct iris_heap *heap,
                                    const struct iris_heap_request *asked,
                                    const void *ptr, void **symmetric_p,
                                    int *shared_p)
{
    struct request request = {.ptr = ptr, .bytes = asked->bytes};
    struct finding finding = {0};
    struct iris_call call = {.type = asked->type,
                             .fields = {asked->bytes, asked->alignment}};
    struct iris_deferred_plan plan;
    iris_status_t status;
    size_t most = 0;
    int mapped = 0;

    iris_i_agree_begin(heap->memory.control, call.type);
    call.status = asked->checked != IRIS_OK
                      ? asked->checked
                      : check(heap, &request, symmetric_p);
    if (call.status == IRIS_OK) {
        finding = find(heap, &request);
    }
    iris_i_deferred_post(heap, &call, &plan);
    finding.deferred = plan.post;
    call.payload = &finding;
    call.payload_bytes = sizeof finding;
    status = iris_i_agree(heap->world, &call);
    if (status == IRIS_OK) {
        iris_i_deferred_judge(heap, &plan);
        most = agree(heap, &finding, &mapped);
        if (mapped) { /* before frees that could unmap it */
            *symmetric_p = keep(heap, &request, (size_t)finding.mapped - 1);
        }
        (void)iris_i_deferred_follow(heap, &plan);
        most = fits(heap, most) ? most : 0;
    }
    if (status == IRIS_OK && !mapped) {
        status = most > 0 ? share(heap, &request, most, symmetric_p)
                          : copy(heap, &request, asked, symmetric_p);
    }
    if (request.found) {
        iris_i_memory_release_external(heap->memory.backend, &request.external);
    }
    free(request.record);
    if (status == IRIS_OK && shared_p != NULL) {
        *shared_p = most > 0;
    }
    return status;
}
