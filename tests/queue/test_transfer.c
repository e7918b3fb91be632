/* SPDX-License-Identifier: MIT
 *
 * Puts, gets, signals and waits that the host enqueues on a stream: where they
 * go, in which order, and with kernels between them; captured, where a device
 * can.
 */
#include "config.h"

#include <iris/device.h>

#include "support/harness.h"

#include <stdlib.h>
#include <string.h>

#define WORDS ((size_t)1 << 18) /* of a large transfer: 2 MiB */
#define LANES 256u

/* One on each rank's heap. */
struct mail {
    uint64_t wrong;
    uint64_t arrived; /* signal: rounds that are here */
    uint64_t looked;  /* signal: rounds the right neighbour has looked at */
    uint64_t rounds;  /* that the graph has played */
    uint64_t small;   /* stored by a kernel right after a large put */
    uint64_t out[WORDS];
    uint64_t in[WORDS];
};

/* Word i of what a rank sends in a round. */
IRIS_DEVICE uint64_t word_of(int rank, uint64_t round, size_t i)
{
    return (((uint64_t)rank + 1) << 56) + (round << 32) + i;
}

struct mail_args {
    const int64_t *context;
    struct mail *mail;
    uint64_t round;
};

IRIS_KERNEL(write_out, struct mail_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, i, WORDS) {
        args->mail->out[i] = word_of(dev.rank, args->round, i);
    }
}

/* Counts what is not the left neighbour's of the round, the last word first. */
IRIS_KERNEL(look_in, struct mail_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int left = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;
    uint64_t wrong = 0;

    IRIS_LANES (wg, i, WORDS) {
        size_t j = WORDS - 1 - i;

        wrong += args->mail->in[j] != word_of(left, args->round, j);
    }
    if (wrong != 0) {
        (void)iris_atomic_add_u64(dev, &args->mail->wrong, wrong, dev.rank,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    }
}

/* Counts what is not that rank's first words of the round, for every rank. */
IRIS_KERNEL(look_in_blocks, struct mail_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    size_t words = WORDS / (size_t)dev.num_ranks;
    uint64_t wrong = 0;

    IRIS_LANES (wg, i, words * (size_t)dev.num_ranks) {
        wrong += args->mail->in[i] !=
                 word_of((int)(i / words), args->round, i % words);
    }
    if (wrong != 0) {
        (void)iris_atomic_add_u64(dev, &args->mail->wrong, wrong, dev.rank,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    }
}

/* Rank 0's first word of the round has come before its signal. */
IRIS_KERNEL(look_at_answer, struct mail_args)
{
    if (iris_wg_leader(wg)) {
        args->mail->wrong += args->mail->rounds != word_of(0, args->round, 0);
    }
}

/* A small store that follows what the stream did before. */
IRIS_KERNEL(store_small, struct mail_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, &args->mail->small, args->round,
                        (dev.rank + 1) % dev.num_ranks);
    }
}

IRIS_KERNEL(wait_small, struct mail_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        (void)iris_wait_until_u64(dev, &args->mail->small, IRIS_CMP_GE,
                                  args->round);
    }
    iris_wg_barrier(wg);
}

static iris_status_t run(iris_t *iris, const struct iris_kernel *kernel,
                         unsigned grid, struct mail_args args)
{
    return iris_launch(iris, kernel, grid, LANES, &args, sizeof args, NULL);
}

static int make_mail(iris_t *iris, struct mail_args *args_p)
{
    void *mail;

    CHECK_OK(iris_calloc(iris, 1, sizeof(struct mail), &mail));
    args_p->context = iris_device_context(iris);
    args_p->mail = (struct mail *)mail;
    args_p->round = 0;
    return 0;
}

static int check_mail(iris_t *iris, struct mail_args args)
{
    uint64_t wrong;

    CHECK_OK(harness_read(iris, &wrong, &args.mail->wrong, sizeof wrong));
    CHECK_EQUAL(wrong, 0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_free(iris, args.mail));
    return 0;
}

