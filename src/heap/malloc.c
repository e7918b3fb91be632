/* SPDX-License-Identifier: MIT
 *
 * The collective calls on the heap: allocate, free, and share memory of the program;
 * deferred frees, and the names by which ranks agree on allocations.
 *
 * All calls have one form. A rank prepares its own part, and undoes it unless all
 * ranks agree, so ranks that differ in one call do not differ in the offsets of the
 * next. An allocation takes a range and commits memory to it before the agreement;
 * if peers map each commit, a second agreement says that all have done so.
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

#include "backend/calls.h"
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Finds the allocation that begins at `ptr` and has not been released yet. If
 * there are several, it finds the newest or the oldest. Ranks release the oldest
 * first, each at its own time, so the newest is the same for all. `call` is for
 * messages. Any thread. */
static iris_status_t find_name(struct iris_heap *heap, const char *call,
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

static void give_offset(struct iris_heap *heap, size_t offset)
{
    struct iris_heap_run freed = {0}, joined = {0};

    (void)iris_i_alloc_find(heap->names.alloc, offset, &freed.offset,
                            &freed.bytes);
    (void)iris_i_alloc_give_joined(heap->names.alloc, offset, &joined.offset,
                                   &joined.bytes);
    iris_i_heap_give_back(&heap->memory, &freed, &joined);
}

/* Frees an allocation whose name all ranks have agreed on. */
static void give_name(struct iris_heap *heap, size_t name)
{
    if (name >= iris_i_heap_bytes(&heap->memory)) {
        iris_i_window_release(&heap->window, name);
    } else {
        iris_i_heap_note_free(&heap->names, name);
        give_offset(heap, name);
    }
}

void iris_i_heap_drop(struct iris_heap *heap, const void *ptr)
{
    give_name(heap, iris_i_heap_offset(&heap->memory, ptr));
}

static void add_allocation(void *arg, size_t start, size_t bytes)
{
    uint64_t *digest = arg;

    digest[0]++;
    digest[1] = (digest[1] ^ start) * UINT64_C(0x9e3779b97f4a7c15);
    digest[1] = (digest[1] ^ bytes) * UINT64_C(0x9e3779b97f4a7c15);
    digest[1] ^= digest[1] >> 29;
}

void iris_i_heap_digest(const struct iris_heap *heap, uint64_t digest_p[2])
{
    digest_p[0] = heap->window.num_shared;
    digest_p[1] = heap->window.num_shared;
    iris_i_alloc_each(heap->names.alloc, add_allocation, digest_p);
}

/* give_name(), between calls of observers. */
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
    give_name(heap, name);
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
                 : find_name(heap, "iris_free_later", ptr, 0, &name);
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

/* Makes the plan of a call and the payload of its post, without waiting. */
static void post_lengths(struct iris_heap *heap, struct iris_call *call,
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

/* After the agreement, every payload of which begins with a struct
 * iris_deferred_post. */
static void judge_lengths(const struct iris_heap *heap,
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

iris_status_t iris_i_deferred_agree(struct iris_heap *heap,
                                    struct iris_call *call,
                                    struct iris_deferred_plan *plan)
{
    iris_status_t status;

    post_lengths(heap, call, plan);
    status = iris_i_agree(heap->world, call);
    if (status == IRIS_OK) {
        judge_lengths(heap, plan);
    }
    return status;
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

/* Waits until this rank's streams no longer use its released allocations, then
 * frees those that all ranks have released. `type`: the call that does so. */
static iris_status_t free_released(struct iris_heap *heap,
                                   const struct iris_call_type *type,
                                   size_t *freed_p)
{
    struct iris_call call = {.type = type};
    struct iris_deferred_plan plan;
    iris_status_t status;

    iris_i_agree_begin(heap->memory.control, call.type);
    call.status = wait_for_streams(heap);
    status = iris_i_deferred_agree(heap, &call, &plan);
    if (status == IRIS_OK) {
        status = plan.lister >= 0 ? free_common(heap, &plan, freed_p) : IRIS_OK;
    }
    return status;
}

iris_status_t iris_i_deferred_free(struct iris_heap *heap, size_t *freed_p)
{
    return free_released(heap, &deferred_call, freed_p);
}

/* ---- iris_free() ---- */

static const struct iris_call_type free_call = {
    .name = "iris_free",
    .fields = {{.name = "offset"}},
};

static iris_status_t release_allocation(struct iris_heap *heap, void *ptr,
                                        iris_status_t checked)
{
    struct iris_call call = {
        .type = &free_call, .status = checked, .fields = {SIZE_MAX}};
    struct iris_deferred_plan plan;
    size_t name = SIZE_MAX;
    iris_status_t status;

    if (ptr != NULL && checked == IRIS_OK) {
        call.status = find_name(heap, "iris_free", ptr, 1, &name);
        call.fields[0] = iris_i_heap_offset(&heap->memory, ptr);
    }
    status = iris_i_deferred_agree(heap, &call, &plan);
    if (status != IRIS_OK) {
        return status;
    }
    if (ptr != NULL) {
        give_name(heap, name);
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
    return iris_i_hooks_after(heap->hooks, &event,
                              release_allocation(heap, ptr, checked));
}

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

/* Offers memory of this rank to every other process, and maps theirs. Works and
 * returns as iris_i_exchange(); makes and closes the handles. */
static iris_status_t share_offers(struct iris_heap *heap,
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
    return share_offers(heap, offers, count, IRIS_OK);
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
static iris_status_t map_fresh(struct iris_heap *heap)
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
    iris_i_heap_end_commit(&heap->memory, status == IRIS_OK);
    return status;
}

/* ---- Allocation ---- */

static iris_status_t fail_full(struct iris_heap *heap, size_t bytes,
                               size_t alignment)
{
    struct iris_heap_stats stats;

    iris_i_alloc_stats(heap->names.alloc, &stats);
    return iris_i_fail(
        heap->log, IRIS_ERR_NO_MEMORY,
        "no %zu bytes (alignment %zu) on the symmetric heap: "
        "%zu of %zu bytes are free, %zu in one piece; free "
        "some, or raise IRIS_HEAP_SIZE (%zu) or "
        "IRIS_HEAP_RESERVE",
        bytes, alignment, stats.free_bytes, iris_i_heap_bytes(&heap->memory),
        stats.largest_free_bytes, iris_i_heap_size(&heap->memory));
}

/* Commits memory, and says about a heap that may grow why it cannot. */
static iris_status_t commit_range(struct iris_heap *heap, size_t offset,
                                  size_t bytes)
{
    iris_status_t status = iris_i_heap_commit(&heap->memory, offset, bytes);
    char why[IRIS_MESSAGE_BYTES];

    if (status != IRIS_ERR_NO_MEMORY) {
        return status;
    }
    snprintf(why, sizeof why, "%s", iris_last_error());
    return iris_i_fail(NULL, status,
                       "%.600s. The heap of %zu bytes (IRIS_HEAP_SIZE) may "
                       "grow to %zu (IRIS_HEAP_RESERVE), and memory backs %zu "
                       "of them; iris_heap_trim() gives back what is free",
                       why, iris_i_heap_size(&heap->memory),
                       iris_i_heap_bytes(&heap->memory),
                       iris_i_heap_backed(&heap->memory));
}

/* This rank's part, before the agreement with the others: takes a range, commits
 * memory to it and fills it. Takes nothing if it fails. */
static iris_status_t prepare_range(struct iris_heap *heap,
                                   const struct iris_heap_request *request,
                                   void **ptr_p, size_t *offset_p)
{
    size_t bytes = request->bytes, alignment = request->alignment, offset;
    size_t zone = heap->names.red_zone_bytes;
    iris_status_t status = IRIS_OK;

    if (ptr_p == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "ptr_p is NULL; pass where to put the pointer");
    }
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
    if (iris_i_alloc_take(heap->names.alloc,
                          bytes > SIZE_MAX - zone ? bytes : bytes + zone,
                          alignment, &offset) != IRIS_OK) {
        return fail_full(heap, bytes, alignment);
    }
    if (!request->is_lazy || heap->memory.region.commit != IRIS_COMMIT_SHARED) {
        status = commit_range(heap, offset, bytes);
    }
    if (status == IRIS_OK && request->fill != NULL) {
        status = request->fill(request->arg,
                               iris_i_heap_base(&heap->memory) + offset);
    } else if (status == IRIS_OK && request->zero) {
        status = iris_i_heap_zero(&heap->memory, offset, bytes);
    }
    if (status != IRIS_OK) {
        iris_i_heap_end_commit(&heap->memory, 0);
        iris_i_alloc_untake(heap->names.alloc, offset);
        return iris_i_fail_on(heap->log, status);
    }
    *offset_p = offset;
    return IRIS_OK;
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
static iris_status_t agree_on_undo(struct iris_heap *heap, iris_status_t status,
                                   int full, struct iris_deferred_plan *plan)
{
    struct iris_call call = {.type = &undo_call};
    char message[IRIS_MESSAGE_BYTES];

    *plan = (struct iris_deferred_plan){
        .lister = -1,
        .waits = 1,
        .post = {.count = heap->deferred.count, .fresh = full != 0}};
    if (!iris_i_agree_all_called(heap->world)) {
        return status;
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    call.payload = &plan->post;
    call.payload_bytes = plan->post.count > 0 ? sizeof plan->post : 0;
    if (iris_i_agree(heap->world, &call) == IRIS_OK) {
        judge_lengths(heap, plan);
    }
    return iris_i_fail_again(status, message);
}

/* Prepares, agrees, and undoes the preparation unless all agree. After a call
 * on which the ranks differed, the offsets of the next call must not differ. */
static iris_status_t allocate_range(struct iris_heap *heap,
                                    const struct iris_heap_request *request,
                                    void **ptr_p,
                                    struct iris_deferred_plan *plan)
{
    struct iris_call call = {.type = request->type, .status = request->checked};
    size_t offset = 0;
    iris_status_t status;

    iris_i_agree_begin(heap->memory.control, call.type);
    if (request->checked == IRIS_OK) {
        call.status = prepare_range(heap, request, ptr_p, &offset);
    }
    call.fields[0] = request->bytes;
    call.fields[1] = request->alignment;
    call.fields[2] = offset;
    status = iris_i_deferred_agree(heap, &call, plan);
    if (status == IRIS_OK) {
        status = map_fresh(heap);
    } else if (call.status == IRIS_OK) {
        end_fill(request);
        iris_i_heap_end_commit(&heap->memory, 0);
    }
    if (status != IRIS_OK) {
        if (call.status == IRIS_OK) {
            iris_i_alloc_untake(heap->names.alloc, offset);
        }
        return agree_on_undo(heap, status, call.status == IRIS_ERR_NO_MEMORY,
                             plan);
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
    status = allocate_range(heap, request, ptr_p, plan);
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
    const struct iris_heap_memory *memory = &heap->memory;
    size_t end = iris_i_alloc_stats(heap->names.alloc, stats_p);

    if (iris_i_heap_size(memory) < iris_i_heap_bytes(memory)) {
        stats_p->heap_bytes =
            end > iris_i_heap_size(memory) ? end : iris_i_heap_size(memory);
        stats_p->free_bytes = stats_p->heap_bytes - stats_p->used_bytes;
    }
    stats_p->used_bytes -= heap->names.reserved_bytes;
    stats_p->peak_bytes -= heap->names.reserved_bytes;
    stats_p->num_allocs -= 1;
    stats_p->mapped_bytes = iris_i_heap_backed(memory);
    stats_p->reserved_bytes = iris_i_heap_bytes(memory);
    stats_p->num_deferred = heap->deferred.count;
}

/* ---- Giving memory back ---- */

static const struct iris_call_type trim_call = {.name = "iris_heap_trim"};

/* A walk through the live allocations, with free ranges between them. */
struct trim {
    struct iris_heap_memory *memory;
    size_t end; /* where the previous allocation ends */
};

static void trim_before(void *arg, size_t start, size_t bytes)
{
    struct trim *trim = arg;

    if (start > trim->end) {
        iris_i_heap_trim(trim->memory, trim->end, start - trim->end);
    }
    trim->end = start + bytes;
}

static iris_status_t trim_memory(struct iris_heap *heap, size_t *freed_p)
{
    struct trim trim = {.memory = &heap->memory};
    struct iris_call call = {.type = &trim_call};
    size_t freed, before;
    iris_status_t status = free_released(heap, &trim_call, &freed);

    if (status != IRIS_OK) {
        return status;
    }
    before = iris_i_heap_backed(trim.memory);
    iris_i_alloc_each(heap->names.alloc, trim_before, &trim);
    trim_before(&trim, iris_i_heap_bytes(trim.memory), 0);
    *freed_p = before - iris_i_heap_backed(trim.memory);
    /* The system has a rank's memory once no peer maps it. */
    iris_i_agree_begin(trim.memory->control, call.type);
    return iris_i_agree(heap->world, &call);
}

iris_status_t iris_i_heap_trim_all(struct iris_heap *heap, size_t *freed_p)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_FREE, .rank = heap->log->rank, .target_rank = -1};

    iris_i_hooks_before(heap->hooks, &event);
    return iris_i_hooks_after(heap->hooks, &event, trim_memory(heap, freed_p));
}

/* ---- Sharing memory of the program ---- */

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

static iris_status_t check_request(struct iris_heap *heap,
                                   const struct request *request,
                                   void **symmetric_p)
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
static struct finding find_external(struct iris_heap *heap,
                                    struct request *request)
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
static size_t agree_on_bytes(struct iris_heap *heap, const struct finding *own,
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

static int has_space(struct iris_heap *heap, size_t bytes)
{
    struct iris_heap_stats stats = {0};

    if (bytes > 0) {
        iris_i_alloc_stats(heap->window.alloc, &stats);
    }
    return bytes <= stats.largest_free_bytes;
}

/* Keeps the record of the mapping at `start`. */
static void *keep_record(struct iris_heap *heap, struct request *request,
                         size_t start)
{
    struct iris_external_range *record = request->record;

    record->start = start;
    record->offset = start + request->external.offset;
    record->bytes = request->bytes;
    request->record = NULL;
    return iris_i_window_add(&heap->window, record);
}

/* Maps the memory of all ranks on every rank, or nothing. */
static iris_status_t share_external(struct iris_heap *heap,
                                    struct request *request, size_t most,
                                    void **symmetric_p)
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
    status = share_offers(heap, &offer, 1, status);
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
    *symmetric_p = keep_record(heap, request, start);
    return IRIS_OK;
}

/* The alternative: memory of the heap, with the same contents. */
static iris_status_t copy_external(struct iris_heap *heap,
                                   const struct request *request,
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
        give_offset(heap, iris_i_heap_offset(&heap->memory, ptr));
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
                      : check_request(heap, &request, symmetric_p);
    if (call.status == IRIS_OK) {
        finding = find_external(heap, &request);
    }
    post_lengths(heap, &call, &plan);
    finding.deferred = plan.post;
    call.payload = &finding;
    call.payload_bytes = sizeof finding;
    status = iris_i_agree(heap->world, &call);
    if (status == IRIS_OK) {
        judge_lengths(heap, &plan);
        most = agree_on_bytes(heap, &finding, &mapped);
        if (mapped) { /* before frees that could unmap it */
            *symmetric_p =
                keep_record(heap, &request, (size_t)finding.mapped - 1);
        }
        (void)iris_i_deferred_follow(heap, &plan);
        most = has_space(heap, most) ? most : 0;
    }
    if (status == IRIS_OK && !mapped) {
        status = most > 0 ? share_external(heap, &request, most, symmetric_p)
                          : copy_external(heap, &request, asked, symmetric_p);
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
