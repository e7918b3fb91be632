/* SPDX-License-Identifier: MIT
 *
 * Plans: copies that the host arms and a kernel starts (<iris/plan.h>).
 *
 * In an epoch e a rank first posts e to the ranks that copy to it. Then, for each
 * batch, its chain waits until the gate is e, takes a snapshot of the stamp, waits
 * until each receiver has posted e, copies, and forwards the snapshot to the
 * receivers' arrivals. struct iris_dev_plan (device/layout.h) has the words.
 *
 * Every word is compared for equality, so epochs may wrap. That needs each word to
 * stay until its reader has seen it: a rank posts e only after it has ended e - 1,
 * which it does when it has all data of e - 1. So no sender is ahead of a receiver.
 *
 * A stream of a GPU runs the work behind a wait that a fault has ended. It then
 * copies, but the stamp is not e, and so no arrival is. A rank that gives up marks
 * its stamps and its peers' arrivals, and then opens its own gates, so that its
 * chain ends. A rank that finds a mark gives up, too: every rank that the epoch
 * connects with the first one learns of it.
 *
 * The chain and the stream `aside` are the plan's. The host reads words and gives
 * up on `aside`, while the chain waits.
 */
#include "config.h"

#include <iris/plan.h>

#include <iris/device/core/atomic.h>
#include <iris/device/layout.h>
#include <iris/heap.h>
#include <iris/sync.h>

#include "base/base.h"
#include "context/context.h"
#include "control/control.h"
#include "heap/heap.h"
#include "queue/kernels.h"
#include "queue/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_BATCHES 32
#define PLAN_SEGMENT_BYTES ((size_t)1 << 30)
/* Calls of an epoch on a stream. They all wait for gates, so a full stream would
 * make iris_plan_begin() wait for a kernel. */
#define PLAN_CALLS 400

/* A rank's part in a batch, or in all batches. */
enum { SENDS_TO = 1, RECEIVES_FROM = 2 };

struct iris_plan {
    iris_t *iris;
    int num_ranks;                      /* ranks of the job that made it */
    struct iris_plan_segment *segments; /* this rank's own, by batch */
    size_t num_segments;
    int num_batches;
    unsigned char *pairs; /* by batch and rank; those of all batches last */
    struct iris_dev_plan head;
    uint64_t *words; /* on the heap; the header comes first */
    uint64_t *seen;  /* the same, as last read */
    size_t num_words;
    iris_stream_t *chain;
    iris_stream_t *aside;
    uint32_t epoch;          /* the latest that has begun */
    iris_plan_state_t state; /* ARMED also for ACTIVE, until the end */
};

static const struct iris_call_type create_call = {
    .name = "iris_plan_create",
    .fields = {
        {.name = "segments"}, {.name = "digest"}, {.name = "first_epoch"}}};

/* ---- The words ---- */

/* Index of the word by which `rank` posts, or of a batch's word. */
static size_t posted_at(int rank)
{
    return sizeof(struct iris_dev_plan) / sizeof(uint64_t) + (size_t)rank;
}

static size_t word_at(const struct iris_plan *plan, int batch, size_t which)
{
    return (size_t)(plan->head.first +
                    (uint64_t)batch * plan->head.batch_words + which);
}

static size_t arrival_at(const struct iris_plan *plan, int batch, int rank)
{
    return word_at(plan, batch, IRIS_PLAN_ARRIVALS + (size_t)rank);
}

/* The parts of a batch's ranks; of all batches: plan->num_batches. */
static unsigned char *pairs_of(const struct iris_plan *plan, int batch)
{
    return &plan->pairs[(size_t)batch * (size_t)iris_i_num_ranks(plan->iris)];
}

static bool has_part(const struct iris_plan *plan, int batch, int part)
{
    int found = 0;

    for (int rank = 0; rank < iris_i_num_ranks(plan->iris); rank++) {
        found |= pairs_of(plan, batch)[rank] & part;
    }
    return found != 0;
}