static int right_of(iris_t *iris)
{
    return (iris_rank(iris) + 1) % iris_num_ranks(iris);
}

static int left_of(iris_t *iris)
{
    int num_ranks = iris_num_ranks(iris);

    return (iris_rank(iris) + num_ranks - 1) % num_ranks;
}

/* A large put, then a small sign of it, over and over: the sign never comes
 * first. It is a signal of the stream, or a kernel's store. */
static int overtake_body(iris_t *iris, void *arg)
{
    size_t rounds = harness_count(1000, 20);
    int by_kernel = *(const int *)arg, right = right_of(iris);
    struct mail_args args = {NULL, NULL, 0};
    struct mail *mail;

    CHECK_EQUAL(make_mail(iris, &args), 0);
    mail = args.mail;
    for (uint64_t round = 1; round <= rounds; round++) {
        args.round = round;
        CHECK_OK(run(iris, write_out, 4, args));
        CHECK_OK(iris_put_on_stream(iris, mail->in, mail->out, sizeof mail->in,
                                    right, NULL));
        if (by_kernel) {
            CHECK_OK(run(iris, store_small, 1, args));
            CHECK_OK(run(iris, wait_small, 1, args));
        } else {
            CHECK_OK(iris_signal_on_stream(iris, &mail->arrived, round, right,
                                           NULL));
            CHECK_OK(iris_wait_on_stream(iris, &mail->arrived, IRIS_CMP_GE,
                                         round, NULL));
        }
        CHECK_OK(run(iris, look_in, 4, args));
        CHECK_OK(iris_signal_on_stream(iris, &mail->looked, round,
                                       left_of(iris), NULL));
        CHECK_OK(
            iris_wait_on_stream(iris, &mail->looked, IRIS_CMP_GE, round, NULL));
        if (round % 16 == 0) {
            CHECK_OK(iris_stream_synchronize(iris, NULL));
        }
    }
    return check_mail(iris, args);
}

static TEST(a_signal_never_overtakes_a_large_put)
{
    harness_run_all(overtake_body, &(int){0});
}

static TEST(a_kernels_store_never_overtakes_a_large_put)
{
    harness_run_all(overtake_body, &(int){1});
}

/* Rank 0's `in` has a block of every rank's, which come in any order behind one
 * signal; its own signal, set, lets them send the next. */
static RANK_TEST(puts_of_all_ranks_share_a_signal_that_they_add_to, ALL_RANKS)
{
    size_t rounds = harness_count(1000, 50);
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    size_t words = WORDS / (size_t)num_ranks, bytes = words * sizeof(uint64_t);
    struct mail_args args = {NULL, NULL, 0};
    struct mail *mail;

    CHECK_EQUAL(make_mail(iris, &args), 0);
    mail = args.mail;
    for (uint64_t round = 1; round <= rounds; round++) {
        args.round = round;
        CHECK_OK(run(iris, write_out, 2, args));
        CHECK_OK(iris_put_signal_on_stream(
            iris, mail->in + (size_t)rank * words, mail->out, bytes,
            &mail->arrived, 1, IRIS_SIGNAL_ADD, 0, NULL));
        if (rank == 0) {
            CHECK_OK(iris_wait_on_stream(iris, &mail->arrived, IRIS_CMP_EQ,
                                         round * (uint64_t)num_ranks, NULL));
            CHECK_OK(run(iris, look_in_blocks, 2, args));
        }
        for (int to = 0; rank == 0 && to < num_ranks; to++) {
            CHECK_OK(iris_put_signal_on_stream(
                iris, &mail->rounds, &mail->out[0], sizeof mail->rounds,
                &mail->looked, round, IRIS_SIGNAL_SET, to, NULL));
        }
        CHECK_OK(
            iris_wait_on_stream(iris, &mail->looked, IRIS_CMP_EQ, round, NULL));
        CHECK_OK(run(iris, look_at_answer, 1, args));
    }
    return check_mail(iris, args);
}

