/* SPDX-License-Identifier: MIT
 *
 * Kernels, streams and barriers across pretended nodes (IRIS_NODES), where no
 * heap of another node is mapped: the values that one node has.
 */
#include "config.h"

#define IRIS_FAR 1 /* in GPU code, too */
#include "support/harness.h"

#include <iris/device.h>
#include <iris/iris.h>

#if IRIS_ON_CPU
#include "backend/backend.h"
#include "context/context.h"
#endif

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 4
#define WORDS 16 /* of each rank in every heap */
#define LARGE ((size_t)70001)
#define HALF (LARGE / 2)

struct far_args {
    const int64_t *context;
    uint64_t *words; /* symmetric, WORDS of each rank */
    unsigned char *bytes;
    uint32_t rounds;
    int32_t num_ranks;
    int32_t puts;
};

/* ---- Every operation, to and from every rank ---- */

/* Word 0 is what the rank has for others to read. The others are written by
 * whoever has that part of the heap. */
IRIS_KERNEL(touch_all, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *mine = args->words + dev.rank * WORDS;

    for (int rank = 0; rank < args->num_ranks; rank++) {
        const uint64_t *theirs = args->words + rank * WORDS;
        uint64_t value = 100 * (uint64_t)dev.rank + 7, seen = 0;
        float old;

        iris_store(dev, &mine[1], value + 1, rank);
        iris_put(dev, &value, &mine[2], rank);
        iris_store_volatile(dev, &mine[3], value + 3, rank);
        iris_store_hint(dev, &mine[4], value + 4, rank, IRIS_CACHE_STREAMING);
        iris_store(dev, (unsigned char *)&mine[5], (unsigned char)5, rank);
        iris_atomic_store(dev, &mine[6], value + 6, rank, IRIS_RELEASE,
                          IRIS_SCOPE_SYSTEM);
        iris_signal_set(dev, &mine[7], value + 7, rank);
        iris_signal_add(dev, &mine[8], value + 8, rank);
        old = iris_atomic_add_f32(dev, (float *)&mine[9], 1.5f, rank,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
        iris_put_signal(dev, &value, &mine[10], &mine[11], value + 11, rank);
        /* Reads of the same lane see its writes. */
        mine[12] += iris_load(dev, &mine[1], rank) == value + 1;
        mine[12] += iris_atomic_cas(dev, &mine[13], (uint64_t)0, value + 13,
                                    rank, IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM) == 0;
        mine[12] +=
            iris_atomic_cas(dev, &mine[13], (uint64_t)0, value, rank,
                            IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM) == value + 13;
        mine[12] +=
            old == 0 && iris_load_f32(dev, (float *)&mine[9], rank) == 1.5f;
        iris_get(dev, theirs, &seen, rank);
        mine[12] += seen == 1000 + (uint64_t)rank;
        mine[12] += iris_load_volatile(dev, theirs, rank) == seen;
        mine[12] +=
            iris_load_hint(dev, theirs, rank, IRIS_CACHE_GLOBAL) == seen;
        mine[12] += iris_atomic_load(dev, theirs, rank, IRIS_ACQUIRE,
                                     IRIS_SCOPE_SYSTEM) == seen;
        iris_copy(dev, &mine[1], &mine[14], rank, args->num_ranks - 1 - rank);
    }
}

static int check_part(iris_t *iris, const uint64_t *words, int from)
{
    uint64_t value = 100 * (uint64_t)from + 7;
    const uint64_t *part = words + from * WORDS;
    float sum;

    for (int i = 1; i <= 13; i++) {
        uint64_t expected = value + (i == 2 || i == 10 ? 0 : (uint64_t)i);

        if (i == 5) {
            CHECK_EQUAL(part[i], 5);
        } else if (i == 9) {
            memcpy(&sum, &part[i], sizeof sum);
            CHECK(sum == 1.5f);
        } else if (i != 12) {
            CHECK_EQUAL(part[i], expected);
        }
    }
    CHECK_EQUAL(part[14], value + 1);
    if (from == iris_rank(iris)) {
        CHECK_EQUAL(part[12], 8 * iris_num_ranks(iris));
    }
    return 0;
}

static int touch_body(iris_t *iris, void *arg)
{
    struct far_args args = {.context = iris_device_context(iris),
                            .num_ranks = iris_num_ranks(iris)};
    uint64_t words[8 * WORDS] = {0};

    words[iris_rank(iris) * WORDS] = 1000 + (uint64_t)iris_rank(iris);
    CHECK_OK(iris_calloc(iris, sizeof words, 1, (void **)&args.words));
    CHECK_OK(iris_memcpy_sync(iris, args.words, words, sizeof words));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_launch(iris, touch_all, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_memcpy_sync(iris, words, args.words, sizeof words));
    for (int from = 0; from < args.num_ranks; from++) {
        CHECK_EQUAL(check_part(iris, words, from), 0);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return iris_free(iris, args.words);
}

/* ---- Bulk copies ---- */

/* Each rank's bytes go to the next rank, those back from there to the second,
 * and what is on the next to the one before. */
IRIS_KERNEL(copy_all, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int next = (dev.rank + 1) % args->num_ranks;
    int last = (dev.rank + args->num_ranks - 1) % args->num_ranks;
    unsigned char *bytes = args->bytes;

    for (uint32_t i = 0; i < args->rounds; i++) { /* more than sockets hold */
        iris_wg_put(wg, dev, bytes, bytes + LARGE, LARGE - 1, next);
    }
    iris_wg_get(wg, dev, bytes, bytes + 2 * LARGE, LARGE - 1, next);
    iris_wg_copy(wg, dev, bytes, bytes + 3 * LARGE, LARGE - 1, next, last);
}

static int copies_body(iris_t *iris, void *arg)
{
    struct far_args args = {.context = iris_device_context(iris),
                            .num_ranks = iris_num_ranks(iris)};
    int rank = iris_rank(iris), n = args.num_ranks;
    int expected[4] = {rank, (rank + n - 1) % n, (rank + 1) % n,
                       (rank + 2) % n};
    void *bytes;

    CHECK_OK(iris_calloc(iris, 4 * LARGE, 1, &bytes));
    args.bytes = bytes;
    args.rounds = 30;
    CHECK_OK(iris_memset(iris, bytes, 1 + rank, HALF, NULL));
    CHECK_OK(iris_memset(iris, (char *)bytes + HALF, 101 + rank,
                         LARGE - 1 - HALF, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_launch(iris, copy_all, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int i = 0; i < 4; i++) {
        CHECK(harness_holds(iris, args.bytes + (size_t)i * LARGE, HALF,
                            1 + expected[i]));
        CHECK(harness_holds(iris, args.bytes + (size_t)i * LARGE + HALF,
                            LARGE - 1 - HALF, 101 + expected[i]));
        CHECK(harness_holds(iris, args.bytes + (size_t)(i + 1) * LARGE - 1, 1,
                            0));
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return iris_free(iris, bytes);
}

/* ---- Sums ---- */

IRIS_KERNEL(add_up, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *words = args->words;

    for (uint32_t i = 0; i < args->rounds; i++) {
        for (int rank = 0; rank < args->num_ranks; rank++) {
            (void)iris_atomic_add(dev, &words[0], (uint64_t)1, rank,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
            (void)iris_atomic_add(dev, (uint8_t *)&words[1], (uint8_t)1, rank,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
            (void)iris_atomic_add(dev, (double *)&words[2], 0.5, rank,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
            (void)iris_atomic_max(dev, &words[3],
                                  (uint64_t)(i * 8 + (uint32_t)dev.rank), rank,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
        }
    }
}

static int sums_body(iris_t *iris, void *arg)
{
    struct far_args args = {.context = iris_device_context(iris),
                            .num_ranks = iris_num_ranks(iris)};
    uint64_t words[WORDS], total;
    double sum;

    CHECK_OK(iris_calloc(iris, sizeof words, 1, (void **)&args.words));
    args.rounds = (uint32_t)harness_count(10000, 50);
    total = 4 * (uint64_t)args.rounds * (uint64_t)args.num_ranks;
    CHECK_OK(iris_launch(iris, add_up, 4, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_memcpy_sync(iris, words, args.words, sizeof words));
    memcpy(&sum, &words[2], sizeof sum);
    CHECK_EQUAL(words[0], total);
    CHECK_EQUAL(words[1], total & 255);
    CHECK(sum == 0.5 * (double)total);
    CHECK_EQUAL(words[3], (args.rounds - 1) * 8 + (uint32_t)args.num_ranks - 1);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return iris_free(iris, args.words);
}

/* ---- Streams, and what does not reach ---- */

static int streams_body(iris_t *iris, void *arg)
{
    int rank = iris_rank(iris), n = iris_num_ranks(iris);
    int next = (rank + n / 2) % n, last = (rank + n - n / 2) % n;
    unsigned char *bytes, *source; /* kernels read it: not the host's */
    uint64_t *words;
    void *remote;

    CHECK_OK(iris_calloc(iris, 3 * LARGE, 1, (void **)&bytes));
    CHECK_OK(iris_calloc(iris, WORDS, sizeof *words, (void **)&words));
    source = bytes + 2 * LARGE;
    CHECK_OK(iris_memset(iris, source, 1 + rank, LARGE, NULL));
    CHECK_OK(iris_put_on_stream(iris, bytes, source, LARGE, next, NULL));
    CHECK_OK(iris_signal_on_stream(iris, &words[0], 1, next, NULL));
    CHECK_OK(iris_wait_on_stream(iris, &words[0], IRIS_CMP_EQ, 1, NULL));
    CHECK(harness_holds(iris, bytes, LARGE, 1 + last));
    CHECK_OK(iris_get_on_stream(iris, bytes + LARGE, bytes, LARGE, next, NULL));
    CHECK(harness_holds(iris, bytes + LARGE, LARGE, 1 + rank));
    CHECK_OK(iris_put_signal_on_stream(iris, &words[1], source, 8, &words[2], 5,
                                       IRIS_SIGNAL_ADD, next, NULL));
    CHECK_OK(iris_wait_on_stream(iris, &words[2], IRIS_CMP_GE, 5, NULL));
    CHECK(harness_holds(iris, &words[1], 8, 1 + last));
    CHECK_EQUAL(iris_as_remote(iris, words, next, &remote) == IRIS_OK,
                iris_is_reachable(iris, next));
    CHECK_BAD(iris, iris_put_on_stream(iris, bytes, source, 8, n, NULL),
              IRIS_ERR_INVALID, "out of range", "pass one of them");
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_free(iris, words));
    return iris_free(iris, bytes);
}

IRIS_KERNEL(touch_wrongly, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int far = (dev.rank + args->num_ranks / 2) % args->num_ranks;

    if (args->rounds == 0) {
        iris_store(
            dev, args->words,
            (uint64_t)(iris_dev_as_remote(dev, args->words, far) == NULL),
            dev.rank);
    } else if (args->puts) {
        iris_store(dev, args->bytes + args->rounds, (unsigned char)1, far);
    } else {
        (void)iris_load(dev, args->bytes + args->rounds, far);
    }
}

/* Calls that need an address, or shared memory, say what to use instead. */
static int check_addresses(iris_t *iris, uint64_t *words)
{
    int rank = iris_rank(iris), n = iris_num_ranks(iris);
    int far = (rank + n / 2) % n;
    iris_tensor_t tensor, there;
    void *remote;

    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(4), NULL, &tensor));
#define FAR(name, call)                                         \
    CHECK_BAD(iris, call, IRIS_ERR_UNREACHABLE, name ": rank ", \
              "use iris_put_on_stream() and the other")
    FAR("iris_as_remote", iris_as_remote(iris, words, far, &remote));
    FAR("iris_translate", iris_translate(iris, words, rank, far, &remote));
    FAR("iris_tensor_as_remote",
        iris_tensor_as_remote(iris, &tensor, far, &there));
#undef FAR
    return iris_tensor_free(iris, &tensor);
}

static int misuse_body(iris_t *iris, void *arg)
{
    struct far_args args = {.context = iris_device_context(iris),
                            .num_ranks = iris_num_ranks(iris)};
    uint64_t word = 0;

    CHECK_OK(iris_calloc(iris, 1, sizeof word, (void **)&args.words));
    CHECK_OK(iris_launch(iris, touch_wrongly, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_memcpy_sync(iris, &word, args.words, sizeof word));
    CHECK_EQUAL(word, 1);
    CHECK_EQUAL(check_addresses(iris, args.words), 0);
    /* Memory that nobody has allocated: its owner refuses. A GPU's heap has all
     * its memory. */
    args.bytes = (unsigned char *)args.words;
    args.rounds = harness_on_gpu(iris) ? 64 << 20 : 12 << 20;
    for (args.puts = 0; args.puts < 2; args.puts++) {
        CHECK_OK(
            iris_launch(iris, touch_wrongly, 1, 1, &args, sizeof args, NULL));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_INVALID);
        CHECK_MESSAGE("refused");
        CHECK_OK(iris_clear_error(iris));
    }
    args.rounds = 0;
    CHECK_OK(iris_launch(iris, touch_wrongly, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return iris_free(iris, args.words);
}

/* ---- A GPU that is full ---- */

/* Waits until the host ends it. */
IRIS_KERNEL(fill_up, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        if (wg.id == 0) {
            iris_signal_set(dev, &args->words[1], 1, 0);
        }
        (void)iris_wait_until(dev, &args->words[0], IRIS_CMP_GE, (uint64_t)1);
    }
    iris_wg_barrier(wg);
}

/* Reads and updates words of rank 1, whose GPU is full. */
IRIS_KERNEL(update_full, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        (void)iris_wait_until(dev, &args->words[1], IRIS_CMP_GE, (uint64_t)1);
        (void)iris_load(dev, &args->words[3], 1);
        (void)iris_atomic_add(dev, &args->words[2], (uint64_t)1, 1,
                              IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    }
}

/* Rank 1 learns of it, though no call of its own waits. */
static int full_body(iris_t *iris, void *arg)
{
    struct far_args args = {.context = iris_device_context(iris)};
    int is_full = iris_rank(iris) == 1;
    iris_status_t status;

    CHECK_OK(iris_calloc(iris, WORDS, 8, (void **)&args.words));
    CHECK_OK(iris_launch(iris, is_full ? fill_up : update_full,
                         is_full ? 4 * (unsigned)iris_num_cus(iris) : 1,
                         is_full ? IRIS_LAUNCH_BLOCK_MAX : 1, &args,
                         sizeof args, NULL));
    for (int ms = 0; ms < 30000 && is_full &&
                     iris_i_fault_check(iris_i_backend(iris)) == IRIS_OK;
         ms++) {
        poll(NULL, 0, 1);
    }
    status = iris_stream_synchronize(iris, NULL);
    if (is_full) {
        CHECK_EQUAL(status, IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE("leave a compute unit free for the atomics");
    } else {
        CHECK(status == IRIS_ERR_INVALID || status == IRIS_ERR_TIMEOUT);
    }
    CHECK_OK(iris_clear_error(iris));
    return iris_barrier(iris, NULL, NULL);
}

/* ---- The tests ---- */

static void run(int num_ranks, const char *nodes, iris_rank_fn body)
{
    setenv("IRIS_NODES", nodes, 1);
    harness_run(num_ranks, body, NULL);
    unsetenv("IRIS_NODES");
}

/* One rank a node, several, and an uneven number. */
static void run_on_nodes(iris_rank_fn body)
{
    run(2, "2", body);
    run(RANKS, "2", body);
    run(3, "2", body);
    run(RANKS, "4", body);
}

static TEST(every_operation_reaches_every_rank)
{
    run_on_nodes(touch_body);
}

static TEST(copies_of_any_size_arrive_whole)
{
    run_on_nodes(copies_body);
}

static TEST(atomics_of_many_ranks_add_up)
{
    run_on_nodes(sums_body);
}

static TEST(streams_copy_and_signal_across_nodes)
{
    run_on_nodes(streams_body);
}

static TEST(what_does_not_reach_is_told)
{
    run(RANKS, "2", misuse_body);
}

static TEST(a_full_gpu_that_cannot_do_an_atomic_is_told_in_time)
{
    if (!harness_has_gpu()) {
        skip();
    }
    setenv("IRIS_TIMEOUT_MS", "2000", 1);
    setenv("IRIS_DEVICE_TIMEOUT_MS", "0", 1);
    /* On the fake GPU, of which each stream has compute units of its own. */
    setenv("FAKEHIP_QUIRKS", "copy-behind-kernel", 1);
    run(2, "2", full_body);
    unsetenv("FAKEHIP_QUIRKS");
    unsetenv("IRIS_DEVICE_TIMEOUT_MS");
    unsetenv("IRIS_TIMEOUT_MS");
}

static int never(iris_t *iris, void *arg)
{
    return 1;
}

/* Ranks that MPI has not brought together. */
static TEST(messages_by_mpi_need_a_job_of_mpis)
{
    if (harness_launched() != 0 || harness_has_gpu()) {
        return;
    }
    setenv("IRIS_NODES", "2", 1);
    setenv("IRIS_TRANSPORT", "mpi", 1);
    assert_int_equal(iris_spawn(NULL, 2, never, NULL), IRIS_ERR_UNSUPPORTED);
    assert_non_null(strstr(iris_last_error(), "IRIS_TRANSPORT asks for MPI"));
    assert_non_null(strstr(iris_last_error(), "set IRIS_TRANSPORT=socket"));
    unsetenv("IRIS_TRANSPORT");
    unsetenv("IRIS_NODES");
}

TEST_GROUP(rank);