/* Reads this rank's words: by a copy from a GPU, which may still write them. */
static iris_status_t read_words(struct iris_plan *plan)
{
    iris_status_t status;

    if (!iris_i_is_gpu(plan->iris)) {
        for (size_t i = 0; i < plan->num_words; i++) {
            plan->seen[i] =
                iris_d_load(&plan->words[i], sizeof *plan->words,
                            iris_d_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM));
        }
        return IRIS_OK;
    }
    status = iris_memcpy(plan->iris, plan->seen, plan->words,
                         plan->num_words * sizeof *plan->words, plan->aside);
    return status == IRIS_OK ? iris_stream_synchronize(plan->iris, plan->aside)
                             : status;
}

/* ---- The meaning of the words ---- */

/* An epoch as its words are now. `rank` is -1 for this rank's own copies. */
struct verdict {
    int batch; /* the first that is missing; -1: none */
    int rank;
    int quitter; /* a rank that gave up; -1: none */
    bool is_published;
};

static void judge_word(struct verdict *verdict, uint32_t epoch, uint64_t word,
                       int batch, int rank)
{
    if (iris_i_plan_reached(word, epoch)) {
        return;
    }
    if (verdict->batch < 0) {
        verdict->batch = batch;
        verdict->rank = rank;
    }
    if (rank >= 0 && (word & IRIS_PLAN_GIVEN_UP) != 0) {
        verdict->quitter = rank;
    }
}

static struct verdict judge_words(const struct iris_plan *plan)
{
    struct verdict verdict = {.batch = -1, .quitter = -1};

    for (int batch = 0; batch < plan->num_batches; batch++) {
        const uint64_t *words = &plan->seen[word_at(plan, batch, 0)];

        verdict.is_published |= words[IRIS_PLAN_STAMP] == plan->epoch;
        if (has_part(plan, batch, SENDS_TO)) {
            judge_word(&verdict, plan->epoch, words[IRIS_PLAN_DONE], batch, -1);
        }
        for (int rank = 0; rank < iris_i_num_ranks(plan->iris); rank++) {
            if (pairs_of(plan, batch)[rank] & RECEIVES_FROM) {
                judge_word(&verdict, plan->epoch,
                           words[IRIS_PLAN_ARRIVALS + rank], batch, rank);
            }
        }
    }
    return verdict;
}

/* A rank to which this one copies in the batch, and which has not begun the
 * epoch; -1: none. */
static int find_late_receiver(const struct iris_plan *plan, int batch)
{
    int rank = iris_i_num_ranks(plan->iris) - 1;

    while (rank >= 0 && ((pairs_of(plan, batch)[rank] & SENDS_TO) == 0 ||
                         plan->seen[posted_at(rank)] == plan->epoch)) {
        rank--;
    }
    return rank;
}

/* The end of a message about a late epoch. */
static void describe_late_plan(void *arg, char *text, size_t bytes)
{
    const struct iris_plan *plan = arg;
    struct verdict verdict = judge_words(plan);
    int batch = verdict.batch < 0 ? 0 : verdict.batch;
    uint64_t gate = plan->seen[word_at(plan, batch, IRIS_PLAN_GATE)];
    int late = find_late_receiver(plan, batch);

    if (verdict.batch < 0) {
        snprintf(text, bytes, "nothing any more");
    } else if (verdict.rank >= 0) {
        snprintf(text, bytes, "batch %d of rank %d, which has not arrived",
                 batch, verdict.rank);
    } else if (gate != plan->epoch) {
        snprintf(text, bytes,
                 "batch %d, which no kernel of this rank has published in "
                 "epoch %u: the gate has %llu",
                 batch, plan->epoch, (unsigned long long)gate);
    } else if (late >= 0) {
        snprintf(text, bytes, "rank %d, which has not begun epoch %u", late,
                 plan->epoch);
    } else {
        snprintf(text, bytes, "this rank's copies of batch %d", batch);
    }
}

/* ---- Giving up ---- */

/* Signals on `aside`, which no gate holds up. Keeps the first error. */
static void mark_word(struct iris_plan *plan, size_t word, uint64_t value,
                      int rank, iris_status_t *status)
{
    iris_status_t own = iris_signal_on_stream(plan->iris, &plan->words[word],
                                              value, rank, plan->aside);

    *status = *status == IRIS_OK ? own : *status;
}

