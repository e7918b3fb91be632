/* SPDX-License-Identifier: MIT
 *
 * What some HIP runtimes do, by name (FAKEHIP_QUIRKS): a job works all the
 * same, or says which ranks and what to do.
 */
#include "config.h"

#include "support/hip_job.h"

#include <iris/device.h>

#include <stdlib.h>
#include <string.h>

#include "support/procs.h"

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#define RANKS 3

#define GROWTH ((size_t)80 << 20) /* several pieces of a heap */

static iris_status_t work_and_grow(iris_t *iris)
{
    iris_status_t status = hip_work(iris);
    void *ptr = NULL;

    for (int i = 0; i < 3 && status == IRIS_OK; i++) {
        status = iris_calloc(iris, 1, GROWTH, &ptr);
    }
    return status == IRIS_OK ? iris_barrier(iris, NULL, NULL) : status;
}

static void work(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);

    if (iris != NULL) {
        proc_note(report, work_and_grow(iris));
        proc_finalize(report, iris);
    }
}

/* A job of processes on a runtime with these quirks; every rank ends with the
 * status, and some rank's message has each text. */
static void run(const char *quirks, iris_status_t expected,
                const char *const texts[2])
{
    struct procs procs;
    int found[2] = {texts[0] == NULL, texts[1] == NULL};

    setenv("FAKEHIP_QUIRKS", quirks, 1);
    procs_start(&procs, RANKS, work, NULL);
    procs_join(&procs);
    unsetenv("FAKEHIP_QUIRKS");
    for (int rank = 0; rank < RANKS; rank++) {
        const struct proc_report *report = &procs.reports[rank];

        if (report->status != expected) {
            print_error("%s, rank %d: %s: %s\n", quirks, rank,
                        iris_status_string(report->status), report->message);
            fail();
        }
        for (int i = 0; i < 2; i++) {
            found[i] = found[i] || strstr(report->message, texts[i]) != NULL;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (!found[i]) {
            print_error("%s: no \"%s\" in: %s\n", quirks, texts[i],
                        procs.reports[0].message);
            fail();
        }
    }
    procs_free(&procs);
}

static void run_well(const char *quirks)
{
    static const char *const none[2] = {NULL, NULL};

    run(quirks, IRIS_OK, none);
}

/* Runs what a test does with each allocator. */
static void with(const char *allocator)
{
    setenv("IRIS_ALLOCATOR", allocator, 1);
    setenv("IRIS_HEAP_SIZE", "512M", 1);
}

static void without(void)
{
    unsetenv("IRIS_ALLOCATOR");
    unsetenv("IRIS_HEAP_SIZE");
}

static TEST(other_memory_than_the_peers_is_mapped_again_or_refused)
{
    static const char *const allocators[] = {"pool", "vmem"};
    static const char *const texts[] = {
        "the memory that rank ",
        "is other memory: it begins with 0 instead of "};

    for (int i = 0; i < 2; i++) {
        with(allocators[i]);
        run_well("wrong-memory:1");
        run("wrong-memory", IRIS_ERR_SYSTEM, texts);
    }
    without();
}

static int thread_body(iris_t *iris, void *arg)
{
    CHECK_OK(work_and_grow(iris));
    return 0;
}

static TEST(a_heap_that_cannot_be_shared_matters_to_processes_only)
{
    static const char *const why[] = {
        "cannot share its heap with other processes (hipIpcGetMemHandle); set",
        "IRIS_ALLOCATOR=vmem"};
    static const char *const legacy[] = {
        "unset HSA_ENABLE_IPC_MODE_LEGACY there", NULL};

    with("pool");
    run_well("no-ipc:2");
    run("no-ipc", IRIS_ERR_DEVICE, why);
    setenv("HSA_ENABLE_IPC_MODE_LEGACY", "1", 1);
    run("no-ipc", IRIS_ERR_DEVICE, legacy);
    unsetenv("HSA_ENABLE_IPC_MODE_LEGACY");
    setenv("FAKEHIP_QUIRKS", "no-ipc", 1);
    harness_run(RANKS, thread_body, NULL);
    unsetenv("FAKEHIP_QUIRKS");
    with("vmem");
    run_well("no-ipc");
    without();
    run_well("no-ipc"); /* nobody chose an allocator */
}

static TEST(what_fails_now_and_then_is_tried_again)
{
    with("pool");
    run_well("open-fails:3");
    with("vmem");
    run_well("export-not-ready:4");
    without();
}

/* Nobody asked for vmem, so only memory that is uncached replaces the pool. */
static TEST(cached_memory_does_not_replace_what_cannot_be_shared)
{
    static const char *const why[] = {
        "cannot share its heap with other processes (hipIpcGetMemHandle)",
        NULL};

    setenv("IRIS_HEAP_SIZE", "512M", 1);
    run("no-ipc,no-uncached", IRIS_ERR_DEVICE, why);
    setenv("FAKEHIP_VERSION", "70200000", 1);
    run("no-ipc", IRIS_ERR_DEVICE, why);
    setenv("IRIS_HIP_MEMORY", "fine", 1);
    run_well("no-ipc");
    unsetenv("IRIS_HIP_MEMORY");
    unsetenv("FAKEHIP_VERSION");
    without();
}

static TEST(memory_that_a_runtime_lacks_is_replaced_or_refused)
{
    static const char *const refused[] = {"no uncached vmem",
                                          "leave out IRIS_HIP_MEMORY"};

    with("vmem");
    run_well("no-uncached-granularity");
    setenv("IRIS_HIP_MEMORY", "uncached", 1);
    run("no-uncached", IRIS_ERR_DEVICE, refused);
    setenv("FAKEHIP_VERSION", "70200000", 1);
    run("", IRIS_ERR_DEVICE, refused);
    unsetenv("FAKEHIP_VERSION");
    with("pool");
    run_well("");
    setenv("IRIS_HIP_MEMORY", "fine", 1);
    run_well("");
    with("vmem");
    run_well("no-uncached");
    unsetenv("IRIS_HIP_MEMORY");
    without();
}

/* Behind the others, which would find what is captured as left behind. */
static TEST(memory_that_is_not_uncached_is_warned_of)
{
    static const struct {
        const char *quirks;
        const char *version;
        int warns;
    } rows[] = {{"no-uncached", "71400000", 1},
                {"no-uncached-granularity", "71400000", 0},
                {"", "71300000", 1}, /* accepts the type and drops it */
                {"", "71400000", 0}};
    struct harness_capture capture;
    const char *text;

    with("vmem");
    setenv("IRIS_LOG_LEVEL", "debug", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("FAKEHIP_QUIRKS", rows[i].quirks, 1);
        setenv("FAKEHIP_VERSION", rows[i].version, 1);
        harness_capture(&capture);
        harness_run(RANKS, thread_body, NULL);
        text = strstr(harness_captured(&capture), "has no uncached vmem");
        assert_int_equal(text != NULL, rows[i].warns);
        text = strstr(capture.text,
                      rows[i].warns ? "bytes of ordinary memory, which GPUs "
                                      "cache, vmem"
                                    : "bytes of uncached memory, vmem");
        assert_non_null(text);
        free(capture.text);
    }
    unsetenv("IRIS_LOG_LEVEL");
    unsetenv("FAKEHIP_VERSION");
    unsetenv("FAKEHIP_QUIRKS");
    without();
}

static TEST(access_that_must_begin_at_the_first_is_set_from_there)
{
    with("vmem");
    run_well("set-access-from-first");
    without();
}

static TEST(all_at_once_do_no_more_harm)
{
    with("pool");
    run_well("wrong-memory:1,no-ipc:2,open-fails:2");
    with("vmem");
    run_well("wrong-memory:1,no-ipc,export-not-ready:3,no-uncached,"
             "no-uncached-granularity,set-access-from-first");
    without();
}

/* The runtime keeps each thread's latest error until the program asks. */
static int call_with_an_error_pending(iris_t *iris, void *arg)
{
    iris_stream_t *stream;
    void *words;

    CHECK_EQUAL(hipSetDevice(99), hipErrorInvalidDevice);
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_EQUAL(hipPeekAtLastError(), hipErrorInvalidDevice);
    /* A poll that finds work under way puts "not ready" in its place, which no
     * call of the runtime could undo. */
    CHECK_OK(iris_calloc(iris, 1, GROWTH, &words));
    CHECK_OK(iris_memset(iris, words, 1, 8, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_free(iris, words));
    CHECK(hipGetLastError() != hipSuccess);
    return 0;
}

static TEST(an_error_that_the_program_has_yet_to_ask_for_stays)
{
    static const char *const allocators[] = {"pool", "vmem"};

    for (int i = 0; i < 2; i++) {
        with(allocators[i]);
        harness_run(1, call_with_an_error_pending, NULL);
    }
    without();
}

static iris_status_t make_and_free(void)
{
    iris_stream_t *stream = NULL;
    iris_t *iris = NULL;
    void *words = NULL;
    iris_status_t status = iris_init(NULL, &iris);

    if (status != IRIS_OK) {
        return status;
    }
    status = iris_calloc(iris, 1, GROWTH, &words);
    status = status == IRIS_OK ? iris_stream_create(iris, &stream) : status;
    status =
        status == IRIS_OK ? iris_memset(iris, words, 1, 8, stream) : status;
    status = status == IRIS_OK ? iris_stream_synchronize(iris, stream) : status;
    status = status == IRIS_OK ? iris_free(iris, words) : status;
    (void)iris_finalize(iris);
    return status;
}

static TEST(what_fails_in_a_call_leaves_no_error_to_the_program)
{
    static const char *const failures[] = {
        "hipStreamCreateWithFlags:1+:2", "hipMemsetAsync:1+:2",
        "hipMemCreate:1+:2", "hipExtMallocWithFlags:1+:2"};
    int failed = 0;

    (void)hipGetLastError();
    assert_int_equal(hip_job(), IRIS_OK); /* its runtime calls fail, too */
    assert_int_equal(hipPeekAtLastError(), hipSuccess);
    for (int i = 0; i < 4; i++) {
        (void)fakehip_fail(failures[i]);
        failed += make_and_free() != IRIS_OK;
        (void)fakehip_fail(NULL);
        assert_int_equal(hipPeekAtLastError(), hipSuccess);
    }
    assert_true(failed > 1);
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
