/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=weak: litmus tests end as the memory model says, under many seeds;
 * a seed and a recorded schedule give the same run again.
 */
#include "config.h"

#include "support/harness.h"

#include "check/litmus_run.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if IRIS_ON_CPU && !defined(IRIS_I_IMAGE) /* the mode is the simulation's */

#define MAX_ROUNDS 512

struct litmus_args {
    const int64_t *context;
    uint64_t *words; /* of each round */
    uint64_t *starts;
    int test;
    int rounds;
};

static uint64_t registers[MAX_ROUNDS][LITMUS_REGISTERS];

/* Nothing orders the rounds: the count of those who have come is relaxed. */
IRIS_KERNEL(run_litmus, struct litmus_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const struct litmus_test *test = &litmus_tests[args->test];
    uint64_t count = (uint64_t)litmus_threads(test);

    for (uint64_t i = 0; i < count; i++) {
        const struct litmus_thread *thread = &test->threads[i];

        if (thread->rank != dev.rank || thread->workgroup != wg.id) {
            continue;
        }
        for (int round = 0; round < args->rounds; round++) {
            uint64_t *words = &args->words[(size_t)round * LITMUS_WORDS];

            iris_atomic_add(dev, &args->starts[round], 1, 1, IRIS_RELAXED, SYS);
            while (iris_atomic_load(dev, &args->starts[round], 1, IRIS_RELAXED,
                                    SYS) < count) {
            }
            for (int k = 0; k < LITMUS_STEPS; k++) {
                litmus_step(dev, words, &thread->steps[k], registers[round]);
            }
        }
    }
}