static iris_status_t mark_words(struct iris_plan *plan)
{
    int rank = iris_i_rank(plan->iris),
        num_ranks = iris_i_num_ranks(plan->iris);
    uint32_t epoch = plan->epoch + (plan->state == IRIS_PLAN_COMPLETE);
    uint64_t mark = IRIS_PLAN_GIVEN_UP | epoch;
    iris_status_t status = IRIS_OK;

    for (int batch = 0; batch < plan->num_batches; batch++) {
        const unsigned char *pairs = pairs_of(plan, batch);

        mark_word(plan, word_at(plan, batch, IRIS_PLAN_STAMP), mark, rank,
                  &status);
        mark_word(plan, word_at(plan, batch, IRIS_PLAN_GATE), epoch, rank,
                  &status);
        for (int peer = 0; peer < num_ranks; peer++) {
            if (pairs[peer] & SENDS_TO) {
                mark_word(plan, arrival_at(plan, batch, rank), mark, peer,
                          &status);
            }
            if (pairs[peer] & RECEIVES_FROM) {
                mark_word(plan, arrival_at(plan, batch, peer), mark, rank,
                          &status);
            }
        }
    }
    for (int peer = 0; peer < num_ranks; peer++) {
        int parts = pairs_of(plan, plan->num_batches)[peer];

        if (parts & SENDS_TO) {
            mark_word(plan, posted_at(peer), epoch, rank, &status);
        }
        if (parts & RECEIVES_FROM) {
            mark_word(plan, posted_at(rank), epoch, peer, &status);
        }
    }
    return status;
}

/* Returns `why`, with this thread's message. */
static iris_status_t fail_plan(struct iris_plan *plan, iris_status_t why)
{
    char message[IRIS_MESSAGE_BYTES];

    snprintf(message, sizeof message, "%s", iris_last_error());
    (void)mark_words(plan);
    plan->state = IRIS_PLAN_FAILED;
    return iris_i_fail_again(why, message);
}

/* ---- An epoch ---- */

/* Sets `to` on a rank to the value that `from` has then. A copy needs no
 * processor of the GPU. */
static iris_status_t forward_word(struct iris_plan *plan, size_t to,
                                  size_t from, int rank)
{
    const struct iris_transfer what = {.call = "iris_plan_begin",
                                       .name = "plan",
                                       .symmetric = &plan->words[to],
                                       .other = &plan->words[from],
                                       .bytes = sizeof *plan->words,
                                       .rank = rank};

    return iris_i_is_gpu(plan->iris)
               ? iris_i_enqueue_transfer(iris_i_queue(plan->iris), &what,
                                         plan->chain)
               : iris_i_kernel_forward(iris_i_queue(plan->iris), &what,
                                       plan->chain);
}

static iris_status_t await_word(struct iris_plan *plan, size_t word)
{
    return iris_wait_on_stream(plan->iris, &plan->words[word], IRIS_CMP_EQ,
                               plan->epoch, plan->chain);
}

static iris_status_t enqueue_copies(struct iris_plan *plan, int batch)
{
    const struct iris_plan_segment *segment = plan->segments;
    const struct iris_plan_segment *end = segment + plan->num_segments;
    iris_status_t status = IRIS_OK;

    for (; segment < end && status == IRIS_OK; segment++) {
        if (segment->batch == batch) {
            status = iris_put_on_stream(plan->iris, segment->dst, segment->src,
                                        segment->bytes, segment->to_rank,
                                        plan->chain);
        }
    }
    return status;
}

static iris_status_t enqueue_batch(struct iris_plan *plan, int batch)
{
    int rank = iris_i_rank(plan->iris),
        num_ranks = iris_i_num_ranks(plan->iris);
    size_t snapshot = word_at(plan, batch, IRIS_PLAN_SNAPSHOT);
    const unsigned char *pairs = pairs_of(plan, batch);
    iris_status_t status =
        await_word(plan, word_at(plan, batch, IRIS_PLAN_GATE));

    if (status == IRIS_OK) {
        status = forward_word(plan, snapshot,
                              word_at(plan, batch, IRIS_PLAN_STAMP), rank);
    }
    for (int peer = 0; peer < num_ranks && status == IRIS_OK; peer++) {
        if (pairs[peer] & SENDS_TO) {
            status = await_word(plan, posted_at(peer));
        }
    }
    if (status == IRIS_OK) {
        status = enqueue_copies(plan, batch);
    }
    for (int peer = 0; peer < num_ranks && status == IRIS_OK; peer++) {
        if (pairs[peer] & SENDS_TO) {
            status = forward_word(plan, arrival_at(plan, batch, rank), snapshot,
                                  peer);
        }
    }
    return status == IRIS_OK
               ? forward_word(plan, word_at(plan, batch, IRIS_PLAN_DONE),
                              snapshot, rank)
               : status;
}