/* Odd sizes and places, to and from host memory and the heap. */
static RANK_TEST(every_byte_comes_through, ALL_RANKS)
{
    static const size_t sizes[] = {1, 3, 8, 255, 4096, 65537, 300001};
    unsigned char *out = malloc(300001), *in = malloc(300002);
    int right = right_of(iris), failed = 0;
    struct mail_args args = {NULL, NULL, 0};
    char *theirs, *got;

    CHECK(out != NULL && in != NULL);
    CHECK_EQUAL(make_mail(iris, &args), 0);
    theirs = (char *)args.mail->in + 5;
    got = (char *)args.mail->out + 3;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && !failed; s++) {
        for (size_t i = 0; i < sizes[s]; i++) {
            out[i] = (unsigned char)(i * 7 + s + (size_t)iris_rank(iris) * 31);
        }
        memset(in, 0xee, sizes[s] + 1);
        CHECK_OK(iris_put_on_stream(iris, theirs, out, sizes[s], right, NULL));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_get_on_stream(iris, got, theirs, sizes[s], right, NULL));
        CHECK_OK(iris_memcpy(iris, in, got, sizes[s], NULL));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        failed = memcmp(in, out, sizes[s]) != 0 || in[sizes[s]] != 0xee;
    }
    free(in);
    free(out);
    CHECK_EQUAL(failed, 0);
    return check_mail(iris, args);
}

/* A wait holds the stream, for every comparison, until the signal is set. */
#define TURNS 30
#define SOURCE 100003

/* Each fill overwrites the source of the put before it, which may not have been
 * made yet. */
static RANK_TEST(later_work_of_a_stream_may_overwrite_a_source, ALL_RANKS)
{
    int rank = iris_rank(iris), right = right_of(iris);
    int left = (rank + iris_num_ranks(iris) - 1) % iris_num_ranks(iris);
    unsigned char *got = malloc(SOURCE);
    char *source, *target;

    CHECK(got != NULL);
    CHECK_OK(iris_malloc(iris, SOURCE, (void **)&source));
    CHECK_OK(iris_malloc(iris, TURNS * SOURCE, (void **)&target));
    for (int turn = 0; turn < TURNS; turn++) {
        CHECK_OK(iris_memset(iris, source, 1 + turn + 40 * rank, SOURCE, NULL));
        CHECK_OK(iris_put_on_stream(iris, target + turn * SOURCE, source,
                                    SOURCE, right, NULL));
    }
    CHECK_OK(iris_memset(iris, source, 0, SOURCE, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int turn = 0; turn < TURNS; turn++) {
        unsigned char want = (unsigned char)(1 + turn + 40 * left);

        CHECK_OK(harness_read(iris, got, target + turn * SOURCE, SOURCE));
        for (size_t i = 0; i < SOURCE; i++) {
            CHECK_EQUAL(got[i], want);
        }
    }
    free(got);
    return iris_barrier(iris, NULL, NULL);
}

static RANK_TEST(a_wait_holds_its_stream, 1, 2)
{
    static const struct {
        iris_cmp_t cmp;
        uint64_t value, before, after;
    } cases[] = {
        {IRIS_CMP_EQ, 7, 6, 7}, {IRIS_CMP_NE, 7, 7, 8}, {IRIS_CMP_LT, 7, 7, 6},
        {IRIS_CMP_LE, 7, 8, 7}, {IRIS_CMP_GT, 7, 7, 8}, {IRIS_CMP_GE, 7, 6, 9},
    };
    struct mail_args args = {NULL, NULL, 0};
    iris_stream_t *other;
    uint64_t done;

    CHECK_EQUAL(make_mail(iris, &args), 0);
    CHECK_OK(iris_stream_create(iris, &other));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t *signal = &args.mail->arrived, *mark = &args.mail->rounds;
        int self = iris_rank(iris);

        CHECK_OK(iris_memset(iris, mark, 0, sizeof *mark, NULL));
        CHECK_OK(harness_write(iris, signal, &cases[i].before, sizeof *signal));
        CHECK_OK(iris_wait_on_stream(iris, signal, cases[i].cmp, cases[i].value,
                                     NULL));
        CHECK_OK(iris_memset(iris, mark, 1, 1, NULL));
        CHECK_OK(iris_memcpy(iris, &done, mark, sizeof done, other));
        CHECK_OK(iris_stream_synchronize(iris, other));
        CHECK_EQUAL(done, 0);
        CHECK_OK(
            iris_signal_on_stream(iris, signal, cases[i].after, self, other));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(harness_read(iris, &done, mark, sizeof done));
        CHECK_EQUAL(done, 1);
    }
    iris_stream_destroy(iris, other);
    return check_mail(iris, args);
}

