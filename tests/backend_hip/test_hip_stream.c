/* SPDX-License-Identifier: MIT
 *
 * Streams of a GPU: those of the program's own, remote memory access by copy
 * engine, and waits that nothing ends but a deadline or a death.
 */
#include "config.h"

#include "support/hip_job.h"

#include <iris/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include "support/procs.h"

#define ROUNDS 50
#define LARGE ((size_t)2 << 20)
#define BOUND_NS 2000000000

struct step_args {
    uint64_t *word;
    uint64_t expected;
    uint64_t *errors;
};

/* Takes the word from `expected` to the next. */
IRIS_KERNEL(step, struct step_args)
{
    if (iris_wg_leader(wg)) {
        *args->errors += *args->word != args->expected;
        *args->word = args->expected + 1;
    }
}

static int wrapped_body(iris_t *iris, void *arg)
{
    struct step_args args;
    uint64_t *words, seen[3];
    iris_stream_t *stream, *other;
    hipStream_t natives[2], native;

    CHECK_OK(iris_calloc(iris, 3, sizeof *words, (void **)&words));
    CHECK_EQUAL(hipSetDevice(iris_device_id(iris)), hipSuccess);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(hipStreamCreateWithFlags(&natives[i], hipStreamNonBlocking),
                    hipSuccess);
    }
    native = natives[0];
    CHECK_OK(iris_stream_wrap(iris, native, &stream));
    CHECK(iris_stream_native(iris, stream) == native);
    /* The first work of one new stream waits for that of another. */
    CHECK_OK(iris_stream_wrap(iris, natives[1], &other));
    CHECK_OK(iris_wait_on_stream(iris, words + 2, IRIS_CMP_EQ, 7, stream));
    CHECK_OK(iris_signal_on_stream(iris, words + 2, 7, iris_rank(iris), other));
    iris_stream_destroy(iris, other);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        args = (struct step_args){words, round, words + 1};
        CHECK_OK(iris_launch(iris, step, 1, 64, &args, sizeof args, stream));
        CHECK_EQUAL(hipMemcpyAsync(words + 2, words, sizeof *words,
                                   hipMemcpyDefault, native),
                    hipSuccess);
    }
    CHECK_OK(iris_get_on_stream(iris, seen, words, sizeof seen, iris_rank(iris),
                                stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_EQUAL(seen[0], ROUNDS);
    CHECK_EQUAL(seen[1], 0);
    CHECK_EQUAL(seen[2], ROUNDS);
    iris_stream_destroy(iris, stream);
    CHECK_EQUAL(hipStreamQuery(native), hipSuccess); /* it is still there */
    CHECK_EQUAL(hipStreamDestroy(native), hipSuccess);
    CHECK_EQUAL(hipStreamDestroy(natives[1]), hipSuccess);
    CHECK_STATUS(iris_stream_wrap(iris, &native, &stream), IRIS_ERR_INVALID);
    CHECK_MESSAGE("is no stream of GPU");
    CHECK_STATUS(iris_stream_wrap(iris, NULL, NULL), IRIS_ERR_INVALID);
    return 0;
}

static RANK_TEST(a_stream_of_another_gpu_is_refused, 2)
{
    int mine = iris_device_id(iris), other = (mine + 1) % 2;
    iris_stream_t *stream;
    hipStream_t native;
    char text[64];

    CHECK_EQUAL(hipSetDevice(other), hipSuccess);
    CHECK_EQUAL(hipStreamCreateWithFlags(&native, hipStreamNonBlocking),
                hipSuccess);
    CHECK_STATUS(iris_stream_wrap(iris, native, &stream), IRIS_ERR_INVALID);
    snprintf(text, sizeof text, "a stream of GPU %d, but rank %d has GPU %d",
             other, iris_rank(iris), mine);
    CHECK_MESSAGE(text);
    CHECK_OK(iris_stream_wrap(iris, NULL, &stream));
    CHECK_EQUAL(hipStreamDestroy(native), hipSuccess);
    return 0;
}

static TEST(a_stream_of_the_program_s_own_keeps_one_order)
{
    struct hip_held before;

    harness_run(2, wrapped_body, NULL);
    hip_note(&before);
    harness_run(2, wrapped_body, NULL);
    assert_int_equal(hip_found(&before), 0);
}

static RANK_TEST(the_runtime_s_default_stream_can_be_wrapped, 1)
{
    iris_stream_t *stream;
    uint64_t *word, seen = 0;

    CHECK_OK(iris_malloc(iris, sizeof *word, (void **)&word));
    CHECK_OK(iris_stream_wrap(iris, NULL, &stream));
    CHECK(iris_stream_native(iris, stream) == NULL);
    CHECK(iris_stream_native(iris, NULL) != NULL);
    CHECK_OK(iris_memset(iris, word, 1, sizeof *word, stream));
    CHECK_OK(iris_memcpy(iris, &seen, word, sizeof seen, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_EQUAL(seen, 0x0101010101010101);
    CHECK_STATUS(iris_capture_begin(iris, stream), IRIS_ERR_DEVICE);
    iris_stream_destroy(iris, stream);
    return 0;
}

/* ---- Copy engines ---- */

struct ring {
    uint64_t ready; /* written by the rank before */
    uint64_t taken; /* by the rank after */
    char data[LARGE];
};

/* Each rank puts a large piece to the next one and signals; what the signal
 * guards has come whole. */
static RANK_TEST(a_put_and_its_signal_arrive_in_order, ALL_RANKS)
{
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    int next = (rank + 1) % num_ranks,
        last = (rank + num_ranks - 1) % num_ranks;
    char *host = malloc(LARGE), *mine;
    struct ring *ring;

    CHECK_OK(iris_calloc(iris, 1, sizeof *ring, (void **)&ring));
    CHECK_OK(iris_malloc(iris, LARGE, (void **)&mine));
    for (uint64_t round = 1; round <= 8; round++) {
        CHECK_OK(iris_memset(iris, mine, (int)round + rank, LARGE, NULL));
        CHECK_OK(iris_wait_on_stream(iris, &ring->taken, IRIS_CMP_GE, round - 1,
                                     NULL));
        CHECK_OK(iris_put_on_stream(iris, ring->data, mine, LARGE, next, NULL));
        CHECK_OK(iris_signal_on_stream(iris, &ring->ready, round, next, NULL));
        CHECK_OK(
            iris_wait_on_stream(iris, &ring->ready, IRIS_CMP_EQ, round, NULL));
        CHECK_OK(iris_get_on_stream(iris, host, ring->data, LARGE, rank, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        for (size_t i = 0; i < LARGE; i++) {
            CHECK_EQUAL(host[i], (char)(round + (uint64_t)last));
        }
        CHECK_OK(iris_signal_on_stream(iris, &ring->taken, round, last, NULL));
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    free(host);
    return iris_barrier(iris, NULL, NULL);
}

static RANK_TEST(arguments_that_make_no_sense_are_refused, 2)
{
    uint64_t *words, host[4] = {0};
    char *end;

    CHECK_OK(iris_calloc(iris, 4, sizeof *words, (void **)&words));
    end = (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)];
    end += (size_t)16 << 20;
    CHECK_BAD(iris, iris_put_on_stream(iris, host, words, 8, 0, NULL),
              IRIS_ERR_INVALID, "dst", "pass memory from iris_malloc");
    CHECK_BAD(iris, iris_get_on_stream(iris, words, host, 8, 0, NULL),
              IRIS_ERR_INVALID, "src", "pass memory from iris_malloc");
    CHECK_BAD(iris, iris_put_on_stream(iris, end - 8, words, 16, 0, NULL),
              IRIS_ERR_INVALID, "16 bytes", "pass fewer bytes");
    CHECK_BAD(iris, iris_put_on_stream(iris, words, host, 8, 2, NULL),
              IRIS_ERR_INVALID, "2", "0 to 1");
    CHECK_BAD(iris, iris_get_on_stream(iris, host, words, 8, -1, NULL),
              IRIS_ERR_INVALID, "-1", "0 to 1");
    CHECK_BAD(
        iris,
        iris_signal_on_stream(iris, (void *)((char *)words + 4), 1, 0, NULL),
        IRIS_ERR_INVALID, "multiple of 8", "aligned uint64_t");
    CHECK_BAD(iris, iris_wait_on_stream(iris, host, IRIS_CMP_EQ, 0, NULL),
              IRIS_ERR_INVALID, "signal", "pass memory from iris_malloc");
    CHECK_BAD(iris, iris_wait_on_stream(iris, words, (iris_cmp_t)9, 0, NULL),
              IRIS_ERR_INVALID, "cmp 9", "IRIS_CMP_EQ to IRIS_CMP_GE");
    CHECK_BAD(iris,
              iris_signal_on_stream(iris, words, 1, 0, (iris_stream_t *)host),
              IRIS_ERR_INVALID, "stream", "iris_stream_create");
    CHECK_OK(iris_put_on_stream(iris, words, host, 0, 0, NULL));
    return iris_barrier(iris, NULL, NULL);
}

/* ---- Host memory ---- */

/* What the stream writes to host memory, and then reads there. */
static RANK_TEST(a_copy_reads_host_memory_when_its_turn_comes, 1)
{
    uint64_t *words, host[3] = {1, 2, 3}, seen[4];
    iris_stream_t *other;

    CHECK_OK(iris_calloc(iris, 4, sizeof *words, (void **)&words));
    CHECK_OK(iris_stream_create(iris, &other));
    CHECK_OK(iris_memset(iris, words, 5, sizeof *words, NULL));
    CHECK_OK(iris_wait_on_stream(iris, words + 3, IRIS_CMP_EQ, 1, NULL));
    CHECK_OK(iris_get_on_stream(iris, host, words, 8, 0, NULL));
    CHECK_OK(iris_memset(iris, host + 1, 6, 8, NULL));
    CHECK_OK(iris_memcpy(iris, host + 2, host, 8, NULL));
    CHECK_OK(iris_put_on_stream(iris, words, host, 24, 0, NULL));
    CHECK_OK(iris_signal_on_stream(iris, words + 3, 1, 0, other));
    CHECK_OK(iris_get_on_stream(iris, seen, words, sizeof seen, 0, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_EQUAL(seen[0], 0x0505050505050505);
    CHECK_EQUAL(seen[1], 0x0606060606060606);
    CHECK_EQUAL(seen[2], 0x0505050505050505);
    iris_stream_destroy(iris, other);
    return 0;
}

/* More copies fail than the stage has blocks; then it still holds one. */
static RANK_TEST(copies_that_fail_give_their_stage_back, 1)
{
    uint64_t *words, host = 0;
    iris_stream_t *other;

    CHECK_OK(iris_calloc(iris, 2, sizeof *words, (void **)&words));
    CHECK_OK(iris_stream_create(iris, &other));
    for (int i = 0; i < 4; i++) {
        (void)fakehip_fail("hipStreamAddCallback:1+:700");
        for (int j = 0; j < 32; j++) {
            CHECK_STATUS(iris_get_on_stream(iris, &host, words, 8, 0, NULL),
                         IRIS_ERR_DEVICE);
        }
        CHECK_EQUAL(fakehip_fail(NULL), 32);
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    /* Without room this would wait for the stream. */
    CHECK_OK(iris_wait_on_stream(iris, words + 1, IRIS_CMP_EQ, 1, NULL));
    CHECK_OK(iris_get_on_stream(iris, &host, words + 1, 8, 0, NULL));
    CHECK_OK(iris_signal_on_stream(iris, words + 1, 1, 0, other));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_EQUAL(host, 1);
    iris_stream_destroy(iris, other);
    return 0;
}

/* ---- Memory of other GPUs ---- */

#define LARGE_PIECE ((size_t)2 << 20)

/* It has no address on this rank's GPU, but it is no memory of the host. */
static int copy_far(iris_t *iris, void *arg)
{
    void *far, *words;

    CHECK_OK(iris_calloc(iris, 1, LARGE_PIECE, &words));
    CHECK_EQUAL(fakehip_map(1, LARGE_PIECE, 1, &far), 0);
    (void)fakehip_fail("hipStreamAddCallback:1+:700");
    CHECK_OK(iris_memset(iris, far, 5, 100, NULL));
    CHECK_OK(iris_memcpy(iris, words, far, 100, NULL));
    CHECK_OK(iris_memcpy(iris, far, words, 100, NULL));
    CHECK_EQUAL(fakehip_fail("hipStreamAddCallback:1+:700,"
                             "hipPointerGetAttributes:1+:700"),
                0);
    CHECK_OK(iris_memcpy(iris, words, far, 100, NULL));
    CHECK_EQUAL(fakehip_fail(NULL), 1);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK(harness_holds(iris, words, 100, 5));
    fakehip_unmap(far, LARGE_PIECE);
    return 0;
}

static TEST(memory_out_of_a_gpu_s_reach_is_left_to_the_runtime)
{
    setenv("FAKEHIP_NO_PEER", "0-1", 1);
    harness_run(1, copy_far, NULL);
}

/* ---- Waits that go on ---- */

/* For the first two a stream may wait without a kernel: no device deadline. */
static int endless_body(iris_t *iris, void *arg)
{
    const char *text = arg;
    size_t first = strcmp(text, "(IRIS_DEVICE_TIMEOUT_MS)") == 0 ? 2 : 0;
    uint64_t *word;

    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    for (size_t i = first; i < 5; i++) { /* LE: always true */
        static const iris_cmp_t cmps[] = {IRIS_CMP_EQ, IRIS_CMP_GE, IRIS_CMP_NE,
                                          IRIS_CMP_LT, IRIS_CMP_GT};
        uint64_t value = i == 2 || i == 3 ? 0 : 1;

        CHECK_OK(iris_memset(iris, word, 0, sizeof *word, NULL));
        CHECK_OK(iris_wait_on_stream(iris, word, cmps[i], value, NULL));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE(text);
        CHECK_OK(iris_clear_error(iris));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    CHECK_OK(iris_memset(iris, word, 0, sizeof *word, NULL));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_LE, 0, NULL));
    return iris_stream_synchronize(iris, NULL);
}

static TEST(a_stream_that_waits_for_ever_ends_at_a_deadline)
{
    char kept[32];

    snprintf(kept, sizeof kept, "%s", getenv("IRIS_TIMEOUT_MS"));
    setenv("IRIS_TIMEOUT_MS", "200", 1);
    harness_run(1, endless_body, (void *)(uintptr_t) "(IRIS_TIMEOUT_MS)");
    setenv("IRIS_TIMEOUT_MS", kept, 1);
    setenv("IRIS_DEVICE_TIMEOUT_MS", "100", 1);
    harness_run(1, endless_body,
                (void *)(uintptr_t) "(IRIS_DEVICE_TIMEOUT_MS)");
}

enum stage { WAITING = 1 };

static void wait_for_dead(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);
    uint64_t *word;

    if (iris == NULL ||
        iris_calloc(iris, 1, sizeof *word, (void **)&word) != IRIS_OK) {
        return;
    }
    (void)iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 1, NULL);
    proc_reach(report, WAITING);
    proc_note(report, iris_stream_synchronize(iris, NULL));
    proc_finalize(report, iris);
}

/* With heaps in another process's memory, and on one GPU. */
static TEST(survivors_of_a_kill_leave_their_waits)
{
    static const char *const backends[] = {"hip", "sim"};

    for (int i = 0; i < 2; i++) {
        int64_t death_ns;
        struct procs procs;

        setenv("IRIS_BACKEND", backends[i], 1);
        procs_start(&procs, 4, wait_for_dead, NULL);
        for (int rank = 0; rank < 4; rank++) {
            procs_await(&procs, rank, WAITING);
        }
        death_ns = procs_kill(&procs, 2);
        procs_join(&procs);
        for (int rank = 0; rank < 4; rank++) {
            const struct proc_report *report = &procs.reports[rank];

            if (rank != 2) {
                assert_int_equal(report->status, IRIS_ERR_PEER_LOST);
                assert_non_null(strstr(report->message, "rank 2"));
                assert_true(report->end_ns - death_ns < BOUND_NS);
            }
        }
        procs_free(&procs);
    }
    setenv("IRIS_BACKEND", "hip", 1);
}

/* A GPU that never says it is done: the host gives up, and leaves it alone. */
static void hang(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);

    if (iris != NULL) {
        (void)fakehip_fail("hipStreamQuery:1+:600,hipEventQuery:1+:600");
        (void)iris_device_barrier(iris, NULL, NULL);
        proc_note(report, iris_stream_synchronize(iris, NULL));
        (void)iris_finalize(iris);
    }
}

static TEST(a_gpu_that_hangs_is_given_up)
{
    struct procs procs;
    char kept[32];

    snprintf(kept, sizeof kept, "%s", getenv("IRIS_TIMEOUT_MS"));
    setenv("IRIS_TIMEOUT_MS", "200", 1);
    procs_start(&procs, 1, hang, NULL);
    procs_await(&procs, 0, INT32_MAX); /* until it ends */
    assert_int_equal(procs.reports[0].status, IRIS_ERR_TIMEOUT);
    assert_int_equal(procs.reports[0].ended, 1);
    (void)procs_kill(&procs, 0); /* it holds on to what the GPU may use */
    procs_free(&procs);
    setenv("IRIS_TIMEOUT_MS", kept, 1);
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip, waits);