static iris_status_t arm_chain(struct iris_plan *plan, iris_stream_t *stream)
{
    int rank = iris_i_rank(plan->iris),
        num_ranks = iris_i_num_ranks(plan->iris);
    iris_status_t status = iris_i_fail_on(
        iris_i_log(plan->iris), iris_i_queue_follow(plan->chain, stream));

    for (int peer = 0; peer < num_ranks && status == IRIS_OK; peer++) {
        if (pairs_of(plan, plan->num_batches)[peer] & RECEIVES_FROM) {
            status =
                iris_signal_on_stream(plan->iris, &plan->words[posted_at(rank)],
                                      plan->epoch, peer, plan->chain);
        }
    }
    for (int batch = 0; batch < plan->num_batches && status == IRIS_OK;
         batch++) {
        if (has_part(plan, batch, SENDS_TO)) {
            status = enqueue_batch(plan, batch);
        }
    }
    return status;
}

static bool is_open(const struct iris_plan *plan)
{
    return plan->state == IRIS_PLAN_ARMED;
}

/* The state of an epoch that has begun. A rank that gave up is an error. */
static iris_status_t look_at_epoch(struct iris_plan *plan,
                                   iris_plan_state_t *state_p)
{
    iris_status_t status = read_words(plan);
    struct verdict verdict;

    if (status != IRIS_OK) {
        return status;
    }
    verdict = judge_words(plan);
    if (verdict.quitter >= 0) {
        return iris_i_fail(iris_i_log(plan->iris), IRIS_ERR_STATE,
                           "rank %d gave the plan up in epoch %u, by "
                           "iris_plan_abort() or after an error; destroy the "
                           "plan and make another",
                           verdict.quitter, plan->epoch);
    }
    *state_p = verdict.batch < 0      ? IRIS_PLAN_COMPLETE
               : verdict.is_published ? IRIS_PLAN_ACTIVE
                                      : IRIS_PLAN_ARMED;
    return IRIS_OK;
}

static const struct iris_wait_type plan_wait = {.pace = IRIS_PACE_QUEUE,
                                                .describe = describe_late_plan};

static iris_status_t await_epoch(struct iris_plan *plan)
{
    iris_plan_state_t state = IRIS_PLAN_ARMED;
    iris_status_t status = look_at_epoch(plan, &state);
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &plan_wait, &plan->iris->waiter, "iris_plan_end",
                      plan);
    while (status == IRIS_OK && state != IRIS_PLAN_COMPLETE) {
        status = iris_i_wait_tick(&wait);
        status = status == IRIS_OK ? look_at_epoch(plan, &state) : status;
    }
    iris_i_wait_end(&wait, status);
    return status;
}

/* Everything has arrived. The chain acquires it, for the work of all streams
 * that begins after the host knows. */
static iris_status_t acquire_arrivals(struct iris_plan *plan)
{
    iris_status_t status = IRIS_OK;

    for (int batch = 0; batch < plan->num_batches; batch++) {
        for (int peer = 0; peer < iris_i_num_ranks(plan->iris); peer++) {
            if (status == IRIS_OK &&
                (pairs_of(plan, batch)[peer] & RECEIVES_FROM)) {
                status = iris_wait_on_stream(
                    plan->iris, &plan->words[arrival_at(plan, batch, peer)],
                    IRIS_CMP_GE, plan->epoch, plan->chain);
            }
        }
    }
    return status == IRIS_OK ? iris_stream_synchronize(plan->iris, plan->chain)
                             : status;
}

/* ---- Making a plan ---- */

