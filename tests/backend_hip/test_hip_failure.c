/* SPDX-License-Identifier: MIT
 *
 * The GPU backend when a call of the HIP runtime fails, each at each place: an
 * error says so, nothing is left behind. And while a kernel keeps the GPU busy.
 */
#include "config.h"

#include "support/hip_job.h"

#include <iris/ccl.h>
#include <iris/device.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/procs.h"

#define ILLEGAL_ADDRESS "700"
#define OUT_OF_MEMORY "2"
#define LARGE ((size_t)6 << 20)
/* Calls of one kind to fail; the host asks a stream how it is over and over. */
#define MOST 40

/* How a call's failure shows. */
enum outcome {
    FAILS,     /* an error with the runtime's name for it */
    TOLERATED, /* the job works all the same */
    EITHER,    /* depends on where; the error may be one that it leads to */
};

static const struct row {
    const char *call;
    enum outcome outcome;
} rows[] = {
    {"hipModuleLoadData", FAILS}, /* first: images are loaded once */
    {"hipDeviceGetAttribute", TOLERATED},
    {"hipDeviceGetName", FAILS},
    {"hipDeviceGetPCIBusId", FAILS},
    {"hipEventCreateWithFlags", EITHER},
    {"hipEventQuery", EITHER},
    {"hipEventRecord", EITHER},
    {"hipExtMallocWithFlags", FAILS},
    {"hipGraphDestroy", TOLERATED},
    {"hipGraphExecDestroy", TOLERATED},
    {"hipGraphGetNodes", FAILS},
    {"hipGraphInstantiate", FAILS},
    {"hipGraphLaunch", FAILS},
    {"hipHostFree", TOLERATED},
    {"hipHostGetDevicePointer", FAILS},
    {"hipHostMalloc", FAILS},
    {"hipIpcGetMemHandle", TOLERATED},
    {"hipMemGetAddressRange", FAILS},
    {"hipMemcpyAsync", FAILS},
    {"hipMemsetAsync", FAILS},
    {"hipModuleGetFunction", FAILS},
    {"hipModuleLaunchKernel", FAILS},
    {"hipPointerGetAttributes", EITHER},
    {"hipStreamAddCallback", FAILS},
    {"hipStreamBeginCapture", FAILS},
    {"hipStreamCreateWithFlags", FAILS},
    {"hipStreamDestroy", TOLERATED},
    {"hipStreamEndCapture", EITHER},
    {"hipStreamIsCapturing", EITHER},
    {"hipStreamQuery", EITHER},
    {"hipStreamSynchronize", EITHER},
    {"hipStreamWriteValue64", FAILS},
    {"hipFree", TOLERATED},
    {"hipGetDevice", TOLERATED},
    {"hipGetDeviceCount", EITHER},
    {"hipSetDevice", TOLERATED},
};

static iris_status_t wrong(const struct row *row, int nth, iris_status_t status)
{
    print_error("%s, call %d: %s: %s\n", row->call, nth,
                iris_status_string(status), iris_last_error());
    return status;
}

/* One failure; 0 if the job has no such call, so that none failed. */
static int fail_one(const struct row *row, int nth, const char *error)
{
    int full = strcmp(error, OUT_OF_MEMORY) == 0;
    const char *name = full ? "hipErrorOutOfMemory" : "hipErrorIllegalAddress";
    iris_status_t expected = full ? IRIS_ERR_NO_MEMORY : IRIS_ERR_DEVICE;
    struct hip_held before;
    iris_status_t status;
    char list[96];
    int failed;

    hip_note(&before);
    snprintf(list, sizeof list, "%s:%d:%s", row->call, nth, error);
    (void)fakehip_fail(list);
    status = hip_job();
    failed = fakehip_fail(NULL);
    if (failed == 0) {
        assert_int_equal(status, IRIS_OK);
        return 0;
    }
    if (row->outcome == TOLERATED) {
        assert_int_equal(status == IRIS_OK ? status : wrong(row, nth, status),
                         IRIS_OK);
    } else if (row->outcome == FAILS &&
               (status != expected || !harness_message_has(name) ||
                !harness_message_has("rank 0"))) {
        wrong(row, nth, status);
        fail();
    } else if (status != IRIS_OK && !harness_message_has("rank 0") &&
               !harness_message_has("[0/1]")) {
        wrong(row, nth, status);
        fail();
    }
    if (hip_found(&before) != 0) {
        wrong(row, nth, status);
        fail();
    }
    return 1;
}

