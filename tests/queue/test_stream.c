/* SPDX-License-Identifier: MIT
 *
 * Streams: what is enqueued runs later, in order, beside other streams.
 */
#include "config.h"

#include <iris/device.h>

#include "support/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4

/* One on each rank's heap, zeroed. */
struct board {
    uint64_t flag;
    uint64_t answer;
    uint64_t seen;
    uint64_t wrong;
    uint64_t turns[THREADS];
    uint64_t value;
    uint64_t copy;
    uint64_t filled;
};

struct step_args {
    const int64_t *context;
    struct board *board;
    uint64_t value;
};

/* Answers a flag that somebody else sets. */
IRIS_KERNEL(answer_flag, struct step_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        (void)iris_wait_until(dev, &args->board->flag, IRIS_CMP_EQ, 1);
        args->board->seen = args->value;
        iris_signal_set(dev, &args->board->answer, args->value, dev.rank);
    }
}

IRIS_KERNEL(set_flag, struct step_args)
{
    if (iris_wg_leader(wg)) {
        iris_dev_t dev = iris_dev_init(args->context);

        iris_signal_set(dev, &args->board->flag, args->value, dev.rank);
    }
}

#define OWN 512

/* set_flag, with much memory of its own. */
IRIS_KERNEL(set_flag_from_own, struct step_args)
{
    if (iris_wg_leader(wg)) {
        iris_dev_t dev = iris_dev_init(args->context);
        volatile uint64_t own[OWN];

        for (uint64_t i = 0; i < OWN; i++) {
            own[i] = i * i;
        }
        args->board->copy = own[args->value % OWN];
        iris_signal_set(dev, &args->board->flag, 1, 0);
    }
}

/* value = 3 * value + step, of what a copy brought. */
IRIS_KERNEL(compute, struct step_args)
{
    if (iris_wg_leader(wg)) {
        args->board->value = 3 * args->board->copy + args->value;
    }
}

/* A thread's kernels come in the order it enqueued them. */
IRIS_KERNEL(take_turn, struct step_args)
{
    if (iris_wg_leader(wg)) {
        uint64_t *turn = &args->board->turns[args->value >> 32];

        args->board->wrong += *turn + 1 != (args->value & 0xffffffff);
        *turn = args->value & 0xffffffff;
        args->board->seen++;
    }
}

static iris_status_t launch(iris_t *iris, const struct iris_kernel *kernel,
                            struct board *board, uint64_t value,
                            iris_stream_t *stream)
{
    struct step_args args = {iris_device_context(iris), board, value};
    iris_status_t status =
        iris_launch(iris, kernel, 1, 1, &args, sizeof args, stream);

    /* The kernel has its own copy. */
    memset(&args, 0xff, sizeof args);
    return status;
}

/* NULL if it fails. */
static struct board *make_board(iris_t *iris)
{
    void *board = NULL;

    (void)iris_calloc(iris, 1, sizeof(struct board), &board);
    return board;
}