static iris_status_t
check_segment(iris_t *iris, const struct iris_plan_segment *segment, size_t i)
{
    const struct iris_heap *heap = iris_i_heap(iris);
    int num_ranks = iris_i_num_ranks(iris);
    const char *src = segment->src, *dst = segment->dst;

    if (segment->from_rank < 0 || segment->from_rank >= num_ranks ||
        segment->to_rank < 0 || segment->to_rank >= num_ranks ||
        segment->batch < 0 || segment->batch >= PLAN_BATCHES ||
        segment->bytes == 0 || segment->bytes > PLAN_SEGMENT_BYTES) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_plan_create: segment %zu has batch %d and %zu "
                           "bytes from rank %d to rank %d; pass batches 0 to "
                           "%d, 1 to %zu bytes and ranks 0 to %d",
                           i, segment->batch, segment->bytes,
                           segment->from_rank, segment->to_rank,
                           PLAN_BATCHES - 1, PLAN_SEGMENT_BYTES, num_ranks - 1);
    }
    if (iris_i_heap_bytes_from(heap, src) < segment->bytes ||
        iris_i_heap_bytes_from(heap, dst) < segment->bytes) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_plan_create: segment %zu: the heap does not "
                           "have %zu bytes at src %p and dst %p; pass memory "
                           "from iris_malloc",
                           i, segment->bytes, (const void *)src,
                           (const void *)dst);
    }
    if (segment->from_rank == segment->to_rank && src < dst + segment->bytes &&
        dst < src + segment->bytes) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_plan_create: segment %zu copies to itself; "
                           "pass src and dst that do not overlap",
                           i);
    }
    if (segment->from_rank == iris_i_rank(iris) && iris_i_is_gpu(iris) &&
        !iris_is_reachable(iris, segment->to_rank)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_UNREACHABLE,
                           "iris_plan_create: segment %zu: this GPU does not "
                           "reach the heap of rank %d; copy with "
                           "iris_put_on_stream()",
                           i, segment->to_rank);
    }
    return IRIS_OK;
}

/* FNV-1a over numbers that all ranks share. */
static uint64_t digest_segments(iris_t *iris,
                                const struct iris_plan_segment *segments,
                                size_t count)
{
    const char *base = iris_i_heap_base(&iris_i_heap(iris)->memory);
    uint64_t digest = 0xcbf29ce484222325u;

    for (size_t i = 0; i < count; i++) {
        const struct iris_plan_segment *one = &segments[i];
        const uint64_t numbers[] = {(uint64_t)one->from_rank,
                                    (uint64_t)one->to_rank,
                                    (uint64_t)((const char *)one->src - base),
                                    (uint64_t)((const char *)one->dst - base),
                                    one->bytes,
                                    (uint64_t)one->batch};
        unsigned char bytes[sizeof numbers];

        memcpy(bytes, numbers, sizeof numbers);
        for (size_t j = 0; j < sizeof numbers; j++) {
            digest = (digest ^ bytes[j]) * 0x100000001b3u;
        }
    }
    return digest;
}

static void free_plan(struct iris_plan *plan)
{
    iris_stream_destroy(plan->iris, plan->chain);
    iris_stream_destroy(plan->iris, plan->aside);
    free(plan->segments);
    free(plan->pairs);
    free(plan->seen);
    free(plan);
}

/* Notes the ranks of a segment, and keeps it if this rank copies it. */
static void add_segment(struct iris_plan *plan,
                        const struct iris_plan_segment *segment)
{
    int rank = iris_i_rank(plan->iris);
    unsigned char *batch = pairs_of(plan, segment->batch);
    unsigned char *all = pairs_of(plan, plan->num_batches);

    if (segment->from_rank == rank) {
        plan->segments[plan->num_segments++] = *segment;
        batch[segment->to_rank] |= SENDS_TO;
        all[segment->to_rank] |= SENDS_TO;
    }
    if (segment->to_rank == rank) {
        batch[segment->from_rank] |= RECEIVES_FROM;
        all[segment->from_rank] |= RECEIVES_FROM;
    }
}