/* A job with no failure. */
static void succeed(void)
{
    iris_status_t status = hip_job();

    if (status != IRIS_OK) {
        print_error("%s\n", iris_last_error());
    }
    assert_int_equal(status, IRIS_OK);
}

static TEST(every_call_may_fail_everywhere)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int nth = 1;

        while (nth <= MOST && fail_one(&rows[i], nth, ILLEGAL_ADDRESS) != 0) {
            nth++;
        }
        if (nth == 1) {
            print_error("%s is never called\n", rows[i].call);
        }
        (void)fail_one(&rows[i], 1, OUT_OF_MEMORY);
    }
    succeed();
}

/* The GPU falls off the bus at some moment of its work, or of a call. */
static void lose(const char *call, int nth)
{
    struct hip_held before;
    iris_status_t status;
    char list[96];
    int failed;

    hip_note(&before);
    snprintf(list, sizeof list, "%s:%d:lost", call, nth);
    (void)fakehip_fail(list);
    status = hip_job();
    failed = fakehip_fail(NULL);
    if (failed != 0 && (status != IRIS_ERR_DEVICE ||
                        !harness_message_has("hipErrorLaunchFailure"))) {
        print_error("%s, call %d: %s: %s\n", call, nth,
                    iris_status_string(status), iris_last_error());
        fail();
    }
    assert_int_equal(hip_found(&before), 0);
}

static TEST(a_lost_gpu_is_an_error_and_leaves_nothing)
{
    static const char *const calls[] = {"work", "hipModuleLaunchKernel",
                                        "hipStreamQuery", "hipMemcpyAsync"};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int nth = 1; nth < MOST; nth += 3) {
            lose(calls[i], nth);
        }
    }
    succeed();
}

/* ---- Several contexts on one GPU ---- */

/* A hang is a failure. */
#define HANG_S 60

struct hold_args {
    atomic_int *go;
    atomic_int *gone;
};

/* A loop that nothing but the test ends. */
IRIS_KERNEL(hold, struct hold_args)
{
    (void)wg;
    while (atomic_load(args->go) == 0) {
        sched_yield();
    }
    atomic_store(args->gone, 1);
}

static iris_t *begin(void)
{
    iris_t *iris;

    assert_int_equal(iris_init(NULL, &iris), IRIS_OK);
    return iris;
}

/* A context whose heap comes and goes again. */
static void begin_in_vain(void)
{
    iris_t *iris;

    (void)fakehip_fail("hipMemsetAsync:1:" OUT_OF_MEMORY);
    assert_int_equal(iris_init(NULL, &iris), IRIS_ERR_NO_MEMORY);
    assert_int_equal(fakehip_fail(NULL), 1);
}

/* A piece of a heap that grows, which comes and goes again. */
static void grow_in_vain(iris_t *iris)
{
    void *ptr;

    (void)fakehip_fail("hipMemsetAsync:1:" OUT_OF_MEMORY);
    assert_int_equal(iris_malloc(iris, LARGE, &ptr), IRIS_ERR_NO_MEMORY);
    assert_int_equal(fakehip_fail(NULL), 1);
}

static void grow(iris_t *iris)
{
    void *ptr;

    grow_in_vain(iris);
    assert_int_equal(iris_malloc(iris, LARGE, &ptr), IRIS_OK);
}