static int run_rank(iris_t *iris, void *arg)
{
    struct litmus_args args = *(const struct litmus_args *)arg;
    void *words, *starts;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, (size_t)args.rounds * LITMUS_WORDS,
                         sizeof(uint64_t), &words));
    CHECK_OK(iris_calloc(iris, (size_t)args.rounds, sizeof(uint64_t), &starts));
    args.words = words;
    args.starts = starts;
    CHECK_OK(iris_launch(iris, run_litmus, 2, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static struct iris_config settings(int64_t seed)
{
    struct iris_config config = harness_sim_config("weak");

    config.seed = seed;
    return config;
}

/* How often the outcome was seen in so many rounds. */
static int count_outcome(int number, int rounds,
                         const struct iris_config *config)
{
    const struct litmus_test *test = &litmus_tests[number];
    struct litmus_args args = {.test = number, .rounds = rounds};
    int count = 0;

    memset(registers, 0, sizeof registers);
    assert_int_equal(iris_spawn(config, litmus_ranks(test), run_rank, &args),
                     IRIS_OK);
    for (int i = 0; i < rounds; i++) {
        count += litmus_is_outcome(test, registers[i]);
    }
    return count;
}

/* Each round is a run of its own: nothing orders it with the others. */
static TEST(an_outcome_is_seen_if_it_is_allowed)
{
    int is_long = getenv("IRIS_TEST_LONG") != NULL;
    int rounds = is_long ? MAX_ROUNDS : 100, seeds = is_long ? 20 : 4;

    for (int i = 0; i < NUM_LITMUS; i++) {
        const struct litmus_test *test = &litmus_tests[i];
        int count = 0, seed = 1;

        for (; seed <= seeds && (count == 0 || is_long); seed++) {
            struct iris_config config = settings(seed);

            count += count_outcome(i, rounds, &config);
        }
        if (is_long || (count != 0) != (test->verdict == ALLOWED)) {
            print_message("litmus: %s, %s: %d of %d\n", test->name, test->what,
                          count, (seed - 1) * rounds);
        }
        assert_int_equal(count != 0, test->verdict == ALLOWED);
    }
}

/* ---- The table of docs/lab/litmus.md ---- */

#define TABLE_SEEDS 20
#define TABLE_ROUNDS 100 /* under each seed */
#define NATIVE_RUNS 20   /* of MAX_ROUNDS each */

/* What a row says of the test and the model. */
static void describe_test(int number, char *text, size_t bytes)
{
    const struct litmus_test *test = &litmus_tests[number];
    char outcome[96] = "";

    for (int reg = 0; reg < LITMUS_REGISTERS; reg++) {
        size_t at = strlen(outcome);

        if (test->outcome[reg] != LITMUS_ANY) {
            snprintf(outcome + at, sizeof outcome - at, "%sr%d = %llu",
                     at == 0 ? "" : ", ", reg,
                     (unsigned long long)test->outcome[reg]);
        }
    }
    snprintf(text, bytes, "| %s | %s | %s | %s |", test->name, test->what,
             outcome, test->verdict == FORBIDDEN ? "forbidden" : "allowed");
}

/* The same, and what it says of the weak mode, which is the same on each
 * machine. */
static void describe_weak(int number, char *text, size_t bytes)
{
    size_t at;
    int seen = 0;

    for (int seed = 1; seed <= TABLE_SEEDS; seed++) {
        struct iris_config config = settings(seed);

        seen += count_outcome(number, TABLE_ROUNDS, &config) != 0;
    }
    describe_test(number, text, bytes);
    at = strlen(text);
    snprintf(text + at, bytes - at, " %d of %d seeds |", seen, TABLE_SEEDS);
}

static void print_table(void)
{
    char row[512];

    printf("| Test | Program | Outcome | Model | Weak mode | CPU | GPU "
           "| ISA emulator |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < NUM_LITMUS; i++) {
        struct iris_config config = settings(-1);
        int seen = 0;

        config.check = "none";
        for (int run = 0; run < NATIVE_RUNS; run++) {
            seen += count_outcome(i, MAX_ROUNDS, &config);
        }
        describe_weak(i, row, sizeof row);
        printf("%s %d of %d rounds | not measured | not measured |\n", row,
               seen, NATIVE_RUNS * MAX_ROUNDS);
        fflush(stdout);
    }
}

/* ---- Again ---- */

static char *path_of(const char *name, char path[96])
{
    snprintf(path, 96, "%s/%s", harness_folder(), name);
    return path;
}

static char *text_of(const char *path)
{
    char *text = harness_read_file(path);

    assert_non_null(text);
    unlink(path);
    return text;
}

static TEST(a_seed_gives_the_same_run_each_time)
{
    char path[96], *first = NULL;

    for (int run = 0; run < 100; run++) {
        struct iris_config config = settings(7);
        uint64_t before[MAX_ROUNDS][LITMUS_REGISTERS];
        char *text;

        memcpy(before, registers, sizeof before);
        config.schedule = path_of("schedule", path);
        count_outcome(litmus_number("MP+store"), 5, &config);
        text = text_of(path);
        first = first == NULL ? strdup(text) : first;
        assert_string_equal(text, first);
        assert_true(run == 0 || memcmp(before, registers, sizeof before) == 0);
        free(text);
    }
    free(first);
}

/* One rank polls memory of the process, which the schedule does not see. */
static atomic_int went;

IRIS_KERNEL(poll_unseen, struct litmus_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    iris_store(dev, &args->words[dev.rank], 1, dev.rank);
    if (dev.rank == 0) {
        atomic_store(&went, 1);
    }
    while (atomic_load(&went) == 0) {
    }
    iris_store(dev, &args->words[dev.rank], 2, dev.rank);
}

static int run_poll(iris_t *iris, void *arg)
{
    struct litmus_args args = *(const struct litmus_args *)arg;
    void *words;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, 8, sizeof(uint64_t), &words));
    args.words = words;
    CHECK_OK(iris_launch(iris, poll_unseen, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static TEST(a_workgroup_that_makes_no_step_lets_others_run)
{
    for (int seed = 1; seed <= 4; seed++) { /* of both orders */
        struct iris_config config = settings(seed);
        struct litmus_args args = {.test = 0};

        atomic_store(&went, 0);
        assert_int_equal(iris_spawn(&config, 2, run_poll, &args), IRIS_OK);
        assert_int_equal(atomic_load(&went), 1);
    }
}

static TEST(another_seed_gives_another_run)
{
    char path[96], *texts[2];

    for (int i = 0; i < 2; i++) {
        struct iris_config config = settings(i + 1);

        config.schedule = path_of("schedule", path);
        count_outcome(litmus_number("IRIW"), 5, &config);
        texts[i] = text_of(path);
    }
    assert_string_not_equal(strchr(texts[0], '\n'), strchr(texts[1], '\n'));
    free(texts[0]);
    free(texts[1]);
}

static TEST(a_recorded_run_is_made_again)
{
    char path[96], copy[96], *recorded, *replayed;
    struct iris_config config = settings(3);
    int count;

    config.schedule = path_of("schedule", path);
    count = count_outcome(litmus_number("MP+relaxed"), 20, &config);
    assert_int_not_equal(count, 0);
    config.replay = path;
    config.schedule = path_of("again", copy);
    config.seed = 99; /* does not matter */
    assert_int_equal(count_outcome(litmus_number("MP+relaxed"), 20, &config),
                     count);
    recorded = text_of(path);
    replayed = text_of(copy);
    assert_string_equal(strchr(recorded, '\n'), strchr(replayed, '\n'));
    free(recorded);
    free(replayed);
}

/* An empty schedule: nobody reads old values. */
static TEST(without_choices_all_is_new)
{
    char path[96];
    struct iris_config config = settings(1);

    config.replay = "/dev/null";
    config.schedule = path_of("schedule", path);
    assert_int_equal(count_outcome(litmus_number("MP+relaxed"), 50, &config),
                     0);
    unlink(path);
}

static TEST(what_cannot_be_is_refused)
{
    struct iris_config config = settings(1);
    struct litmus_args args = {.rounds = 1};

    config.log_level = "off";
    config.replay = "/nowhere/schedule";
    assert_int_equal(iris_spawn(&config, 2, run_rank, &args), IRIS_ERR_CONFIG);
    config.replay = NULL;
    config.schedule = "/nowhere/schedule";
    assert_int_equal(iris_spawn(&config, 2, run_rank, &args), IRIS_ERR_CONFIG);
    config.schedule = NULL;
    config.spawn = "processes";
    assert_int_equal(iris_spawn(&config, 2, run_rank, &args),
                     IRIS_ERR_UNSUPPORTED);
}

/* ---- The table, again ---- */

/* The short form counts the seeds for some of the tests. */
static TEST(the_page_has_this_table)
{
    const char *folder = getenv("srcdir"); /* make sets it */
    int step = getenv("IRIS_TEST_LONG") != NULL ? 1 : 8, rows = 0;
    char path[512], row[512], *page;

    if (folder == NULL) {
        print_message("left out: srcdir is not set\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/docs/lab/litmus.md", folder);
    page = harness_read_file(path);
    assert_non_null(page);
    for (int i = 0; i < NUM_LITMUS; i++) {
        (i % step == step / 2 ? describe_weak : describe_test)(i, row,
                                                               sizeof row);
        if (strstr(page, row) == NULL) {
            print_message("%s has no row: %s\n", path, row);
        }
        assert_non_null(strstr(page, row));
    }
    for (const char *at = page; (at = strstr(at, " seeds |")) != NULL; at++) {
        rows++;
    }
    assert_int_equal(rows, NUM_LITMUS);
    free(page);
}

/* --table prints the table of docs/lab/litmus.md; scripts/amd-emu has its last column. */
static int TEST_FILE(unit)
{
    if (getenv("IRIS_TEST_TABLE") != NULL &&
        freopen(getenv("IRIS_TEST_TABLE"), "w", stdout) != NULL) {
        harness_cpu_setup(NULL);
        print_table();
        return harness_teardown(NULL);
    }
    return harness_run_file(__FILE__, harness_cpu_setup, harness_teardown);
}
#endif