/* The words of a new plan. */
static void lay_out_words(struct iris_plan *plan)
{
    size_t n = (size_t)iris_i_num_ranks(plan->iris), line = 16;
    size_t before = posted_at((int)n);

    plan->head.num_batches = (uint64_t)plan->num_batches;
    plan->head.first = (before + line - 1) / line * line;
    plan->head.batch_words =
        (IRIS_PLAN_ARRIVALS + 2 * n + line - 1) / line * line;
    plan->num_words = word_at(plan, plan->num_batches, 0);
}

static void fill_words(struct iris_plan *plan)
{
    int num_ranks = iris_i_num_ranks(plan->iris);

    memset(plan->seen, 0, plan->num_words * sizeof *plan->seen);
    memcpy(plan->seen, &plan->head, sizeof plan->head);
    for (int rank = 0; rank < num_ranks; rank++) {
        plan->seen[posted_at(rank)] = plan->epoch;
    }
    for (int batch = 0; batch < plan->num_batches; batch++) {
        uint64_t *words = &plan->seen[word_at(plan, batch, 0)];
        uint64_t *senders = &words[IRIS_PLAN_ARRIVALS + num_ranks];

        words[IRIS_PLAN_GATE] = words[IRIS_PLAN_STAMP] = plan->epoch;
        words[IRIS_PLAN_DONE] = words[IRIS_PLAN_SNAPSHOT] = plan->epoch;
        for (int rank = 0; rank < num_ranks; rank++) {
            words[IRIS_PLAN_ARRIVALS + rank] = plan->epoch;
            if (pairs_of(plan, batch)[rank] & RECEIVES_FROM) {
                senders[words[IRIS_PLAN_SENDERS]++] = (uint64_t)rank;
            }
        }
    }
}

/* Calls on the chain in an epoch. */
static size_t count_calls(const struct iris_plan *plan)
{
    size_t calls = 1 + plan->num_segments + 3 * (size_t)plan->num_batches;

    for (int i = 0; i < (plan->num_batches + 1) * iris_i_num_ranks(plan->iris);
         i++) {
        calls += (plan->pairs[i] & SENDS_TO ? 2 : 0) +
                 (plan->pairs[i] & RECEIVES_FROM ? 1 : 0);
    }
    return calls;
}

/* The part of a plan that is not on the heap. The segments are valid. */
static iris_status_t build_plan(iris_t *iris,
                                const struct iris_plan_segment *segments,
                                size_t count, struct iris_plan *plan)
{
    size_t n = (size_t)iris_i_num_ranks(iris), calls;
    iris_status_t status = IRIS_OK;

    for (size_t i = 0; i < count; i++) {
        if (segments[i].batch >= plan->num_batches) {
            plan->num_batches = segments[i].batch + 1;
        }
    }
    plan->segments = calloc(count, sizeof *plan->segments);
    plan->pairs = calloc((size_t)plan->num_batches + 1, n);
    lay_out_words(plan);
    plan->seen = calloc(plan->num_words, sizeof *plan->seen);
    if (plan->segments == NULL || plan->pairs == NULL || plan->seen == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "iris_plan_create: no memory");
    }
    for (size_t i = 0; i < count; i++) {
        add_segment(plan, &segments[i]);
    }
    calls = count_calls(plan);
    if (calls > PLAN_CALLS) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_LIMIT,
                           "iris_plan_create: an epoch is %zu calls on a "
                           "stream of this rank, more than %d; pass fewer or "
                           "larger segments",
                           calls, PLAN_CALLS);
    }
    status = iris_stream_create(iris, &plan->chain);
    return status == IRIS_OK ? iris_stream_create(iris, &plan->aside) : status;
}

/* Allocates the words and writes this rank's. Peers set them only after the
 * second agreement. */
static iris_status_t make_words(struct iris_plan *plan, struct iris_call *post)
{
    struct iris_members *world = &iris_i_world(plan->iris)->members;
    size_t bytes = plan->num_words * sizeof *plan->words;
    void *memory;
    iris_status_t status = iris_malloc(plan->iris, bytes, &memory);

    if (status != IRIS_OK) {
        return status;
    }
    plan->words = memory;
    fill_words(plan);
    post->status = iris_i_heap_copy(&iris_i_heap(plan->iris)->memory,
                                    plan->words, plan->seen, bytes);
    status = iris_i_agree(world, post);
    if (status == IRIS_OK) { /* which observers see */
        status = iris_barrier(plan->iris, NULL, NULL);
    }
    if (status != IRIS_OK) {
        status = iris_i_heap_release(iris_i_heap(plan->iris), memory, status);
    }
    return status;
}

