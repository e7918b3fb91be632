/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=race: bugs are found at their lines, and named; the same programs
 * without the bug are silent.
 */
#include "config.h"

#include "support/harness.h"
#ifndef IRIS_I_IMAGE /* the checker is the simulation's: no kernels for GPUs */
#include "check/bugs_collectives.h"
#include "check/bugs_common.h"
#include "check/bugs_epochs.h"
#include "check/bugs_flags.h"
#include "check/bugs_hosts.h"
#include "check/bugs_order.h"
#include "check/bugs_places.h"
#include "check/bugs_published.h"
#include "check/bugs_rma.h"
#include "check/bugs_rma_memory.h"
#include "check/bugs_rma_rounds.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if IRIS_ON_CPU /* the checker is the simulation's */

#define NUM_BUGS ((int)(__stop_iris_bugs - __start_iris_bugs))
static const struct bug *const *const bugs = __start_iris_bugs;

IRIS_KERNEL(show_bug, struct bug_args)
{
    bugs[args->bug]->kernel(args, wg, iris_dev_init(args->context), args->wrong,
                            args->data, args->flags);
}

static int run_bug(iris_t *iris, void *arg)
{
    struct bug_args args = *(const struct bug_args *)arg;
    const struct bug *bug = bugs[args.bug];
    iris_group_t *all, *alone;
    void *data, *flags;
    int ranks[64];

    for (int i = 0; i < iris_num_ranks(iris); i++) {
        ranks[i] = i;
    }
    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, 1, 1024, &data));
    CHECK_OK(iris_name(iris, data, "inbox"));
    CHECK_OK(iris_calloc(iris, 1, 128, &flags));
    CHECK_OK(iris_group_create(iris, ranks, iris_num_ranks(iris), &all));
    CHECK_OK(iris_group_create(iris, &ranks[iris_rank(iris)], 1, &alone));
    CHECK_OK(iris_ccl_device_create(iris, NULL, 1, 0, &args.ccl));
    args.data = data;
    args.flags = flags;
    args.all = iris_group_device(iris, all);
    args.alone = iris_group_device(iris, alone);
    if (bug->host != NULL) {
        return bug->host(iris, &args, data);
    }
    CHECK_OK(
        iris_launch(iris, show_bug, bug->grid, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* ---- What is found ---- */

static const char *suppressions; /* path of a file, or NULL */
static int64_t seed = -1;        /* -1: the run is anyone */

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

/* The exit status of the command, whose output is found. */
static int read_command(const char *command)
{
    FILE *pipe = popen(command, "r");
    size_t got;

    assert_non_null(pipe);
    got = fread(found, 1, sizeof found - 1, pipe);
    found[got] = '\0';
    return pclose(pipe);
}

static iris_status_t run_as(const char *spawn, int bug, int wrong,
                            int num_ranks)
{
    struct bug_args args = {.bug = bug, .wrong = wrong};
    char prefix[64], path[96];
    struct iris_config config = harness_sim_config("race");
    iris_status_t status;

    for (int i = 0; i < 3; i++) {
        atomic_store(&bug_lines[i], 0);
    }
    snprintf(prefix, sizeof prefix, "/tmp/iris-test-race-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s_races.json", prefix);
    config.spawn = spawn;
    config.report = prefix;
    config.suppressions = suppressions;
    config.seed = seed;
    status = iris_spawn(&config, num_ranks, run_bug, &args);
    read_found(path);
    return status;
}

static int has(const char *text)
{
    return strstr(found, text) != NULL;
}

/* Whether the report has each line that the bug noted, in any of its files. */
static int has_line(int line)
{
    static const char *const files[] = {
        "flags",      "hosts",      "order",       "places", "published", "rma",
        "rma_memory", "rma_rounds", "collectives", "common", "epochs",    NULL};
    char text[64];
    int is_there = line == 0;

    snprintf(text, sizeof text, "bug.h:%d\"", line);
    is_there |= has(text);
    for (int i = 0; files[i] != NULL; i++) {
        snprintf(text, sizeof text, "bugs_%s.h:%d\"", files[i], line);
        is_there |= has(text);
        snprintf(text, sizeof text, "bugs_%s.h:%d:", files[i], line);
        is_there |= has(text);
    }
    return is_there;
}

static int is_found(int bug, int ranks)
{
    iris_status_t status = run_as("threads", bug, 1, ranks);
    char text[64];
    int right = status == IRIS_ERR_RACE;

    right &= atomic_load(&bug_lines[0]) + atomic_load(&bug_lines[1]) != 0;
    for (int i = 0; i < 3; i++) {
        right &= has_line(atomic_load(&bug_lines[i]));
    }
    right &= !has("\"line\": \"\"");
    snprintf(text, sizeof text, "\"missing\": \"%s\"",
             bugs[bug]->missing == NULL ? "" : bugs[bug]->missing);
    right &= bugs[bug]->missing == NULL || has(text);
    right &= bugs[bug]->advice == NULL || has(bugs[bug]->advice);
    if (!right) {
        print_message("%s, %d ranks: %s; lines %d, %d, %d in:\n%s\n",
                      bugs[bug]->name, ranks, iris_last_error(),
                      atomic_load(&bug_lines[0]), atomic_load(&bug_lines[1]),
                      atomic_load(&bug_lines[2]), found);
    }
    return right;
}

/* The long form runs all at each number of ranks. */
static int last_ranks(int bug)
{
    return getenv("IRIS_TEST_LONG") != NULL ? 4 : bugs[bug]->ranks;
}

static TEST(a_planted_bug_is_found_at_its_lines)
{
    int num_missed = 0;

    for (int bug = 0; bug < NUM_BUGS; bug++) {
        for (int ranks = bugs[bug]->ranks; ranks <= last_ranks(bug); ranks++) {
            num_missed += !is_found(bug, ranks);
        }
    }
    print_message("%d bugs\n", NUM_BUGS);
    assert_int_equal(num_missed, 0);
}

static TEST(the_correct_twin_is_silent)
{
    int num_loud = 0;

    for (int bug = 0; bug < NUM_BUGS; bug++) {
        for (int ranks = bugs[bug]->ranks; ranks <= last_ranks(bug); ranks++) {
            iris_status_t status = run_as("threads", bug, 0, ranks);

            if (status != IRIS_OK) {
                print_message("twin of %s, %d ranks: %s\n%s\n", bugs[bug]->name,
                              ranks, iris_last_error(), found);
            }
            num_loud += status != IRIS_OK;
        }
    }
    assert_int_equal(num_loud, 0);
}

static int number_of(const char *name)
{
    int bug = 0;

    while (strcmp(bugs[bug]->name, name) != 0) {
        bug++;
    }
    return bug;
}

/* Lines are noted in memory that processes do not share. */
static TEST(ranks_may_be_processes)
{
    int bug = number_of("release_of_agent");

    assert_int_equal(run_as("processes", bug, 0, 3), IRIS_OK);
    assert_int_equal(run_as("processes", bug, 1, 3), IRIS_ERR_RACE);
    assert_true(has("bugs_order.h:"));
    assert_true(has("\"missing\": \"wider scope\""));
}

/* One workgroup runs at a time, as the seed says. The long form has each twin under
 * 20 seeds; looking up the lines of a bug takes longer than both runs. */
static TEST(seeds_find_bugs_and_leave_twins_alone)
{
    int is_long = getenv("IRIS_TEST_LONG") != NULL, num_wrong = 0;
    int last = is_long ? 20 : 1;

    for (int bug = 0; bug < NUM_BUGS; bug += is_long ? 1 : 10) {
        seed = 1 + bug % last;
        num_wrong += !is_found(bug, bugs[bug]->ranks);
        for (seed = 1; seed <= last; seed++) {
            iris_status_t status = run_as("threads", bug, 0, bugs[bug]->ranks);

            if (status != IRIS_OK) {
                print_message("twin of %s, seed %d: %s\n%s\n", bugs[bug]->name,
                              (int)seed, iris_last_error(), found);
            }
            num_wrong += status != IRIS_OK;
        }
    }
    seed = -1;
    assert_int_equal(num_wrong, 0);
}

/* Which of the two accesses comes first depends on the run. */
static TEST(a_seed_finds_the_same_race_each_time)
{
    static char first[sizeof found];
    int runs = getenv("IRIS_TEST_LONG") != NULL ? 100 : 3;

    seed = 5;
    for (int run = 0; run < runs; run++) {
        assert_int_equal(run_as("threads", number_of("puts_overlap"), 1, 3),
                         IRIS_ERR_RACE);
        if (run == 0) {
            strcpy(first, found);
        }
        assert_string_equal(found, first);
    }
    seed = -1;
}

static iris_status_t run_with(const char *text)
{
    char path[96];
    FILE *file;
    iris_status_t status;

    snprintf(path, sizeof path, "%s/suppressions", harness_folder());
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    suppressions = path;
    status = run_as("threads", number_of("release_missing"), 1, 2);
    suppressions = NULL;
    unlink(path);
    return status;
}

static TEST(a_race_that_a_file_names_is_no_error)
{
    assert_int_equal(
        run_with("# known\n  race:load by rank 1, kernel show_*\n"), IRIS_OK);
    assert_true(has("\"suppressed\": true"));
    assert_int_equal(run_with("race:\"inbox\"\n"), IRIS_OK);
    assert_int_equal(run_with("race:kernel hide_\n\n"), IRIS_ERR_RACE);
    assert_true(has("\"suppressed\": false"));
}

static TEST(a_file_with_other_lines_is_refused)
{
    struct iris_config config = harness_sim_config("race");
    struct bug_args args = {.bug = 0};

    config.suppressions = "/nowhere/suppressions";
    assert_int_equal(iris_spawn(&config, 2, run_bug, &args), IRIS_ERR_CONFIG);
    config.suppressions = "/proc/self/stat";
    assert_int_equal(iris_spawn(&config, 2, run_bug, &args), IRIS_ERR_CONFIG);
}

/* The exit status of iris trace order for a trace of the program. */
static int judge_trace(int bug, int wrong)
{
    struct bug_args args = {.bug = bug, .wrong = wrong};
    struct iris_config config = harness_sim_config(NULL);
    char path[96], command[256];
    int status;

    snprintf(path, sizeof path, "%s/order.json", harness_folder());
    config.trace = path;
    assert_int_equal(iris_spawn(&config, bugs[bug]->ranks, run_bug, &args),
                     IRIS_OK);
    snprintf(command, sizeof command, "./iris trace order %s 2>&1", path);
    status = read_command(command);
    unlink(path);
    return status;
}

/* A trace lacks orders and scopes, fences and what kernels do not do. Which bugs
 * it shows depends on how the ranks run: some 25 at a time, 6 in one run beside
 * others. */
static int count_shown_bugs(int most, int rounds)
{
    int *is_shown = calloc((unsigned)NUM_BUGS, sizeof *is_shown);
    int count = 0;

    assert_non_null(is_shown);
    for (int i = 0; i < rounds * NUM_BUGS && count < most; i++) {
        int bug = i % NUM_BUGS;

        if (bugs[bug]->kernel != NULL && !is_shown[bug]) {
            is_shown[bug] = judge_trace(bug, 1) != 0; /* others may fail */
            count += is_shown[bug];
        }
    }
    free(is_shown);
    return count;
}

static TEST(a_trace_shows_some_bugs_and_no_twin)
{
    int num_loud = 0;

    for (int bug = 0; bug < NUM_BUGS; bug++) {
        int is_loud = judge_trace(bug, 0) != 0;

        if (is_loud) {
            print_message("twin of %s:\n%s\n", bugs[bug]->name, found);
        }
        num_loud += is_loud;
    }
    assert_int_equal(num_loud, 0);
    assert_int_equal(count_shown_bugs(10, 5), 10);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit, slow);
#endif /* IRIS_ON_CPU */
