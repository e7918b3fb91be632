/* SPDX-License-Identifier: MIT
 *
 * Which GPU a rank gets, and what is said where it cannot have one or cannot
 * reach another's.
 */
#include "config.h"

#include "support/hip_job.h"

#include <iris/device/layout.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/procs.h"

static int nothing(iris_t *iris, void *arg)
{
    return iris_barrier(iris, NULL, NULL);
}

/* Ranks that cannot start: all are told, and nothing is left. */
static void refuse(int num_ranks, iris_status_t expected,
                   const char *const texts[])
{
    struct hip_held before;
    struct iris_config config;
    iris_status_t status;

    iris_config_init(&config);
    config.require_all = 1;
    hip_note(&before);
    status = iris_spawn(&config, num_ranks, nothing, NULL);
    if (status != expected) {
        print_error("%s: %s\n", iris_status_string(status), iris_last_error());
    }
    assert_int_equal(status, expected);
    for (; *texts != NULL; texts++) {
        if (!harness_message_has(*texts)) {
            print_error("no \"%s\" in: %s\n", *texts, iris_last_error());
            fail();
        }
    }
    assert_int_equal(hip_found(&before), 0);
}

#define REFUSE(num_ranks, expected, ...) \
    refuse(num_ranks, expected, (const char *const[]){__VA_ARGS__, NULL})

static int own_gpu(iris_t *iris, void *arg)
{
    const int *shared = arg;

    CHECK_EQUAL(iris_device_id(iris), *shared ? 0 : iris_rank(iris));
    CHECK(strcmp(iris_backend_name(iris), *shared ? "sim" : "hip") == 0);
    CHECK(harness_on_gpu(iris));
    CHECK(*shared ? iris_num_cus(iris) >= 1 : iris_num_cus(iris) == 4);
    CHECK_OK(hip_work(iris));
    return iris_barrier(iris, NULL, NULL);
}

static TEST(each_rank_has_a_gpu_of_its_own)
{
    int shared = 0;

    harness_run_all(own_gpu, &shared);
}

static TEST(in_simulation_ranks_share_one_gpu)
{
    int shared = 1;

    setenv("FAKEHIP_DEVICES", "1", 1);
    setenv("IRIS_BACKEND", "sim", 1);
    harness_run_all(own_gpu, &shared);
    setenv("IRIS_SIM_DEVICE", "gpu", 1);
    harness_run_all(own_gpu, &shared);
    unsetenv("IRIS_SIM_DEVICE");
    setenv("IRIS_BACKEND", "hip", 1);
}

static TEST(ranks_that_would_share_a_gpu_are_refused)
{
    setenv("FAKEHIP_DEVICES", "1", 1);
    REFUSE(2, IRIS_ERR_BACKEND, "ranks ", "are both on GPU 0000:10:00.0",
           "IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu");
    setenv("FAKEHIP_DEVICES", "2", 1);
    REFUSE(3, IRIS_ERR_BACKEND, "rank 2 of 3 has no GPU for itself",
           "this node shows 2", "IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu");
}

/* Partitions of two GPUs. */
static TEST(partitions_with_one_address_are_devices_of_their_own)
{
    static const char *const quirks[] = {"", "one-uuid"};
    static const char *const spawns[] = {"threads", "processes"};
    int shared = 0;

    setenv("FAKEHIP_PARTITIONS", "2", 1);
    for (int i = 0; i < 4; i++) {
        setenv("FAKEHIP_QUIRKS", quirks[i / 2], 1);
        setenv("IRIS_SPAWN", spawns[i % 2], 1);
        harness_run(4, own_gpu, &shared);
    }
    setenv("FAKEHIP_NO_PEER", "1-2", 1);
    REFUSE(4, IRIS_ERR_UNREACHABLE, "GPU 1 (0000:10:00.0) of rank 1",
           "GPU 2 (0000:11:00.0) of rank 2", "no peer access between them");
}

static TEST(gpus_that_cannot_reach_each_other_are_named)
{
    setenv("FAKEHIP_NO_PEER", "5-6,1-2", 1);
    harness_run(2, nothing, NULL);
    REFUSE(4, IRIS_ERR_UNREACHABLE, "GPU 1 (0000:11:00.0) of rank 1",
           "GPU 2 (0000:12:00.0) of rank 2", "no peer access between them");
}