/* Checks the program's arguments, and builds the local part. */
static iris_status_t prepare_plan(iris_t *iris,
                                  const struct iris_plan_segment *segments,
                                  size_t count, struct iris_plan *plan)
{
    iris_status_t status = IRIS_OK;

    if (plan == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "iris_plan_create: no memory");
    }
    if (count == 0 || segments == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_plan_create: there are no segments; pass all "
                           "ranks' segments on every rank");
    }
    for (size_t i = 0; i < count && status == IRIS_OK; i++) {
        status = check_segment(iris, &segments[i], i);
    }
    return status == IRIS_OK ? build_plan(iris, segments, count, plan) : status;
}

void iris_plan_options_init_sized(struct iris_plan_options *options,
                                  size_t size)
{
    (void)iris_i_sized_init(options, size, 0);
}

iris_status_t iris_plan_create(iris_t *iris,
                               const struct iris_plan_segment *segments,
                               size_t count,
                               const struct iris_plan_options *options,
                               iris_plan_t **plan_p)
{
    struct iris_call post = {.type = &create_call};
    struct iris_plan_options known;
    struct iris_plan *plan;
    iris_status_t status =
        iris_i_enter_output(iris, create_call.name, plan_p, "plan_p");

    if (status != IRIS_OK) {
        return status;
    }
    iris_plan_options_init(&known);
    post.status = iris_i_sized_take(iris_i_log(iris), create_call.name,
                                    "iris_plan_options_init", options, &known);
    known.first_epoch = known.first_epoch == 0 ? 1 : known.first_epoch;
    plan = calloc(1, sizeof *plan);
    if (plan != NULL) {
        plan->iris = iris;
        plan->num_ranks = iris_i_num_ranks(iris);
        plan->epoch = known.first_epoch - 1;
    }
    if (post.status == IRIS_OK) {
        post.status = prepare_plan(iris, segments, count, plan);
    }
    if (post.status == IRIS_OK) {
        post.fields[0] = count;
        post.fields[1] = digest_segments(iris, segments, count);
        post.fields[2] = known.first_epoch;
    }
    status = iris_i_agree(&iris_i_world(iris)->members, &post);
    status = status == IRIS_OK ? make_words(plan, &post) : status;
    if (status == IRIS_OK) {
        *plan_p = plan;
    } else if (plan != NULL) {
        free_plan(plan);
    }
    return status;
}

/* ---- The public calls on a plan ---- */

static iris_status_t enter_plan(const iris_t *iris, const char *call,
                                const iris_plan_t *plan)
{
    iris_status_t status = iris_i_enter(iris, call);

    return status == IRIS_OK && (plan == NULL || plan->iris != iris)
               ? iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                             "%s: plan %p is no plan of this context; pass one "
                             "from iris_plan_create",
                             call, (const void *)plan)
               : status;
}

/* For a plan of today's ranks. */
static iris_status_t enter_current(const iris_t *iris, const char *call,
                                   const iris_plan_t *plan)
{
    iris_status_t status = enter_plan(iris, call, plan);

    return status == IRIS_OK && plan->num_ranks != iris_i_num_ranks(iris)
               ? iris_i_fail(iris_i_log(iris), IRIS_ERR_STATE,
                             "%s: the plan is of %d ranks, before "
                             "iris_shrink(); destroy it and make another",
                             call, plan->num_ranks)
               : status;
}

static iris_status_t fail_state(const struct iris_plan *plan, const char *call)
{
    static const char *const states[] = {
        [IRIS_PLAN_COMPLETE] = "no epoch has begun; call iris_plan_begin",
        [IRIS_PLAN_ARMED] = "an epoch has not ended; call iris_plan_end",
        [IRIS_PLAN_FAILED] = "the plan has failed; destroy it",
        [IRIS_PLAN_ABORTED] = "the plan was aborted; destroy it",
    };

    return iris_i_fail(iris_i_log(plan->iris), IRIS_ERR_STATE, "%s: %s", call,
                       states[plan->state]);
}

