/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=race: bugs are found at their lines, and named; the same programs
 * without the bug are silent.
 */
/* gcc makes one call of equal calls of branches, which then has one line. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-crossjumping", "no-tree-tail-merge")
#endif

#include "config.h"

#include "support/harness.h"
#ifndef IRIS_I_IMAGE /* the checker is the simulation's: no kernels for GPUs */
#include "check/bugs.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if IRIS_ON_CPU /* the checker is the simulation's */

static int launch(iris_t *iris, struct bug_args *args, int step,
                  iris_stream_t *stream)
{
    unsigned grid = args->bug == NARROW_WORKGROUPS ? 2 : 1;

    args->step = step;
    CHECK_OK(iris_launch(iris, show_bug, grid, 64, args, sizeof *args, stream));
    return 0;
}

/* Rank 0's kernel on a stream of its own, then a barrier, then rank 1's. */
static int run_barrier(iris_t *iris, struct bug_args *args)
{
    iris_stream_t *stream;
    iris_group_t *group, *all;
    int ranks[64], alone;

    for (int i = 0; i < iris_num_ranks(iris); i++) {
        ranks[i] = i;
    }
    alone = iris_rank(iris);
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_group_create(iris, &alone, 1, &group));
    CHECK_OK(iris_group_create(iris, ranks, iris_num_ranks(iris), &all));
    CHECK_EQUAL(launch(iris, args, 0, stream), 0);
    if (args->bug == WRONG_BARRIER) {
        CHECK_OK(iris_barrier(iris, stream, args->wrong ? group : all));
    } else {
        CHECK_OK(iris_barrier(iris, args->wrong ? NULL : stream, NULL));
    }
    CHECK_EQUAL(launch(iris, args, 1, stream), 0);
    CHECK_OK(iris_stream_synchronize(iris, stream));
    iris_stream_destroy(iris, stream);
    return 0;
}

static int run_free(iris_t *iris, struct bug_args *args)
{
    CHECK_EQUAL(launch(iris, args, 0, NULL), 0);
    if (!args->wrong) {
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    CHECK_OK(iris_free(iris, args->data));
    return 0;
}

/* A copy of rank 1's array on one stream, beside a kernel on another. */
static int run_copy(iris_t *iris, struct bug_args *args)
{
    static int32_t out[256];
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    if (iris_rank(iris) == 1 && args->bug == UNWAITED_COPY) {
        CHECK_OK(iris_memcpy(iris, out, args->data, sizeof out, stream));
    } else if (iris_rank(iris) == 1) {
        CHECK_OK(iris_put_on_stream(iris, args->data, &args->data[64], 64, 1,
                                    stream));
    }
    if (!args->wrong) {
        CHECK_OK(iris_stream_synchronize(iris, stream));
    }
    CHECK_EQUAL(launch(iris, args, args->bug == UNWAITED_COPY ? 2 : 1, NULL),
                0);
    iris_stream_destroy(iris, stream);
    return 0;
}

static int run_bug(iris_t *iris, void *arg)
{
    struct bug_args args = *(const struct bug_args *)arg;
    void *data, *flags;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, 1, 1024, &data));
    CHECK_OK(iris_name(iris, data, "inbox"));
    CHECK_OK(iris_calloc(iris, 1, 64, &flags));
    args.data = data;
    args.flags = flags;
    switch (args.bug) {
    case WRONG_BARRIER:
    case WRONG_STREAM:
        return run_barrier(iris, &args);
    case USE_AFTER_FREE:
        return run_free(iris, &args);
    case UNWAITED_COPY:
    case UNWAITED_PUT:
        return run_copy(iris, &args);
    default:
        CHECK_EQUAL(launch(iris, &args, 0, NULL), 0);
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        return 0;
    }
}

/* ---- What is found ---- */

/* What is said to be missing; NULL: of no one kind. */
static const char *const missing[NUM_BUGS] = {
    [MISSING_RELEASE] = "release",
    [NARROW_RELEASE] = "wider scope",
    [MISSING_ACQUIRE] = "acquire",
    [NARROW_ACQUIRE] = "wider scope",
    [MISSING_RELEASE_FENCE] = "release",
    [NARROW_RELEASE_FENCE] = "wider scope",
    [MISSING_ACQUIRE_FENCE] = "acquire",
    [PLAIN_FLAG] = "atomic flag",
    [OVERLAP] = "order of writers",
    [MIXED_ATOMIC] = "atomic access",
    [MIXED_LOAD] = "atomic access",
    [NARROW_COUNTER] = "wider scope",
    [TWO_SIZES] = "one size",
    [NARROW_WORKGROUPS] = "wider scope",
    [USE_AFTER_FREE] = "life",
    [UNWAITED_COPY] = "stream order",
    [UNWAITED_PUT] = "stream order",
};

