/* SPDX-License-Identifier: MIT
 *
 * A BLAS library that never returns, and one that would not for want of address
 * space: the deadline passes, the rank ends, the product is another's.
 */
#include "config.h"

#include "support/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A sanitizer takes more address space than any limit leaves. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

/* A product of this rank alone, of ones. */
static iris_status_t multiply(iris_t *iris, float *first_p)
{
    iris_tensor_t a, b, out;
    iris_status_t status = iris_ones(iris, IRIS_SHAPE(4, 8), NULL, &a);

    if (status == IRIS_OK) {
        status = iris_ones(iris, IRIS_SHAPE(8, 4), NULL, &b);
    }
    if (status == IRIS_OK) {
        status = iris_zeros(iris, IRIS_SHAPE(4, 4), NULL, &out);
    }
    if (status == IRIS_OK) {
        status = iris_matmul_all_reduce(iris, &a, &b, &out, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(iris, NULL);
    }
    return status == IRIS_OK ? harness_read(iris, first_p, out.data, 4)
                             : status;
}

static iris_t *open_alone(const char *library, const char *folder)
{
    struct iris_config config;
    iris_t *iris = NULL;

    iris_config_init(&config);
    config.num_ranks = 1;
    config.rank = 0;
    config.job_id = "stuck";
    config.bootstrap = "env";
    config.blas = library;
    config.module_dir = folder;
    config.timeout_ms = folder == NULL ? -1 : 500;
    return iris_init(&config, &iris) == IRIS_OK ? iris : NULL;
}

/* Under a limit that leaves so many MiB of address space. */
static int be_limited(const char *library, rlim_t left, iris_status_t expected)
{
    iris_t *iris = open_alone(library, NULL);
    struct rlimit limit;
    long pages = 0;
    float first = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    CHECK(iris != NULL && file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    limit.rlim_cur = limit.rlim_max =
        (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (left << 20);
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
    CHECK_STATUS(multiply(iris, &first), expected);
    if (expected == IRIS_OK) {
        CHECK(first == 8);
    } else {
        CHECK_MESSAGE("ulimit -v");
    }
    return iris_finalize(iris) != IRIS_OK;
}

static int be_stuck(void)
{
    iris_t *iris = open_alone("cblas", FAKE_BLAS_FOLDER);
    float first = 0;

    CHECK(iris != NULL);
    CHECK_STATUS(multiply(iris, &first), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE("iris_k_cblas_sgemm still runs");
    (void)iris_finalize(iris); /* returns */
    return 0;
}

/* The call goes on until the test's process ends. */
static TEST(a_library_that_never_returns_meets_the_deadline)
{
    if (!HAVE_CBLAS) {
        skip();
    }
    assert_int_equal(be_stuck(), 0);
}

static void need_limits(void)
{
    if (!HAVE_CBLAS || IS_SANITIZED) {
        skip();
    }
}

static TEST(a_library_without_address_space_is_not_called)
{
    need_limits();
    assert_int_equal(be_limited("cblas", 96, IRIS_ERR_BACKEND), 0);
}

static TEST(without_address_space_another_way_multiplies)
{
    need_limits();
    assert_int_equal(be_limited("auto", 96, IRIS_OK), 0);
}

static TEST(a_library_with_enough_address_space_is_called)
{
    need_limits();
    assert_int_equal(be_limited("cblas", (rlim_t)1 << 16, IRIS_OK), 0);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
