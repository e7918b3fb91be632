/* SPDX-License-Identifier: MIT
 *
 * Freeing. An allocation has the same name on every rank for as long as it
 * lives (iris_i_heap_find_start()), so ranks compare names. In a deferred free,
 * the rank that has released the fewest allocations lists them, and the others
 * answer which of these they have released, too.
 */
#include "config.h"

#include "heap/heap.h"

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

/* ---- Giving back ---- */

void iris_i_heap_give(struct iris_heap *heap, size_t offset)
{
    size_t start = 0, bytes = 0;

    (void)iris_i_alloc_give_joined(heap->names.alloc, offset, &start, &bytes);
    iris_i_heap_give_back(&heap->memory, start, bytes);
}

/* Frees an allocation whose name all ranks have agreed on. */
static void give(struct iris_heap *heap, size_t name)
{
    if (name >= iris_i_heap_bytes(&heap->memory)) {
        iris_i_window_release(&heap->window, name);
    } else {
        iris_i_heap_note_free(&heap->names, name);
        iris_i_heap_give(heap, name);
    }
}

/* give(), between calls of observers. */
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
    give(heap, name);
    (void)iris_i_hooks_after(heap->hooks, &event, IRIS_OK);
}

/* ---- This rank's list ----- */

/* Appends to the list. The lock is held. */
static iris_status_t append(struct iris_heap *heap, size_t name)
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
    (void)iris_i_heap_mark(heap, name, RELEASED);
    deferred->names[deferred->count++] = name;
    return IRIS_OK;
}

iris_status_t iris_i_deferred_add(struct iris_heap *heap, void *ptr)
{
    size_t name = 0;
    iris_status_t status;

    pthread_mutex_lock(&heap->deferred.lock);
    status =
        heap->deferred.closed
            ? iris_i_fail(heap->log, IRIS_ERR_STATE,
                          "iris_free_later: the context is being "
                          "finalized, which frees everything")
            : iris_i_heap_find_start(heap, "iris_free_later", ptr, 0, &name);
    status = status == IRIS_OK ? append(heap, name) : status;
    pthread_mutex_unlock(&heap->deferred.lock);
    return status;
}

/* Checks the progress of the streams. Work that was enqueued before a release
 * may still use the allocation. One fence at a time follows all of that
 * work. */
static void advance(struct iris_heap *heap)
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
        (void)iris_i_heap_mark(heap, deferred->names[deferred->done++], DONE);
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
    for (advance(heap); status == IRIS_OK && heap->deferred.done < all;
         advance(heap)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    return status;
}

/* Removes freed allocations from the list; keeps those that were released
 * meanwhile. */
static void compact(struct iris_heap *heap)
{
    struct iris_deferred *deferred = &heap->deferred;
    size_t kept = 0, gone;

    pthread_mutex_lock(&deferred->lock);
    for (size_t i = 0; i < deferred->done; i++) {
        size_t name = deferred->names[i];

        if (iris_i_heap_mark(heap, name, -1) == DONE) {
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
            iris_i_heap_mark(x->heap, x->names[i], -1) == DONE;
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

static iris_status_t compare(struct comparison *x)
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
static iris_status_t drain(struct iris_heap *heap,
                           const struct iris_deferred_plan *plan,
                           size_t *freed_p)
{
    struct comparison x = {.heap = heap,
                           .plan = plan,
                           .names = malloc(plan->count * sizeof x.names[0])};
    iris_status_t status = compare(&x);
    size_t freed = 0;

    for (size_t i = 0; status == IRIS_OK && i < plan->count; i++) {
        if (x.names[i] != GONE) {
            give_watched(heap, x.names[i]);
            freed++;
        }
    }
    if (status == IRIS_OK) {
        compact(heap);
        *freed_p = freed;
    }
    free(x.names);
    return status;
}

/* ---- Calls ---- */

static void attach(struct iris_deferred_plan *plan, struct iris_call *call)
{
    if (plan->post.count > 0) {
        call->payload = &plan->post;
        call->payload_bytes = sizeof plan->post;
    }
}

void iris_i_deferred_post(struct iris_heap *heap, struct iris_call *call,
                          struct iris_deferred_plan *plan)
{
    struct iris_deferred *deferred = &heap->deferred;

    *plan = (struct iris_deferred_plan){.lister = -1};
    if (deferred->count > 0) {
        advance(heap);
        plan->post.count = deferred->done;
        plan->post.fresh = deferred->done - deferred->compared;
        attach(plan, call);
    }
}

void iris_i_deferred_post_failure(struct iris_heap *heap, int full,
                                  struct iris_call *call,
                                  struct iris_deferred_plan *plan)
{
    *plan = (struct iris_deferred_plan){
        .lister = -1,
        .waits = 1,
        .post = {.count = heap->deferred.count, .fresh = full != 0}};
    attach(plan, call);
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
                           : drain(heap, plan, &freed));
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
        status = plan.lister >= 0 ? drain(heap, &plan, freed_p) : IRIS_OK;
    }
    return status;
}

void iris_i_deferred_close(struct iris_heap *heap)
{
    pthread_mutex_lock(&heap->deferred.lock);
    heap->deferred.closed = 1;
    free(heap->deferred.names);
    heap->deferred.names = NULL;
    heap->deferred.count = 0;
    pthread_mutex_unlock(&heap->deferred.lock);
}

/* ---- iris_free() ---- */

static const struct iris_call_type free_call = {
    .name = "iris_free",
    .fields = {{.name = "offset"}},
};

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
        call.fields[0] = iris_i_heap_offset(&heap->memory, ptr);
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
