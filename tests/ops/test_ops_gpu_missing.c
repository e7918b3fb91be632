/* SPDX-License-Identifier: MIT
 *
 * GPU libraries that are not there or do not open: what takes their place, and
 * what is said.
 */
#include "config.h"

#include "fakeblas/toolkit.h"

#include <string.h>

static int small_body(iris_t *iris, void *arg)
{
    const char *expected = arg;
    iris_tensor_t one, out;
    iris_status_t status;
    float first = 0;

    toolkit_be_a_gpu(iris);
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(4, 4), NULL, &one));
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(4, 4), NULL, &out));
    status = iris_matmul_all_reduce(iris, &one, &one, &out, NULL);
    if (expected != NULL) {
        CHECK_STATUS(status, IRIS_ERR_BACKEND);
        CHECK_MESSAGE(expected);
        return 0;
    }
    CHECK_OK(status);
    CHECK_OK(harness_read(iris, &first, out.data, sizeof first));
    CHECK(first == 4 * (float)iris_num_ranks(iris));
    return 0;
}

static void a_library_that_does_not_open_is_an_error(void **state)
{
    for (size_t i = 0; i < NUM_TOOLKIT_LIBRARIES; i++) {
        toolkit_use(toolkit_libraries[i].name, harness_folder());
        setenv("FAKEBLAS_FAIL", toolkit_libraries[i].create_fails, 1);
        harness_run(1, small_body,
                    (void *)(uintptr_t)toolkit_libraries[i].create_error);
        unsetenv("FAKEBLAS_FAIL");
        assert_int_equal(toolkit_seen(&toolkit_libraries[i])->live, 0);
    }
}

/* Runs small_body() at level debug, and expects a line. */
static void log_has(const char *name, const char *folder, const char *fail,
                    const char *line)
{
    char *level = strdup(getenv("IRIS_LOG_LEVEL"));
    struct harness_capture capture;

    toolkit_use(name, folder);
    setenv("IRIS_LOG_LEVEL", "debug", 1);
    if (fail != NULL) {
        setenv("FAKEBLAS_FAIL", fail, 1);
    }
    harness_capture(&capture);
    harness_run(1, small_body, NULL);
    harness_captured(&capture);
    unsetenv("FAKEBLAS_FAIL");
    setenv("IRIS_LOG_LEVEL", level, 1);
    free(level);
    if (strstr(capture.text, line) == NULL) {
        print_error("no line \"%s\" in:\n%s\n", line, capture.text);
        fail_msg("%s", "the line is missing");
    }
    free(capture.text);
}

/* First of all tests: a library that is loaded stays. The machine may have
 * the libraries, which do not open without a GPU. */
static void auto_goes_on_without_libraries(void **state)
{
    log_has("auto", "/nowhere", NULL, "no products of matrices by hipblaslt: ");
    toolkit_use("hipblaslt", "/nowhere");
    harness_run(1, small_body, (void *)(uintptr_t) "/nowhere/lib");
}

static void auto_takes_the_library_of_the_device(void **state)
{
    log_has("auto", harness_folder(), NULL,
            "products of matrices by hipblaslt: hipBLASLt in ");
    log_has("auto", harness_folder(), "Create:1",
            "no products of matrices by hipblaslt: hipblasLtCreate returned ");
}

/* As rank threads on one GPU. Asked for by name, a library is used there. */
static void auto_keeps_away_where_rank_threads_share_a_gpu(void **state)
{
    const struct fakeblas_seen *now = toolkit_seen(&toolkit_libraries[1]);
    char *level = strdup(getenv("IRIS_LOG_LEVEL"));
    char *backend = strdup(getenv("IRIS_BACKEND"));
    struct harness_capture capture;
    int before = now->products;

    setenv("IRIS_LOG_LEVEL", "debug", 1);
    toolkit_use("auto", harness_folder());
    harness_run(2, small_body, NULL); /* each has a GPU of its own */
    assert_int_equal(now->products, before + 2);
    setenv("IRIS_BACKEND", "sim", 1);
    setenv("IRIS_SIM_DEVICE", "gpu", 1);
    harness_capture(&capture);
    harness_run(2, small_body, NULL);
    harness_captured(&capture);
    assert_int_equal(now->products, before + 2);
    assert_non_null(strstr(capture.text, "other rank threads use this GPU"));
    free(capture.text);
    harness_run(1, small_body, NULL); /* has it to itself */
    assert_int_equal(now->products, before + 3);
    toolkit_use("hipblaslt", harness_folder());
    harness_run(2, small_body, NULL);
    assert_int_equal(now->products, before + 5);
    unsetenv("IRIS_SIM_DEVICE");
    setenv("IRIS_BACKEND", backend, 1);
    setenv("IRIS_LOG_LEVEL", level, 1);
    free(backend);
    free(level);
}

static int TEST_FILE(hip)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_goes_on_without_libraries),
        cmocka_unit_test(auto_takes_the_library_of_the_device),
        cmocka_unit_test(auto_keeps_away_where_rank_threads_share_a_gpu),
        cmocka_unit_test(a_library_that_does_not_open_is_an_error),
    };

    return cmocka_run_group_tests(tests, toolkit_setup, toolkit_teardown);
}
