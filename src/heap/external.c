/* SPDX-License-Identifier: MIT
 *
 * Memory of the program's own on the symmetric heap: the same memory, mapped a
 * second time behind the heap of every rank, where that can be; else a copy.
 */
#include "config.h"

#include "heap/heap.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* An allocation of the program that is mapped in the window. */
struct iris_adopted {
    struct iris_adopted *next;
    size_t start;  /* in the window, of the whole allocation */
    size_t offset; /* in the window, of what was asked for */
    size_t bytes;  /* of that */
};

/* What each rank tells of its memory. */
struct finding {
    uint64_t bytes; /* of the whole allocation; 0: it cannot be shared */
    uint64_t offset;
};

/* One call under way. */
struct request {
    const void *ptr;
    size_t bytes;
    struct iris_external foreign; /* held if found */
    int found;
    struct iris_adopted *record;
};

/* ---- What is there ---- */

size_t iris_i_heap_room(const iris_t *iris, const void *ptr)
{
    size_t offset = (size_t)((uintptr_t)ptr - (uintptr_t)iris->heap.base);
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&iris->adopted_lock;
    const struct iris_adopted *one;
    size_t room = 0;

    if (offset < iris->heap.bytes) {
        return iris->heap.bytes - offset;
    }
    offset -= iris->heap.window;
    if (offset >= iris->heap.window_bytes) {
        return 0;
    }
    pthread_mutex_lock(lock);
    for (one = iris->adopted; one != NULL && room == 0; one = one->next) {
        if (offset - one->offset < one->bytes) {
            room = one->bytes - (offset - one->offset);
        }
    }
    pthread_mutex_unlock(lock);
    return room;
}

static struct iris_adopted *find_start(const iris_t *iris, const void *ptr)
{
    size_t offset = (size_t)((uintptr_t)ptr - (uintptr_t)iris->heap.base) -
                    iris->heap.window;
    struct iris_adopted *one = iris->adopted;

    while (one != NULL && one->offset != offset) {
        one = one->next;
    }
    return one;
}

int iris_i_adopted_is_start(iris_t *iris, const void *ptr)
{
    return find_start(iris, ptr) != NULL;
}

void iris_i_adopted_free(iris_t *iris, const void *ptr)
{
    struct iris_adopted *record = find_start(iris, ptr);
    struct iris_adopted **link = &iris->adopted;

    pthread_mutex_lock(&iris->adopted_lock);
    while (*link != record) {
        link = &(*link)->next;
    }
    *link = record->next;
    pthread_mutex_unlock(&iris->adopted_lock);
    iris_i_heap_unmap(iris, iris->heap.window + record->start);
    iris_i_alloc_give(iris->window, record->start);
    free(record);
}

void iris_i_adopted_close(iris_t *iris)
{
    while (iris->adopted != NULL) {
        struct iris_adopted *one = iris->adopted;

        iris->adopted = one->next;
        free(one);
    }
}

/* ---- iris_as_symmetric() ---- */

static iris_status_t check(iris_t *iris, const struct request *request,
                           void **symmetric_p)
{
    if (request->ptr == NULL || request->bytes == 0 || symmetric_p == NULL) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID, "iris_as_symmetric: %s",
            request->ptr == NULL ? "ptr is NULL; pass the memory to share"
            : request->bytes == 0
                ? "0 bytes of memory; pass at least 1"
                : "symmetric_p is NULL; pass where to put the "
                  "address");
    }
    if (iris_i_heap_room(iris, request->ptr) > 0) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_as_symmetric: ptr %p is on the heap already; "
                           "use it as it is",
                           request->ptr);
    }
    return IRIS_OK;
}

/* Takes hold of the memory if it can be shared. */
static struct finding find(iris_t *iris, struct request *request)
{
    struct finding finding = {0};
    iris_status_t status;

    if (iris->heap.window_bytes == 0) {
        return finding;
    }
    request->record = calloc(1, sizeof *request->record);
    status =
        request->record == NULL
            ? IRIS_ERR_NO_MEMORY
            : iris_i_memory_hold_external(iris->backend, request->ptr,
                                          request->bytes, &request->foreign);
    if (status != IRIS_OK) {
        iris_i_debug(&iris->log, "iris_as_symmetric copies: %s",
                     iris_last_error());
        return finding;
    }
    request->found = 1;
    finding.bytes = request->foreign.bytes;
    finding.offset = request->foreign.offset;
    return finding;
}

/* Bytes of the largest allocation if all ranks can share theirs, else 0. Every
 * rank comes to the same. */