static char found[65536]; /* the file of races */

static void read_found(char *path)
{
    FILE *file = fopen(path, "r");
    size_t got;

    assert_non_null(file);
    got = fread(found, 1, sizeof found - 1, file);
    found[got] = '\0';
    fclose(file);
    assert_int_equal(unlink(path), 0);
    strcpy(strrchr(path, '.'), ".sarif");
    assert_int_equal(unlink(path), 0);
}

static iris_status_t run_as(const char *spawn, enum bug bug, int wrong,
                            int num_ranks)
{
    struct bug_args args = {.bug = bug, .wrong = wrong};
    char prefix[64], path[96];
    struct iris_config config;
    iris_status_t status;

    for (int i = 0; i < 3; i++) {
        atomic_store(&lines[i], 0);
    }
    snprintf(prefix, sizeof prefix, "/tmp/iris-test-race-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s_races.json", prefix);
    iris_config_init(&config);
    config.spawn = spawn;
    config.backend = "sim";
    config.sim_device = "cpu";
    config.heap_bytes = 16 << 20;
    config.heap_bases_files = 0;
    config.check = "race";
    config.report = prefix;
    config.log_level = "off";
    status = iris_spawn(&config, num_ranks, run_bug, &args);
    read_found(path);
    return status;
}

static iris_status_t run(enum bug bug, int wrong, int num_ranks)
{
    return run_as("threads", bug, wrong, num_ranks);
}

/* Whether the file has the text; says so if not. */
static int has(enum bug bug, const char *text)
{
    if (strstr(found, text) != NULL) {
        return 1;
    }
    print_message("bug %d: no %s in:\n%s\n", (int)bug, text, found);
    return 0;
}

static int is_found(enum bug bug)
{
    iris_status_t status = run(bug, 1, 2);
    char text[64];
    int right = 1;

    if (status != IRIS_ERR_RACE) {
        print_message("bug %d: %s\n", (int)bug, iris_last_error());
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "bugs.h:%d", atomic_load(&lines[i]));
        right &= atomic_load(&lines[i]) == 0 || has(bug, text);
    }
    snprintf(text, sizeof text, "\"missing\": \"%s\"",
             missing[bug] == NULL ? "" : missing[bug]);
    return right && (missing[bug] == NULL || has(bug, text));
}

static void a_planted_bug_is_found_at_its_lines(void **state)
{
    int num_found = 0;

    (void)state;
    for (int bug = 0; bug < NUM_BUGS; bug++) {
        num_found += is_found((enum bug)bug);
    }
    assert_int_equal(num_found, NUM_BUGS);
}

static void the_correct_twin_is_silent(void **state)
{
    (void)state;
    for (int bug = 0; bug < NUM_BUGS; bug++) {
        for (int ranks = 2; ranks <= 4; ranks++) {
            iris_status_t status = run((enum bug)bug, 0, ranks);

            if (status != IRIS_OK) {
                print_message("twin %d, %d ranks: %s\n%s\n", bug, ranks,
                              iris_last_error(), found);
            }
            assert_int_equal(status, IRIS_OK);
        }
    }
}

/* Lines are noted in memory that processes do not share. */
static void ranks_may_be_processes(void **state)
{
    (void)state;
    assert_int_equal(run_as("processes", NARROW_RELEASE, 0, 3), IRIS_OK);
    assert_int_equal(run_as("processes", NARROW_RELEASE, 1, 3), IRIS_ERR_RACE);
    assert_true(has(NARROW_RELEASE, "bugs.h:"));
    assert_true(has(NARROW_RELEASE, "\"missing\": \"wider scope\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planted_bug_is_found_at_its_lines),
        cmocka_unit_test(the_correct_twin_is_silent),
        cmocka_unit_test(ranks_may_be_processes),
    };

    return cmocka_run_group_tests(tests, harness_cpu_setup, harness_teardown);
}
#endif /* IRIS_ON_CPU */
