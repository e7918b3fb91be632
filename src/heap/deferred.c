/* SPDX-License-Identifier: MIT
 *
 * Deferred frees, and the names by which ranks agree on allocations.
 *
 * An allocation's name is the same on every rank for as long as it lives: the heap
 * offset, or for external memory a larger number that is never used again. So ranks
 * compare names.
 *
 * iris_free_later() puts a name on this rank's list, on any thread; the list's lock
 * guards that. The rest belongs to the thread that makes collective calls:
 *
 *   released   on the list
 *   fenced     released before the latest fence of the streams
 *   done       before the latest fence that the streams have passed
 *   compared   known to all other ranks
 *
 * Every collective call of all ranks carries the lengths of these lists. After the
 * call, the rank with the shortest list shows its names, and each other rank answers
 * whether it has released them, too. The ranks then free the names that all have
 * released, in the same order.
 */
#include "config.h"

#include "heap/internal.h"

#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Marks of an allocation on this rank. */
#define RELEASED 1 /* the program has released it */
#define DONE 2     /* this rank's streams no longer use it */

/* Names in one post. */
#define CHUNK (IRIS_PAYLOAD_BYTES / sizeof(uint64_t))

#define GONE SIZE_MAX /* removed from the list: freed */

static const struct iris_call_type deferred_call = {
    .name = "iris_free_deferred",
    .fields = {{.name = "position"}},
};

/* ---- Names ---- */

/* Sets the mark of an allocation, unless it is negative, and returns it; -1:
 * there is no allocation of that name. Any thread. */
static int mark_name(struct iris_heap *heap, size_t name, int mark)
{
    if (name >= iris_i_heap_bytes(&heap->memory)) {
        return iris_i_window_mark(&heap->window, name, mark);
    }
    return iris_i_heap_is_own(&heap->names, name)
               ? -1
               : iris_i_alloc_mark(heap->names.alloc, name, mark);
}

/* Reports why `ptr`, at a heap offset, is not the start of an allocation. */
static iris_status_t fail_start(const struct iris_heap *heap, const char *call,
                                const void *ptr, size_t offset)
{
    size_t start, bytes;

    if (iris_i_heap_bytes_from(heap, ptr) == 0) {
        return iris_i_fail(
            heap->log, IRIS_ERR_INVALID,
            "%s of %p, which is not on this rank's heap (%p to %p); pass the "
            "address from iris_malloc on this rank",
            call, ptr, iris_i_heap_base(&heap->memory),
            (void *)(iris_i_heap_base(&heap->memory) +
                     iris_i_heap_bytes(&heap->memory)));
    }
    if (offset >= iris_i_heap_bytes(&heap->memory)) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s of %p, which is inside of memory that "
                           "iris_as_symmetric shares; pass its address",
                           call, ptr);
    }
    if (!iris_i_heap_find(&heap->names, offset, &start, &bytes)) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s of %p, heap offset %zu, where nothing is "
                           "allocated; was it freed before? pass the "
                           "address from iris_malloc, once",
                           call, ptr, offset);
    }
    return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                       "%s of %p, which is %zu bytes into the allocation at "
                       "heap offset %zu; pass its start",
                       call, ptr, offset - start, start);
}

iris_status_t iris_i_find_name(struct iris_heap *heap, const char *call,
                               const void *ptr, int newest, size_t *name_p)
{
    size_t offset = iris_i_heap_offset(&heap->memory, ptr);
    size_t name = offset;
    int mark = offset < iris_i_heap_bytes(&heap->memory)
                   ? mark_name(heap, name, -1)
                   : iris_i_window_find(&heap->window, ptr, newest, &name);

    if (mark < 0) {
        return fail_start(heap, call, ptr, offset);
    }
    if (mark > 0) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s of %p, heap offset %zu, which was given to "
                           "iris_free_later before; free an allocation once",
                           call, ptr, offset);
    }
    *name_p = name;
    return IRIS_OK;
}

/* ---- Giving back ---- */

void iris_i_give_offset(struct iris_heap *heap, size_t offset)
{
    size_t start = 0, bytes = 0;

    (void)iris_i_alloc_give_joined(heap->names.alloc, offset, &start, &bytes);
    iris_i_heap_give_back(&heap->memory, start, bytes);
}

void iris_i_give_name(struct iris_heap *heap, size_t name)
{
    if (name >= iris_i_heap_bytes(&heap->memory)) {
        iris_i_window_release(&heap->window, name);
    } else {
        iris_i_heap_note_free(&heap->names, name);
        iris_i_give_offset(heap, name);
    }
}

/* iris_i_give_name(), between calls of observers. */
static void give_watched(struct iris_heap *heap, size_t name)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_FREE,
        .rank = heap->log->rank,
        .target_rank = -1,
        .address = name >= iris_i_heap_bytes(&heap->memory)
                       ? iris_i_window_address(&heap->window, name)
                       : iris_i_heap_base(&heap->memory) + name};

    iris_i_hooks_before(heap->hooks, &event);
    iris_i_give_name(heap, name);
    (void)iris_i_hooks_after(heap->hooks, &event, IRIS_OK);
}