/* What the board holds, by way of a stream. */
static int look(iris_t *iris, struct board *seen_p, const struct board *board,
                iris_stream_t *stream)
{
    CHECK_OK(iris_memcpy(iris, seen_p, board, sizeof *seen_p, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    return 0;
}

/* Another stream sees that nothing is done, and lets it go on. */
static RANK_TEST(launches_copies_and_fills_return_before_they_are_done,
                 ALL_RANKS)
{
    uint64_t value = 5 + (uint64_t)iris_rank(iris);
    struct board *board = make_board(iris), seen;
    iris_stream_t *other;

    CHECK(board != NULL);
    CHECK_OK(iris_stream_create(iris, &other));
    CHECK_OK(launch(iris, answer_flag, board, value, NULL));
    CHECK_OK(iris_memcpy(iris, &board->copy, &board->seen, 8, NULL));
    CHECK_OK(iris_memset(iris, &board->filled, 1, 8, NULL));
    CHECK_EQUAL(look(iris, &seen, board, other), 0);
    CHECK_EQUAL(seen.answer, 0);
    CHECK_EQUAL(seen.filled, 0);
    CHECK_OK(launch(iris, set_flag, board, 1, other));
    CHECK_EQUAL(look(iris, &seen, board, NULL), 0);
    CHECK_EQUAL(seen.answer, value);
    CHECK_EQUAL(seen.copy, value);
    CHECK_EQUAL(seen.filled, 0x0101010101010101);
    iris_stream_destroy(iris, other);
    CHECK_OK(iris_free(iris, board));
    return 0;
}

static int order_body(iris_t *iris, void *arg)
{
    size_t rounds = *(const size_t *)arg;
    uint64_t value = 0, seen;
    struct board *board = make_board(iris);

    CHECK(board != NULL);
    for (uint64_t round = 1; round <= rounds; round++) {
        uint64_t step = round * 10 + (uint64_t)iris_rank(iris);

        CHECK_OK(iris_memset(iris, &board->copy, 0x55, 8, NULL));
        CHECK_OK(iris_memcpy(iris, &board->copy, &board->value, 8, NULL));
        CHECK_OK(launch(iris, compute, board, step, NULL));
        value = 3 * value + step;
    }
    CHECK_OK(harness_read(iris, &seen, &board->value, sizeof seen));
    CHECK_EQUAL(seen, value);
    CHECK_OK(iris_free(iris, board));
    return 0;
}

static TEST(a_stream_keeps_kernels_copies_and_fills_in_order)
{
    size_t rounds = harness_count(200000, 2000);

    harness_run_all(order_body, &rounds);
}

/* A kernel of each stream waits for one of the other, whichever is first. */
static RANK_TEST(two_streams_run_at_once, ALL_RANKS)
{
    iris_stream_t *streams[2];

    CHECK_OK(iris_stream_create(iris, &streams[0]));
    CHECK_OK(iris_stream_create(iris, &streams[1]));
    for (uint64_t i = 0; i < 20; i++) {
        struct board *board = make_board(iris), seen;

        CHECK(board != NULL);
        CHECK_OK(launch(iris, answer_flag, board, i, streams[i % 2]));
        CHECK_OK(launch(iris, set_flag, board, 1, streams[1 - i % 2]));
        CHECK_EQUAL(look(iris, &seen, board, streams[i % 2]), 0);
        CHECK_EQUAL(seen.seen, i);
        CHECK_OK(iris_stream_synchronize(iris, streams[1 - i % 2]));
        CHECK_OK(iris_free(iris, board));
    }
    iris_stream_destroy(iris, streams[0]);
    iris_stream_destroy(iris, streams[1]);
    return 0;
}

/* Memory that lanes need must not wait for a kernel that waits for them. */
static RANK_TEST(kernels_with_much_memory_start_while_others_wait, ALL_RANKS)
{
    int rank = iris_rank(iris), last = iris_num_ranks(iris) - 1;
    struct board *board = make_board(iris), seen;
    iris_stream_t *other;

    CHECK(board != NULL);
    CHECK_OK(iris_stream_create(iris, &other));
    if (rank == 0) {
        CHECK_OK(launch(iris, answer_flag, board, 6, NULL));
    }
    CHECK_OK(iris_barrier(iris, other, NULL));
    if (rank == last) {
        CHECK_OK(launch(iris, set_flag_from_own, board, 77, other));
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_EQUAL(look(iris, &seen, board, other), 0);
    CHECK_EQUAL(seen.copy, rank == last ? 77 * 77 : 0);
    CHECK_EQUAL(seen.answer, rank == 0 ? 6 : 0);
    iris_stream_destroy(iris, other);
    CHECK_OK(iris_free(iris, board));
    return 0;
}

/* The first work of every new stream waits for the other ranks' new ones. */
static int new_streams_body(iris_t *iris, void *arg)
{
    size_t rounds = *(const size_t *)arg;

    for (size_t round = 0; round < rounds; round++) {
        iris_stream_t *stream;

        CHECK_OK(iris_stream_create(iris, &stream));
        for (int i = 0; i < 60; i++) {
            CHECK_OK(iris_device_barrier(iris, stream, NULL));
        }
        CHECK_OK(iris_stream_synchronize(iris, stream));
        iris_stream_destroy(iris, stream);
    }
    return 0;
}

static TEST(new_streams_wait_for_each_other)
{
    size_t rounds = harness_count(2000, 50);

    harness_run_all(new_streams_body, &rounds);
}

/* Of ranks that are threads. */
static TEST(as_many_ranks_as_a_gpu_takes_make_new_streams)
{
    size_t rounds = harness_count(50, 1);

    harness_run_sim(30, new_streams_body, &rounds);
}

/* One rank enqueues more than any queue holds before the next begins. */
static RANK_TEST(a_rank_may_be_far_ahead, ALL_RANKS)
{
    usleep(50000 * (unsigned)iris_rank(iris));
    for (int i = 0; i < 3000; i++) {
        CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* One host thread that enqueues. */
struct feeder {
    pthread_t thread;
    iris_t *iris;
    struct board *board;
    iris_stream_t *stream;
    size_t rounds;
    uint64_t index;
    iris_status_t status;
};

static void *feed(void *arg)
{
    struct feeder *self = arg;

    for (uint64_t turn = 1; turn <= self->rounds; turn++) {
        iris_status_t status = launch(self->iris, take_turn, self->board,
                                      self->index << 32 | turn, self->stream);

        if (status != IRIS_OK ||
            (turn % 64 == 0 &&
             iris_stream_synchronize(self->iris, self->stream) != 0)) {
            self->status = IRIS_ERR_STATE;
        }
    }
    return NULL;
}

static int threads_body(iris_t *iris, void *arg)
{
    size_t rounds = *(const size_t *)arg;
    struct feeder feeders[THREADS];
    iris_stream_t *stream;
    struct board *board = make_board(iris), seen;

    CHECK(board != NULL);
    CHECK_OK(iris_stream_create(iris, &stream));
    for (uint64_t i = 0; i < THREADS; i++) {
        feeders[i] = (struct feeder){.iris = iris,
                                     .board = board,
                                     .stream = stream,
                                     .rounds = rounds,
                                     .index = i};
        CHECK_EQUAL(pthread_create(&feeders[i].thread, NULL, feed, &feeders[i]),
                    0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(feeders[i].thread, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(feeders[i].status, IRIS_OK);
    }
    /* Finishes what is pending. */
    iris_stream_destroy(iris, stream);
    CHECK_OK(harness_read(iris, &seen, board, sizeof seen));
    CHECK_EQUAL(seen.wrong, 0);
    CHECK_EQUAL(seen.seen, THREADS * rounds);
    CHECK_OK(iris_free(iris, board));
    return 0;
}

static TEST(threads_may_enqueue_and_destroy_finishes_the_work)
{
    size_t rounds = harness_count(50000, 500);

    harness_run_all(threads_body, &rounds);
}

#define REFUSED(call)                             \
    CHECK_BAD(iris, call, IRIS_ERR_INVALID, text, \
              "pass one that iris_stream_create gave, or NULL")

/* Whatever takes a stream refuses one that is not the context's. */
static RANK_TEST(destroyed_and_foreign_streams_are_refused, ALL_RANKS)
{
    char memory[256] = {0}, text[64];
    iris_stream_t *gone, *streams[2];
    struct board *board = make_board(iris), seen;

    CHECK(board != NULL);
    CHECK_BAD(iris, iris_stream_create(iris, NULL), IRIS_ERR_INVALID,
              "stream_p is NULL", "pass where to put the result");
    CHECK_OK(iris_stream_create(iris, &gone));
    iris_stream_destroy(iris, gone);
    iris_stream_destroy(iris, NULL);
    streams[0] = gone;
    streams[1] = (iris_stream_t *)(void *)memory;
    iris_log_set_level(iris, IRIS_LOG_OFF);
    for (int i = 0; i < 2; i++) {
        iris_stream_t *bad = streams[i];

        snprintf(text, sizeof text, "stream %p is not a live", (void *)bad);
        REFUSED(launch(iris, set_flag, board, 1, bad));
        REFUSED(iris_memcpy(iris, memory, board, 8, bad));
        REFUSED(iris_memset(iris, memory, 1, 8, bad));
        REFUSED(iris_stream_synchronize(iris, bad));
        REFUSED(iris_device_barrier(iris, bad, NULL));
        REFUSED(iris_barrier(iris, bad, NULL));
        iris_stream_destroy(iris, bad); /* only logs */
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(harness_read(iris, &seen, board, sizeof seen));
    CHECK_EQUAL(seen.flag + (uint64_t)memory[0], 0);
    CHECK_OK(iris_free(iris, board));
    return 0;
}

/* What is enqueued through either is in one order. */
static RANK_TEST(the_default_stream_of_the_cpu_can_be_wrapped, 1, 2)
{
    iris_stream_t *wrapped = arg, *other;
    struct board *board, seen;

    CPU_ONLY(iris, "a GPU's runtime has a default stream of its own");
    CHECK_OK(iris_calloc(iris, 1, sizeof *board, (void **)&board));
    CHECK_OK(iris_stream_create(iris, &other));
    CHECK_STATUS(iris_stream_wrap(iris, &seen, &wrapped), IRIS_ERR_UNSUPPORTED);
    CHECK(wrapped == arg);
    for (int i = 0; i < 2; i++) { /* it can be had again */
        CHECK_OK(iris_stream_wrap(iris, NULL, &wrapped));
        CHECK_OK(iris_memset(iris, board, 0, sizeof *board, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(
            iris_wait_on_stream(iris, &board->flag, IRIS_CMP_EQ, 1, wrapped));
        CHECK_OK(iris_memset(iris, &board->value, 5, 8, wrapped));
        CHECK_OK(iris_memcpy(iris, &board->copy, &board->value, 8, NULL));
        CHECK_OK(iris_memset(iris, &board->filled, 6, 8, wrapped));
        CHECK_OK(iris_signal_on_stream(iris, &board->flag, 1, iris_rank(iris),
                                       other));
        iris_stream_destroy(iris, wrapped);
        /* It has waited: reading through the library would wait as well. */
        memcpy(&seen, board, sizeof seen);
        CHECK_OK(iris_stream_synchronize(iris, other));
        CHECK_EQUAL(seen.copy, 0x0505050505050505);
        CHECK_EQUAL(seen.filled, 0x0606060606060606);
    }
    iris_stream_destroy(iris, other);
    return iris_free(iris, board);
}

TEST_GROUP(rank, one_gpu, sample, valgrind);