static int each_alone(iris_t *iris, void *arg)
{
    const int64_t *context = iris_device_context(iris);
    int rank = iris_rank(iris), other = 1 - rank;
    int64_t base = -1;
    void *ptr, *remote;

    CHECK_EQUAL(iris_is_reachable(iris, rank), 1);
    CHECK_EQUAL(iris_is_reachable(iris, other), 0);
    CHECK_EQUAL(iris_heap_bases(iris)[other], 0);
    CHECK_OK(iris_memcpy_sync(
        iris, &base, context + IRIS_CONTEXT_HEAP_BASES + other, sizeof base));
    CHECK_EQUAL(base, 0);
    CHECK_OK(iris_calloc(iris, 1, (size_t)1 << 20, &ptr));
    CHECK_STATUS(iris_as_remote(iris, ptr, other, &remote),
                 IRIS_ERR_UNREACHABLE);
    CHECK_STATUS(iris_device_barrier(iris, NULL, NULL), IRIS_ERR_UNREACHABLE);
    CHECK_OK(iris_free(iris, ptr));
    return iris_barrier(iris, NULL, NULL);
}

static TEST(a_reach_that_goes_one_way_is_none_for_both)
{
    static const char *const ways[] = {"0>1", "1>0"};
    static const char *const allocators[] = {"pool", "vmem"};

    for (int i = 0; i < 4; i++) {
        setenv("FAKEHIP_NO_PEER", ways[i / 2], 1);
        setenv("IRIS_ALLOCATOR", allocators[i % 2], 1);
        harness_run(2, each_alone, NULL);
    }
}

static TEST(links_without_atomics_are_named_once)
{
    struct harness_capture capture;
    const char *said;

    setenv("FAKEHIP_NO_ATOMICS", "0-2,1-2", 1);
    harness_capture(&capture);
    harness_run(2, nothing, NULL);
    assert_null(strstr(harness_captured(&capture), "no atomics"));
    free(capture.text);
    harness_capture(&capture);
    harness_run(3, nothing, NULL);
    said = harness_captured(&capture);
    assert_non_null(strstr(said, "the link from GPU 1 (0000:11:00.0) of rank 1 "
                                 "to GPU 2 (0000:12:00.0) of rank 2 has no "
                                 "atomics"));
    said = strstr(said, "from GPU 2");
    assert_non_null(said);
    assert_null(strstr(said + 1, "from GPU 2"));
    free(capture.text);
}

/* Calls that only a job of several ranks makes. */
static TEST(a_peer_call_that_fails_is_an_error)
{
    static const struct {
        const char *list;
        iris_status_t status;
    } rows[] = {
        {"hipDeviceGetPCIBusId:4:101", IRIS_ERR_DEVICE},
        {"hipDeviceCanAccessPeer:1:101", IRIS_ERR_UNREACHABLE},
        {"hipDeviceEnablePeerAccess:1:217", IRIS_ERR_UNREACHABLE},
        {"hipDeviceEnablePeerAccess:2:700", IRIS_ERR_UNREACHABLE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)fakehip_fail(rows[i].list);
        REFUSE(2, rows[i].status, "rank 0", "rank 1", "0000:1");
        assert_int_equal(fakehip_fail(NULL), 1);
    }
    harness_run(2, nothing, NULL);
}

static TEST(without_a_gpu_hip_says_so_and_the_default_is_the_cpu)
{
    iris_t *iris;

    setenv("FAKEHIP_DEVICES", "0", 1);
    REFUSE(2, IRIS_ERR_BACKEND, "finds no GPU", "no ROCm-capable device",
           "rocminfo", "IRIS_BACKEND=sim");
    setenv("IRIS_BACKEND", "sim", 1);
    setenv("IRIS_SIM_DEVICE", "gpu", 1);
    REFUSE(2, IRIS_ERR_BACKEND, "IRIS_SIM_DEVICE=gpu", "finds no GPU",
           "IRIS_SIM_DEVICE=cpu");
    unsetenv("IRIS_BACKEND");
    unsetenv("IRIS_SIM_DEVICE");
    assert_int_equal(iris_init(NULL, &iris), IRIS_OK);
    assert_string_equal(iris_backend_name(iris), "sim");
    assert_false(harness_on_gpu(iris));
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    unsetenv("FAKEHIP_DEVICES");
    assert_int_equal(iris_init(NULL, &iris), IRIS_OK);
    assert_string_equal(iris_backend_name(iris), "hip");
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    setenv("IRIS_BACKEND", "hip", 1);
}