/* ---- This rank's list ----- */

static iris_status_t append_name(struct iris_heap *heap, size_t name)
    IRIS_REQUIRES(heap->deferred.lock)
{
    struct iris_deferred *deferred = &heap->deferred;

    if (deferred->count == deferred->capacity) {
        size_t capacity = deferred->capacity * 2 + 64;
        size_t *names = realloc(deferred->names, capacity * sizeof *names);

        if (names == NULL) {
            return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY,
                               "iris_free_later: no memory for a record; the "
                               "allocation stays");
        }
        deferred->names = names;
        deferred->capacity = capacity;
    }
    (void)mark_name(heap, name, RELEASED);
    deferred->names[deferred->count++] = name;
    return IRIS_OK;
}

iris_status_t iris_i_deferred_add(struct iris_heap *heap, void *ptr)
{
    size_t name = 0;
    iris_status_t status;

    pthread_mutex_lock(&heap->deferred.lock);
    status = heap->deferred.closed
                 ? iris_i_fail(heap->log, IRIS_ERR_STATE,
                               "iris_free_later: the context is being "
                               "finalized, which frees everything")
                 : iris_i_find_name(heap, "iris_free_later", ptr, 0, &name);
    status = status == IRIS_OK ? append_name(heap, name) : status;
    pthread_mutex_unlock(&heap->deferred.lock);
    return status;
}

/* Checks the progress of the streams. Work that was enqueued before a release
 * may still use the allocation. One fence at a time follows all of that
 * work. */
static void check_fence(struct iris_heap *heap)
{
    struct iris_deferred *deferred = &heap->deferred;
    int anew = deferred->fenced == deferred->done;

    if (anew) { /* first the number, then the fence after all of these */
        deferred->fenced = deferred->count;
    }
    if (deferred->fenced == deferred->done ||
        !iris_i_heap_is_idle(heap, anew)) {
        return;
    }
    pthread_mutex_lock(&deferred->lock);
    while (deferred->done < deferred->fenced) {
        (void)mark_name(heap, deferred->names[deferred->done++], DONE);
    }
    pthread_mutex_unlock(&deferred->lock);
}

static void describe_streams(void *arg, char *text, size_t bytes)
{
    const struct iris_heap *heap = arg;

    snprintf(text, bytes,
             "the streams of rank %d, which use memory that it has released",
             heap->log->rank);
}

static iris_status_t fail_late(const struct iris_wait *wait)
{
    return iris_i_fail(
        wait->waiter->log, IRIS_ERR_TIMEOUT,
        "rank %d: released memory cannot be freed, because its streams are not "
        "done after %lld ms (IRIS_TIMEOUT_MS); find out why its kernels wait",
        wait->waiter->log->rank, (long long)wait->waiter->timeout_ms);
}

static const struct iris_wait_type for_streams = {
    .pace = IRIS_PACE_FENCE, .describe = describe_streams, .late = fail_late};

/* Waits until the streams no longer use any allocation released so far. */
static iris_status_t wait_for_streams(struct iris_heap *heap)
{
    struct iris_waiter waiter = iris_i_peers_waiter(heap->memory.control);
    size_t all = heap->deferred.count;
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_streams, &waiter, "iris_free_later", heap);
    for (check_fence(heap); status == IRIS_OK && heap->deferred.done < all;
         check_fence(heap)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    return status;
}

/* Removes freed allocations from the list; keeps those that were released
 * meanwhile. */
static void compact_list(struct iris_heap *heap)
{
    struct iris_deferred *deferred = &heap->deferred;
    size_t kept = 0, gone;

    pthread_mutex_lock(&deferred->lock);
    for (size_t i = 0; i < deferred->done; i++) {
        size_t name = deferred->names[i];

        if (mark_name(heap, name, -1) == DONE) {
            deferred->names[kept++] = name;
        }
    }
    gone = deferred->done - kept;
    if (gone > 0) {
        memmove(deferred->names + kept, deferred->names + deferred->done,
                (deferred->count - deferred->done) * sizeof *deferred->names);
    }
    deferred->count -= gone;
    deferred->fenced -= gone;
    deferred->done = kept;
    deferred->compared = kept;
    pthread_mutex_unlock(&deferred->lock);
}

/* ---- Comparing with the other ranks ---- */

/* A comparison in progress. */
struct comparison {
    struct iris_heap *heap;
    const struct iris_deferred_plan *plan;
    size_t *names; /* the lister's names, as far as known */
    size_t known;
    size_t compared;              /* of these */
    unsigned char answers[CHUNK]; /* 1: this rank has released it, too */
};

/* This rank's part of one round: the lister's next names, or another rank's
 * answers to those of the previous round. */
static void prepare_round(struct comparison *x, size_t next,
                          struct iris_call *call)
{
    if (x->heap->log->rank == x->plan->lister) {
        call->payload = x->names + x->known;
        call->payload_bytes = next * sizeof x->names[0];
        return;
    }
    for (size_t i = x->compared; i < x->known; i++) {
        x->answers[i - x->compared] =
            mark_name(x->heap, x->names[i], -1) == DONE;
    }
    call->payload = x->answers;
    call->payload_bytes = x->known - x->compared;
}