static size_t agree(iris_t *iris, const struct finding *own)
{
    struct iris_heap_stats stats;
    uint64_t most = own->bytes;

    if (own->bytes == 0) {
        return 0;
    }
    for (int rank = 0; rank < iris->num_ranks; rank++) {
        struct finding theirs = {0};
        size_t bytes;
        const void *payload =
            iris_i_meet_payload(iris, iris->world, rank, &bytes);

        memcpy(&theirs, payload, bytes < sizeof theirs ? bytes : sizeof theirs);
        if (theirs.bytes == 0 || theirs.offset != own->offset) {
            return 0;
        }
        most = theirs.bytes > most ? theirs.bytes : most;
    }
    iris_i_alloc_stats(iris->window, &stats);
    return most <= stats.largest_free_bytes ? (size_t)most : 0;
}

/* Maps the memory of all ranks everywhere, or nothing. */
static iris_status_t share(iris_t *iris, struct request *request, size_t most,
                           void **symmetric_p)
{
    struct iris_call call = {.kind = IRIS_CALL_ADOPT};
    struct iris_offer offer = {.bytes = most};
    size_t start = 0;
    iris_status_t status, taken;

    iris_i_meet_begin(iris, call.kind);
    taken = iris_i_alloc_take(iris->window, most, IRIS_ALIGNMENT, &start);
    offer.offset = iris->heap.window + start;
    if (taken == IRIS_OK) {
        status = iris_i_fail_on(
            &iris->log,
            iris_i_memory_map_external(iris->backend,
                                       (char *)iris->heap.base + offer.offset,
                                       &request->foreign));
    } else {
        status = iris_i_fail(&iris->log, taken, "no memory for a record");
    }
    if (iris->exchange != NULL) {
        status = iris_i_heap_share(iris, &offer, 1, status);
    }
    call.status = status;
    call.args[0] = offer.offset;
    call.args[1] = most;
    status = iris_i_meet(iris, iris->world, &call);
    if (status != IRIS_OK) {
        if (taken == IRIS_OK) {
            iris_i_heap_unmap(iris, offer.offset);
            iris_i_alloc_untake(iris->window, start);
        }
        return status;
    }
    *request->record = (struct iris_adopted){
        .next = iris->adopted,
        .start = start,
        .offset = start + request->foreign.offset,
        .bytes = request->bytes,
    };
    pthread_mutex_lock(&iris->adopted_lock);
    iris->adopted = request->record;
    pthread_mutex_unlock(&iris->adopted_lock);
    request->record = NULL;
    *symmetric_p =
        (char *)iris->heap.base + offer.offset + request->foreign.offset;
    return IRIS_OK;
}

/* The next best: memory of the heap, with the same contents. */
static iris_status_t copy(iris_t *iris, const struct request *request,
                          const struct iris_call *asked, void **symmetric_p)
{
    struct iris_call call = *asked;
    void *ptr = NULL;
    iris_status_t status;

    call.payload_bytes = 0;
    status = iris_i_heap_allocate(iris, &call, IRIS_OK, &ptr);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_meet_begin(iris, call.kind);
    call.status = iris_i_fail_on(
        &iris->log, iris_i_heap_write(iris, ptr, request->ptr, request->bytes));
    status = iris_i_meet(iris, iris->world, &call);
    if (status == IRIS_OK) {
        *symmetric_p = ptr;
    } else {
        iris_i_alloc_give(iris->alloc,
                          (size_t)((char *)ptr - (char *)iris->heap.base));
    }
    return status;
}

iris_status_t iris_as_symmetric(iris_t *iris, const void *ptr, size_t bytes,
                                void **symmetric_p, int *shared_p)
{
    struct request request = {.ptr = ptr, .bytes = bytes};
    struct finding finding = {0};
    struct iris_call call = {.kind = IRIS_CALL_AS_SYMMETRIC,
                             .args = {bytes, IRIS_ALIGNMENT},
                             .payload = &finding,
                             .payload_bytes = sizeof finding};
    iris_status_t status = iris_i_enter(iris, "iris_as_symmetric");
    size_t most = 0;

    if (status != IRIS_OK) {
        return status;
    }
    iris_i_meet_begin(iris, call.kind);
    call.status = check(iris, &request, symmetric_p);
    if (call.status == IRIS_OK) {
        finding = find(iris, &request);
    }
    status = iris_i_meet(iris, iris->world, &call);
    if (status == IRIS_OK) {
        most = agree(iris, &finding);
        status = most > 0 ? share(iris, &request, most, symmetric_p)
                          : copy(iris, &request, &call, symmetric_p);
    }
    if (request.found) {
        iris_i_memory_release_external(iris->backend, &request.foreign);
    }
    free(request.record);
    if (status == IRIS_OK && shared_p != NULL) {
        *shared_p = most > 0;
    }
    return status;
}