/* ---- Ranks that are processes ---- */

#define RANKS 3

/* What one rank sees of the GPUs, and how it should end. */
struct view {
    const char *variable;
    const char *values[RANKS]; /* NULL: not set */
};

static void body(int rank, struct proc_report *report, void *arg)
{
    const struct view *view = arg;
    struct fakehip_counts counts;
    iris_t *iris;

    if (view->values[rank] != NULL) {
        setenv(view->variable, view->values[rank], 1);
    }
    (void)fakehip_fail(getenv("FAKEHIP_FAIL"));
    iris = proc_init(report);
    if (iris != NULL) {
        iris_status_t work = hip_work(iris);
        iris_status_t met = iris_barrier(iris, NULL, NULL);

        proc_note(report, work != IRIS_OK ? work : met);
        fakehip_count(&counts);
        report->value = counts.imports;
        proc_finalize(report, iris);
    }
    (void)fakehip_fail(NULL);
    fakehip_count(&counts);
    report->value += 100 * (counts.allocations + counts.imports +
                            counts.streams + counts.graphs);
}

/* Every rank ends with the status and this in its message, having left nothing;
 * `imports` is how many heaps each had open. */
static void run_view(const struct view *view, iris_status_t expected,
                     const char *text, int imports)
{
    struct procs procs;

    procs_start(&procs, RANKS, body, (void *)(uintptr_t)view);
    procs_join(&procs);
    for (int rank = 0; rank < RANKS; rank++) {
        const struct proc_report *report = &procs.reports[rank];

        if (report->status != expected ||
            strstr(report->message, text) == NULL || report->value != imports) {
            print_error("rank %d: %s, %lld open: %s\n", rank,
                        iris_status_string(report->status),
                        (long long)report->value, report->message);
            fail();
        }
    }
    procs_free(&procs);
}

static TEST(processes_open_each_heap_once)
{
    static const struct view same = {.variable = "FAKEHIP_FIRST"};

    run_view(&same, IRIS_OK, "", RANKS - 1);
}

static TEST(processes_share_one_gpu_in_simulation)
{
    static const struct view one = {"FAKEHIP_DEVICES", {"1", "1", "1"}};

    setenv("IRIS_BACKEND", "sim", 1);
    run_view(&one, IRIS_OK, "", RANKS - 1);
    setenv("IRIS_BACKEND", "hip", 1);
    run_view(&one, IRIS_ERR_BACKEND, "both on GPU 0000:10:00.0", 0);
}

static TEST(a_gpu_that_a_rank_does_not_see_is_named)
{
    static const struct view own = {"FAKEHIP_FIRST", {"0", "1", "2"}};

    setenv("FAKEHIP_DEVICES", "1", 1);
    run_view(&own, IRIS_ERR_DEVICE, "HIP_VISIBLE_DEVICES", 0);
}

/* Without a choice of backend, what a rank lacks is the answer to all. */
static TEST(a_rank_that_finds_no_gpu_tells_the_others)
{
    static const struct view last = {"FAKEHIP_DEVICES", {NULL, NULL, "0"}};
    static const struct view first = {"FAKEHIP_DEVICES", {"0", NULL, NULL}};

    unsetenv("IRIS_BACKEND");
    run_view(&last, IRIS_ERR_MISMATCH,
             "rank 2: backend \"hip\" finds no GPU it can use", 0);
    run_view(&first, IRIS_ERR_MISMATCH,
             "rank 0: backend \"hip\" finds no GPU it can use", 0);
    setenv("IRIS_BACKEND", "hip", 1);
}

static TEST(a_refused_handle_names_rank_and_gpu)
{
    static const struct view refused = {
        "FAKEHIP_FAIL", {NULL, NULL, "hipIpcOpenMemHandle:2+:1"}};

    run_view(&refused, IRIS_ERR_DEVICE,
             "rank 2, GPU 2: the heap of rank 1, process", 0);
}

static TEST(pieces_that_make_no_sense_are_named)
{
    setenv("IRIS_ALLOCATOR", "vmem", 1);
    setenv("FAKEHIP_GRANULARITY", "3145728", 1);
    REFUSE(1, IRIS_ERR_DEVICE, "rank 0", "3145728 bytes", "no power of two",
           "IRIS_ALLOCATOR=pool");
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