static TEST(leaving_does_not_wait_for_the_kernels_of_others)
{
    static const char *const allocators[] = {"pool", "vmem"};

    alarm(HANG_S);
    for (int i = 0; i < 2; i++) {
        atomic_int go = 0, gone = 0;
        struct hold_args args = {&go, &gone};
        struct hip_held before;
        iris_t *busy, *other;

        setenv("IRIS_ALLOCATOR", allocators[i], 1);
        hip_note(&before);
        busy = begin();
        other = begin();
        if (i == 1) {
            grow(other);
        }
        assert_int_equal(
            iris_launch(busy, hold, 1, 1, &args, sizeof args, NULL), IRIS_OK);
        assert_int_equal(iris_finalize(other), IRIS_OK);
        begin_in_vain();
        assert_int_equal(atomic_load(&gone), 0);
        atomic_store(&go, 1);
        assert_int_equal(iris_stream_synchronize(busy, NULL), IRIS_OK);
        assert_int_equal(iris_finalize(busy), IRIS_OK);
        assert_int_equal(hip_found(&before), 0);
    }
    unsetenv("IRIS_ALLOCATOR");
    alarm(0);
}

/* Addresses are given back after what was mapped there while there was somebody
 * else. */
static TEST(the_last_one_leaves_nothing_of_what_was_kept)
{
    struct hip_held before;
    iris_t *first, *last;

    setenv("IRIS_ALLOCATOR", "vmem", 1);
    hip_note(&before);
    first = begin();
    last = begin();
    grow_in_vain(last);
    assert_int_equal(iris_finalize(first), IRIS_OK);
    assert_int_equal(iris_finalize(last), IRIS_OK);
    assert_int_equal(hip_found(&before), 0);
}

#define VISITS 20

static TEST(visitors_use_the_same_pinned_memory)
{
    struct hip_held before;
    struct fakehip_counts one, all;
    iris_t *stays;

    hip_note(&before);
    stays = begin();
    fakehip_count(&one);
    for (int i = 0; i < VISITS; i++) {
        assert_int_equal(iris_finalize(begin()), IRIS_OK);
    }
    fakehip_count(&all);
    /* Heaps, of which some took two tries, and one visitor's. */
    assert_in_range(all.allocations, one.allocations,
                    one.allocations + 2 * VISITS + 2);
    assert_int_equal(iris_finalize(stays), IRIS_OK);
    assert_int_equal(hip_found(&before), 0);
}

/* The last one: from then on nothing of that GPU is given back. */
static TEST(a_kernel_that_never_ends_keeps_nobody_from_leaving)
{
    static atomic_int go, gone;
    static char word[8] = "unread";
    struct hold_args hung_args = {&go, &go}, last_args = {&go, &gone};
    iris_t *hung, *other;
    char kept[32];
    void *zeros;

    alarm(HANG_S);
    snprintf(kept, sizeof kept, "%s", getenv("IRIS_TIMEOUT_MS"));
    setenv("IRIS_TIMEOUT_MS", "200", 1);
    hung = begin();
    other = begin();
    assert_int_equal(iris_calloc(hung, 1, sizeof word, &zeros), IRIS_OK);
    assert_int_equal(
        iris_launch(hung, hold, 1, 1, &hung_args, sizeof hung_args, NULL),
        IRIS_OK);
    /* Its end comes when the context is long gone. */
    assert_int_equal(
        iris_get_on_stream(hung, word, zeros, sizeof word, 0, NULL), IRIS_OK);
    assert_int_equal(
        iris_launch(hung, hold, 1, 1, &last_args, sizeof last_args, NULL),
        IRIS_OK);
    assert_int_equal(iris_stream_synchronize(hung, NULL), IRIS_ERR_TIMEOUT);
    (void)iris_finalize(hung);
    assert_int_equal(iris_finalize(other), IRIS_OK);
    assert_int_equal(iris_finalize(begin()), IRIS_OK);
    assert_int_equal(atomic_load(&gone), 0);
    atomic_store(&go, 1);
    while (atomic_load(&gone) == 0) {
        sched_yield();
    }
    assert_string_equal(word, "");
    setenv("IRIS_TIMEOUT_MS", kept, 1);
    alarm(0);
}