/* A round of the game below: a kernel, a put, a device barrier, a look. */
static int enqueue_round(iris_t *iris, struct mail_args args)
{
    struct mail *mail = args.mail;

    CHECK_OK(run(iris, write_out, 2, args));
    CHECK_OK(iris_put_on_stream(iris, mail->in, mail->out, sizeof mail->in,
                                right_of(iris), NULL));
    CHECK_OK(
        iris_signal_on_stream(iris, &mail->small, 9, right_of(iris), NULL));
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    CHECK_OK(run(iris, look_in, 2, args));
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    CHECK_OK(iris_memset(iris, mail->in, 0, sizeof mail->in, NULL));
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    return 0;
}

static RANK_TEST(a_graph_is_replayed_many_times, ALL_RANKS)
{
    iris_graph_t *graph;
    struct mail_args args = {NULL, NULL, 0};

    CHECK_EQUAL(make_mail(iris, &args), 0);
    if (!harness_on_gpu(iris)) {
        CHECK_STATUS(iris_capture_begin(iris, NULL), IRIS_ERR_UNSUPPORTED);
        CHECK_MESSAGE("has no graphs");
        return check_mail(iris, args);
    }
    args.round = 3;
    CHECK_OK(iris_capture_begin(iris, NULL));
    CHECK_STATUS(iris_capture_begin(iris, NULL), IRIS_ERR_STATE);
    CHECK_EQUAL(enqueue_round(iris, args), 0);
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_STATE);
    CHECK_MESSAGE("captured");
    CHECK_OK(iris_capture_end(iris, NULL, &graph));
    CHECK_STATUS(iris_capture_end(iris, NULL, &graph), IRIS_ERR_STATE);
    for (size_t i = harness_count(2000, 100); i != 0; i--) {
        CHECK_OK(iris_graph_launch(iris, graph, NULL));
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_graph_destroy(iris, graph);
    return check_mail(iris, args);
}