iris_status_t iris_plan_begin(iris_t *iris, iris_plan_t *plan,
                              iris_stream_t *stream, uint32_t *epoch_p)
{
    iris_status_t status = enter_current(iris, "iris_plan_begin", plan);

    if (status == IRIS_OK) {
        status = iris_i_stream_resolve(iris_i_queue(iris), stream, &stream);
    }
    if (status != IRIS_OK) {
        return status;
    }
    if (plan->state != IRIS_PLAN_COMPLETE) {
        return fail_state(plan, "iris_plan_begin");
    }
    if (atomic_load(&stream->capturing) != NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_STATE,
                           "iris_plan_begin: the stream is captured; begin "
                           "each epoch outside of graphs");
    }
    plan->state = IRIS_PLAN_ARMED;
    plan->epoch++;
    status = arm_chain(plan, stream);
    if (status != IRIS_OK) {
        return fail_plan(plan, status);
    }
    if (epoch_p != NULL) {
        *epoch_p = plan->epoch;
    }
    return IRIS_OK;
}

iris_status_t iris_plan_end(iris_t *iris, iris_plan_t *plan)
{
    iris_status_t status = enter_current(iris, "iris_plan_end", plan);

    if (status != IRIS_OK) {
        return status;
    }
    if (!is_open(plan)) {
        return fail_state(plan, "iris_plan_end");
    }
    status = await_epoch(plan);
    if (status == IRIS_OK) {
        status = acquire_arrivals(plan);
    } else if (status == IRIS_ERR_TIMEOUT || status == IRIS_ERR_INTERRUPTED) {
        return status; /* the epoch goes on */
    }
    if (status != IRIS_OK) {
        return fail_plan(plan, status);
    }
    plan->state = IRIS_PLAN_COMPLETE;
    return IRIS_OK;
}

iris_status_t iris_plan_state(iris_t *iris, iris_plan_t *plan,
                              iris_plan_state_t *state_p)
{
    iris_status_t status = enter_current(iris, "iris_plan_state", plan);
    iris_plan_state_t state;

    if (status != IRIS_OK) {
        return status;
    }
    if (state_p == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_plan_state: state_p is NULL; pass where to "
                           "put the state");
    }
    state = plan->state;
    if (is_open(plan)) {
        status = look_at_epoch(plan, &state);
    }
    if (status == IRIS_ERR_STATE) {
        (void)fail_plan(plan, status);
        state = plan->state;
        status = IRIS_OK;
    }
    if (status == IRIS_OK) {
        *state_p = state;
    }
    return status;
}

iris_status_t iris_plan_abort(iris_t *iris, iris_plan_t *plan)
{
    iris_status_t status = enter_current(iris, "iris_plan_abort", plan);

    if (status == IRIS_OK && plan->state != IRIS_PLAN_ABORTED) {
        status = mark_words(plan);
        plan->state = IRIS_PLAN_ABORTED;
    }
    return status;
}

iris_status_t iris_plan_destroy(iris_t *iris, iris_plan_t *plan)
{
    iris_status_t status, checked = IRIS_OK;

    if (plan == NULL) {
        return IRIS_OK;
    }
    status = enter_plan(iris, "iris_plan_destroy", plan);
    if (status != IRIS_OK) {
        return status;
    }
    if (is_open(plan) && plan->num_ranks == iris_i_num_ranks(iris)) {
        checked = fail_state(plan, "iris_plan_destroy");
    } else {
        (void)iris_stream_synchronize(iris, plan->aside);
        (void)iris_stream_synchronize(iris, plan->chain);
    }
    status = iris_i_heap_release(iris_i_heap(iris), plan->words, checked);
    if (status != IRIS_ERR_STATE) {
        free_plan(plan);
    }
    return status;
}

struct iris_dev_plan *iris_plan_device(const iris_t *iris,
                                       const iris_plan_t *plan)
{
    return enter_current(iris, "iris_plan_device", plan) == IRIS_OK
               ? (struct iris_dev_plan *)(void *)plan->words
               : NULL;
}