/* ---- Deadlines ---- */

#define DEADLINE_MS "1000"

static void *wake_up(void *arg)
{
    usleep(2000000); /* past the deadline, within 2 s of grace */
    (void)fakehip_fail(NULL);
    return arg;
}

/* A GPU that is not done with new memory, until long after the deadline. */
static TEST(growth_has_a_deadline_and_leaves_nothing)
{
    struct fakehip_counts before, after;
    struct hip_held held;
    pthread_t thread;
    char kept[32];
    iris_t *iris;
    void *ptr;

    snprintf(kept, sizeof kept, "%s", getenv("IRIS_TIMEOUT_MS"));
    setenv("IRIS_TIMEOUT_MS", DEADLINE_MS, 1);
    setenv("IRIS_ALLOCATOR", "vmem", 1);
    hip_note(&held);
    iris = begin();
    fakehip_count(&before);
    (void)fakehip_fail("hipStreamQuery:1+:600,hipEventQuery:1+:600");
    assert_int_equal(pthread_create(&thread, NULL, wake_up, NULL), 0);
    assert_int_equal(iris_malloc(iris, LARGE, &ptr), IRIS_ERR_TIMEOUT);
    assert_true(harness_message_has("rank 0: filling new memory"));
    assert_true(harness_message_has("iris_malloc"));
    assert_int_equal(pthread_join(thread, NULL), 0);
    fakehip_count(&after);
    assert_int_equal(after.handles, before.handles);
    assert_int_equal(after.allocations, before.allocations);
    assert_int_equal(iris_malloc(iris, LARGE, &ptr), IRIS_ERR_TIMEOUT);
    assert_int_equal(iris_clear_error(iris), IRIS_OK);
    assert_int_equal(iris_malloc(iris, LARGE, &ptr), IRIS_OK);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
    assert_int_equal(hip_found(&held), 0);
    unsetenv("IRIS_ALLOCATOR");
    setenv("IRIS_TIMEOUT_MS", kept, 1);
}

struct late_args {
    const int64_t *context;
    uint64_t *word;
    atomic_int *go;
};

/* Waits when the host has long given it up. */
IRIS_KERNEL(wait_late, struct late_args)
{
    (void)wg;
    while (atomic_load(args->go) == 0) {
        sched_yield();
    }
    (void)iris_wait_until(iris_dev_init(args->context), args->word, IRIS_CMP_EQ,
                          1);
}

static void *synchronize(void *arg)
{
    return (void *)(intptr_t)iris_stream_synchronize(arg, NULL);
}

enum seen { BOTH_FAILED = 1, ENDED = 2 };

static void give_up(int rank, struct proc_report *report, void *arg)
{
    static atomic_int go, gone;
    struct hold_args last = {&go, &gone};
    iris_t *iris = proc_init(report);
    struct late_args late = {iris_device_context(iris), NULL, &go};
    iris_stream_t *other;
    pthread_t thread;
    void *seen;

    (void)iris_calloc(iris, 1, sizeof(uint64_t), (void **)&late.word);
    (void)iris_stream_create(iris, &other);
    (void)iris_launch(iris, wait_late, 1, 1, &late, sizeof late, NULL);
    (void)iris_launch(iris, hold, 1, 1, &last, sizeof last, NULL);
    (void)pthread_create(&thread, NULL, synchronize, iris);
    proc_note(report, iris_stream_synchronize(iris, NULL));
    (void)pthread_join(thread, &seen);
    report->value = (intptr_t)seen == IRIS_ERR_TIMEOUT ? BOTH_FAILED : 0;
    /* What is done elsewhere does not let it wait on. */
    (void)iris_memset(iris, late.word, 0, sizeof(uint64_t), other);
    (void)iris_stream_synchronize(iris, other);
    atomic_store(&go, 1);
    for (int i = 0; i < 5000 && atomic_load(&gone) == 0; i++) {
        usleep(1000);
    }
    report->value |= atomic_load(&gone) != 0 ? ENDED : 0;
}