/* Reads the result of the round. */
static void read_round(struct comparison *x, size_t next)
{
    unsigned char theirs[CHUNK];
    size_t names[CHUNK], bytes;

    for (int rank = 0; rank < x->heap->log->num_ranks; rank++) {
        bytes =
            iris_i_agree_payload(x->heap->world, rank, theirs, sizeof theirs);
        for (size_t i = x->compared; rank != x->plan->lister && i < x->known;
             i++) {
            if (i - x->compared >= bytes || !theirs[i - x->compared]) {
                x->names[i] = GONE;
            }
        }
    }
    x->compared = x->known;
    bytes = iris_i_agree_payload(x->heap->world, x->plan->lister, names,
                                 sizeof names);
    if (bytes == next * sizeof names[0]) {
        memcpy(x->names + x->known, names, bytes);
    }
    x->known += next;
}

static iris_status_t compare_lists(struct comparison *x)
{
    struct iris_call call = {.type = &deferred_call};
    size_t count = x->plan->count;

    if (x->names == NULL) {
        call.status =
            iris_i_fail(x->heap->log, IRIS_ERR_NO_MEMORY,
                        "no memory to compare the released allocations");
    } else if (x->heap->log->rank == x->plan->lister) {
        pthread_mutex_lock(&x->heap->deferred.lock);
        memcpy(x->names, x->heap->deferred.names, count * sizeof(size_t));
        pthread_mutex_unlock(&x->heap->deferred.lock);
    }
    while (x->compared < count) {
        size_t next = count - x->known < CHUNK ? count - x->known : CHUNK;
        iris_status_t status;

        if (call.status == IRIS_OK) {
            prepare_round(x, next, &call);
        }
        call.fields[0] = x->compared;
        status = iris_i_agree(x->heap->world, &call);
        if (status != IRIS_OK) {
            return status;
        }
        read_round(x, next);
    }
    return IRIS_OK;
}

/* Frees in the lister's order on every rank, since names depend on the
 * order. */
static iris_status_t free_common(struct iris_heap *heap,
                                 const struct iris_deferred_plan *plan,
                                 size_t *freed_p)
{
    struct comparison x = {.heap = heap,
                           .plan = plan,
                           .names = malloc(plan->count * sizeof x.names[0])};
    iris_status_t status = compare_lists(&x);
    size_t freed = 0;

    for (size_t i = 0; status == IRIS_OK && i < plan->count; i++) {
        if (x.names[i] != GONE) {
            give_watched(heap, x.names[i]);
            freed++;
        }
    }
    if (status == IRIS_OK) {
        compact_list(heap);
        *freed_p = freed;
    }
    free(x.names);
    return status;
}

/* ---- Calls ---- */

void iris_i_deferred_post(struct iris_heap *heap, struct iris_call *call,
                          struct iris_deferred_plan *plan)
{
    struct iris_deferred *deferred = &heap->deferred;

    *plan = (struct iris_deferred_plan){.lister = -1};
    if (deferred->count > 0) {
        check_fence(heap);
        plan->post.count = deferred->done;
        plan->post.fresh = deferred->done - deferred->compared;
    }
    call->payload = &plan->post;
    call->payload_bytes = plan->post.count > 0 ? sizeof plan->post : 0;
}

void iris_i_deferred_judge(const struct iris_heap *heap,
                           struct iris_deferred_plan *plan)
{
    uint64_t fewest = plan->post.count, fresh = 0;
    int lister = heap->log->rank;

    for (int rank = 0; fewest > 0 && rank < heap->log->num_ranks; rank++) {
        struct iris_deferred_post post = {0};

        if (iris_i_agree_payload(heap->world, rank, &post, sizeof post) <
            sizeof post) {
            post = (struct iris_deferred_post){0};
        }
        if (post.count < fewest || (post.count == fewest && rank < lister)) {
            fewest = post.count;
            lister = rank;
        }
        fresh |= post.fresh;
    }
    plan->lister = fewest > 0 && fresh != 0 ? lister : -1;
    plan->count = (size_t)fewest;
}

size_t iris_i_deferred_follow(struct iris_heap *heap,
                              const struct iris_deferred_plan *plan)
{
    size_t freed = 0;

    if (plan->lister >= 0) {
        (void)(plan->waits ? iris_i_deferred_free(heap, &freed)
                           : free_common(heap, plan, &freed));
    }
    return freed;
}

iris_status_t iris_i_deferred_free(struct iris_heap *heap, size_t *freed_p)
{
    struct iris_call call = {.type = &deferred_call};
    struct iris_deferred_plan plan;
    iris_status_t status;

    iris_i_agree_begin(heap->memory.control, call.type);
    call.status = wait_for_streams(heap);
    iris_i_deferred_post(heap, &call, &plan);
    status = iris_i_agree(heap->world, &call);
    if (status == IRIS_OK) {
        iris_i_deferred_judge(heap, &plan);
        status = plan.lister >= 0 ? free_common(heap, &plan, freed_p) : IRIS_OK;
    }
    return status;
}
