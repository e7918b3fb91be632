/* SPDX-License-Identifier: MIT
 *
 * The GPU backend when a call of the HIP runtime fails, each of them at each
 * place: an error that says so, nothing left behind, and the next job works.
 */
#include "config.h"

#include "hip_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ILLEGAL_ADDRESS "700"
#define OUT_OF_MEMORY "2"
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
    {"hipExtMallocWithFlags", FAILS},
    {"hipGraphDestroy", TOLERATED},
    {"hipGraphExecDestroy", TOLERATED},
    {"hipGraphInstantiate", FAILS},
    {"hipGraphLaunch", FAILS},
    {"hipHostFree", TOLERATED},
    {"hipHostGetDevicePointer", FAILS},
    {"hipHostMalloc", FAILS},
    {"hipIpcGetMemHandle", FAILS},
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

static void every_call_may_fail_everywhere(void **state)
{
    (void)state;
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

static void a_lost_gpu_is_an_error_and_leaves_nothing(void **state)
{
    static const char *const calls[] = {"work", "hipModuleLaunchKernel",
                                        "hipStreamQuery", "hipMemcpyAsync"};

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int nth = 1; nth < MOST; nth += 3) {
            lose(calls[i], nth);
        }
    }
    succeed();
}

static void a_full_gpu_says_what_is_free_and_what_to_lower(void **state)
{
    iris_t *iris;

    (void)state;
    setenv("FAKEHIP_MEMORY", "1000000", 1);
    assert_int_equal(iris_init(NULL, &iris), IRIS_ERR_NO_MEMORY);
    assert_true(harness_message_has("rank 0"));
    assert_true(harness_message_has("GPU 0"));
    assert_true(harness_message_has("1000000 of 1000000 bytes are free"));
    assert_true(harness_message_has("IRIS_HEAP_SIZE"));
    assert_true(harness_message_has("out of memory (hipErrorOutOfMemory)"));
    unsetenv("FAKEHIP_MEMORY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_gpu_says_what_is_free_and_what_to_lower),
        cmocka_unit_test(every_call_may_fail_everywhere),
        cmocka_unit_test(a_lost_gpu_is_an_error_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, hip_setup, harness_teardown);
}