static TEST(a_kernel_that_was_given_up_ends_when_it_waits)
{
    struct procs procs;
    char kept[32];

    snprintf(kept, sizeof kept, "%s", getenv("IRIS_TIMEOUT_MS"));
    setenv("IRIS_TIMEOUT_MS", DEADLINE_MS, 1);
    procs_start(&procs, 1, give_up, NULL);
    procs_await(&procs, 0, INT32_MAX); /* until it ends */
    assert_int_equal(procs.reports[0].status, IRIS_ERR_TIMEOUT);
    assert_int_equal(procs.reports[0].value, BOTH_FAILED | ENDED);
    (void)procs_kill(&procs, 0); /* it holds on to what the GPU may use */
    procs_free(&procs);
    setenv("IRIS_TIMEOUT_MS", kept, 1);
}

/* ---- A launch that fails on one member of a collective ---- */

/* More than two pieces of a message, so its sender waits for its receiver. */
#define MESSAGE (1 << 20)

enum vain { SUM, RECEIVE, SEND, ALL_TO_ALLV, VAINS };

/* The call of each rank. Of messages only ranks 0 and 1 make one. */
static iris_status_t communicate(iris_t *iris, int rank, enum vain vain,
                                 char *data)
{
    const size_t counts[3] = {MESSAGE / 4, MESSAGE / 4, MESSAGE / 4};
    iris_status_t status = IRIS_OK;

    if (vain == SUM) {
        status = iris_all_reduce(iris, data, data, 16, IRIS_DTYPE_F32,
                                 IRIS_REDUCE_SUM, NULL);
    } else if (vain == ALL_TO_ALLV) {
        status = iris_all_to_allv(iris, data, counts, NULL, data + MESSAGE,
                                  counts, NULL, IRIS_DTYPE_U8, NULL);
    } else if (rank < 2) {
        status =
            (rank == 1) == (vain == SEND)
                ? iris_send(iris, data, MESSAGE, IRIS_DTYPE_U8, 1 - rank, NULL)
                : iris_recv(iris, data, MESSAGE, IRIS_DTYPE_U8, 1 - rank, NULL);
    }
    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

static void launch_in_vain(int rank, struct proc_report *report, void *arg)
{
    enum vain vain = *(const enum vain *)arg;
    iris_t *iris = proc_init(report);
    iris_status_t status;
    void *data;

    if (iris == NULL) {
        return;
    }
    status = iris_malloc(iris, (size_t)2 * MESSAGE, &data);
    status = status == IRIS_OK ? communicate(iris, rank, SUM, data) : status;
    status = status == IRIS_OK ? iris_barrier(iris, NULL, NULL) : status;
    if (rank == 1) {
        (void)fakehip_fail("hipModuleLaunchKernel:1:1");
    }
    status = status == IRIS_OK ? communicate(iris, rank, vain, data) : status;
    proc_note(report, status);
    (void)fakehip_fail(NULL);
    (void)iris_stream_synchronize(iris, NULL);
    (void)iris_clear_error(iris);
    proc_finalize(report, iris);
}

static TEST(a_failed_launch_ends_the_collective_on_all_members)
{
    for (enum vain vain = SUM; vain < VAINS; vain++) {
        struct procs procs;

        procs_start(&procs, 3, launch_in_vain, &vain);
        procs_join(&procs);
        for (int rank = 0; rank < 3; rank++) {
            const struct proc_report *report = &procs.reports[rank];
            const char *why =
                rank == 1 ? "launch of kernel" : "failed on rank 1";

            if (rank == 2 && (vain == SEND || vain == RECEIVE)) {
                assert_int_equal(report->status, IRIS_OK);
            } else if (report->status != IRIS_ERR_DEVICE ||
                       strstr(report->message, why) == NULL) {
                print_error("call %d, rank %d: %s\n", (int)vain, rank,
                            report->message);
                fail();
            }
        }
        procs_free(&procs);
    }
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip, waits);