/* Nothing of a put with a wrong signal is enqueued. */
static int check_put_signal_errors(iris_t *iris, struct mail_args args)
{
    uint64_t *signal = &args.mail->arrived, *word = &args.mail->in[0];
    uint64_t host = 3, seen;

    CHECK_BAD(iris,
              iris_put_signal_on_stream(iris, word, &host, 8, &host, 1,
                                        IRIS_SIGNAL_SET, 0, NULL),
              IRIS_ERR_INVALID, "iris_put_signal_on_stream: 8 bytes at signal",
              "pass memory from iris_malloc");
    CHECK_BAD(iris,
              iris_put_signal_on_stream(iris, word, &host, 8,
                                        (uint64_t *)((char *)signal + 4), 1,
                                        IRIS_SIGNAL_ADD, 0, NULL),
              IRIS_ERR_INVALID, "is not a multiple of 8",
              "pass an aligned uint64_t");
    CHECK_BAD(iris,
              iris_put_signal_on_stream(iris, word, &host, 8, signal, 1,
                                        (iris_signal_op_t)2, 0, NULL),
              IRIS_ERR_INVALID, "signal_op 2", "pass IRIS_SIGNAL_SET or");
    CHECK_BAD(iris,
              iris_put_signal_on_stream(iris, word, &host, 8, signal, 1,
                                        IRIS_SIGNAL_ADD, 99, NULL),
              IRIS_ERR_INVALID, "rank 99", "pass one of them");
    CHECK_BAD(iris,
              iris_put_signal_on_stream(iris, &host, &host, 8, signal, 1,
                                        IRIS_SIGNAL_ADD, 0, NULL),
              IRIS_ERR_INVALID, "8 bytes at dst", "from iris_malloc");
    CHECK_OK(iris_memcpy_sync(iris, &seen, word, sizeof seen));
    CHECK_EQUAL(seen, 0);
    CHECK_OK(iris_put_signal_on_stream(iris, NULL, NULL, 0, signal, 5,
                                       IRIS_SIGNAL_ADD, iris_rank(iris), NULL));
    CHECK_OK(iris_memcpy_sync(iris, &seen, signal, sizeof seen));
    CHECK_EQUAL(seen, 5);
    return check_mail(iris, args);
}

static RANK_TEST(bad_arguments_are_named, 2)
{
    struct mail_args args = {NULL, NULL, 0};
    struct iris_heap_stats stats;
    uint64_t *signal, host = 0;

    CHECK_EQUAL(make_mail(iris, &args), 0);
    signal = &args.mail->arrived;
    CHECK_BAD(iris, iris_put_on_stream(iris, &host, signal, 8, 0, NULL),
              IRIS_ERR_INVALID, "iris_put_on_stream: 8 bytes at dst",
              "pass memory from iris_malloc");
    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_BAD(
        iris,
        iris_put_on_stream(iris, signal, &host, stats.heap_bytes, 0, NULL),
        IRIS_ERR_INVALID, "go past the end", "pass fewer bytes");
    CHECK_BAD(iris, iris_get_on_stream(iris, &host, &host, 8, 0, NULL),
              IRIS_ERR_INVALID, "at src", "pass memory from iris_malloc");
    CHECK_BAD(iris, iris_put_on_stream(iris, signal, &host, 8, 99, NULL),
              IRIS_ERR_INVALID, "rank 99", "pass one of them");
    CHECK_BAD(iris, iris_signal_on_stream(iris, &host, 1, 0, NULL),
              IRIS_ERR_INVALID, "at signal", "pass memory from iris_malloc");
    CHECK_BAD(iris,
              iris_signal_on_stream(iris, (uint64_t *)((char *)signal + 4), 1,
                                    0, NULL),
              IRIS_ERR_INVALID, "is not a multiple of 8",
              "pass an aligned uint64_t");
    CHECK_BAD(iris, iris_wait_on_stream(iris, signal, (iris_cmp_t)17, 1, NULL),
              IRIS_ERR_INVALID, "cmp 17", "pass IRIS_CMP_EQ to IRIS_CMP_GE");
    CHECK_OK(iris_put_on_stream(iris, signal, NULL, 0, 0, NULL));
    CHECK_OK(iris_put_on_stream(iris, NULL, NULL, 0, 0, NULL));
    CHECK_OK(iris_get_on_stream(iris, NULL, NULL, 0, 0, NULL));
    CHECK_OK(iris_get_on_stream(iris, &host, NULL, 0, 0, NULL));
    CHECK_OK(iris_put_on_stream(iris, &host, signal, 0, 0, NULL));
    CHECK_BAD(iris, iris_put_on_stream(iris, NULL, NULL, 0, -1, NULL),
              IRIS_ERR_INVALID, "rank -1", "pass one of them");
    return check_put_signal_errors(iris, args);
}

TEST_GROUP(rank);
