/* SPDX-License-Identifier: MIT
 *
 * What tests/check/run_explore.sh explores: one round of a litmus test.
 *
 * TEST may also be poll, lock, ring, or one of them with +relaxed.
 *
 *     explore TEST         prints the registers; exits with 3 for the outcome
 *     explore TEST SEEDS   prints the registers under each seed
 *     explore              prints name, verdict and number of ranks of each test
 */
#include "litmus_run.h"

#include <iris/iris.h>

#include <stdio.h>
#include <stdlib.h>

struct explore_args {
    const int64_t *context;
    uint64_t *words;
    int test;
    iris_sem_t sem;
    uint64_t round; /* of the ring, from 1 */
};

static uint64_t registers[LITMUS_REGISTERS];

enum { POLL = NUM_LITMUS, LOCK, RING };

/* Loops of their own: a message, and two ranks that count under a lock. And waits:
 * each of three ranks sends its neighbour a message, in each of two kernels. */
static void loop(const struct explore_args *args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *words = args->words;
    uint64_t sum;
    int next;

    if (args->test == POLL && dev.rank == 0) {
        iris_store(dev, &words[X], 1, 1);
        iris_atomic_store(dev, &words[F], 1, 1, args->sem, SYS);
    } else if (args->test == POLL) {
        while (iris_atomic_load(dev, &words[F], 1, ACQ, SYS) == 0) {
        }
        registers[0] = iris_load(dev, &words[X], 1);
    } else if (args->test == RING) {
        next = (dev.rank + 1) % 3;
        iris_store(dev, &words[X], args->round, next);
        iris_atomic_store(dev, &words[F], args->round, next, args->sem, SYS);
        iris_wait_until(dev, &words[F], IRIS_CMP_EQ, args->round);
        registers[dev.rank] += iris_load(dev, &words[X], dev.rank);
    } else {
        while (iris_atomic_cas(dev, &words[F], 0, 1, 1, ACQ, SYS) != 0) {
        }
        sum = iris_load(dev, &words[X], 1) + 1;
        iris_store(dev, &words[X], sum, 1);
        iris_atomic_store(dev, &words[F], 0, 1, args->sem, SYS);
        registers[dev.rank] = sum;
    }
}

IRIS_KERNEL(explore_loop, struct explore_args)
{
    (void)wg;
    loop(args);
}

IRIS_KERNEL(explore_litmus, struct explore_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const struct litmus_test *test = &litmus_tests[args->test];

    for (int i = 0; i < litmus_threads(test); i++) {
        const struct litmus_thread *thread = &test->threads[i];

        for (int k = 0; k < LITMUS_STEPS && thread->rank == dev.rank &&
                        thread->workgroup == wg.id;
             k++) {
            litmus_step(dev, args->words, &thread->steps[k], registers);
        }
    }
}

static unsigned grid_of(iris_t *iris, int number)
{
    unsigned grid = number >= POLL;

    for (int i = 0; number < POLL && i < litmus_threads(&litmus_tests[number]);
         i++) {
        grid += litmus_tests[number].threads[i].rank == iris_rank(iris);
    }
    return grid;
}

/* The barrier waits for the rank's kernel, and for all ranks. */
static iris_status_t launch(iris_t *iris, const struct explore_args *args)
{
    unsigned grid = grid_of(iris, args->test);
    iris_status_t status = IRIS_OK;

    if (grid != 0) {
        status =
            iris_launch(iris, args->test < POLL ? explore_litmus : explore_loop,
                        grid, 64, args, sizeof *args, NULL);
    }
    return status != IRIS_OK ? status : iris_barrier(iris, NULL, NULL);
}

static int run_rank(iris_t *iris, void *arg)
{
    struct explore_args args = *(const struct explore_args *)arg;
    iris_status_t status;
    void *words;

    if (iris_calloc(iris, LITMUS_WORDS, sizeof(uint64_t), &words) != IRIS_OK) {
        return 1;
    }
    args.words = words;
    args.context = iris_device_context(iris);
    args.round = 1;
    status = launch(iris, &args);
    if (status == IRIS_OK && args.test == RING) {
        args.round = 2;
        status = launch(iris, &args);
    }
    return status != IRIS_OK;
}

/* The data was not there; one of two additions is lost; a message was old. */
static int is_wrong(int number)
{
    return number == POLL   ? registers[0] == 0
           : number == LOCK ? registers[0] == registers[1]
                            : registers[0] + registers[1] + registers[2] != 9;
}

static int run(struct explore_args *args, int64_t seed)
{
    int ranks = args->test < POLL    ? litmus_ranks(&litmus_tests[args->test])
                : args->test == RING ? 3
                                     : 2;
    struct iris_config config;

    iris_config_init(&config);
    if (seed > 0) {
        config.check = "weak";
        config.seed = seed;
    }
    memset(registers, 0, sizeof registers);
    if (iris_spawn(&config, ranks, run_rank, args) != IRIS_OK) {
        fprintf(stderr, "%s\n", iris_last_error());
        return 4;
    }
    printf("%llu %llu %llu %llu\n", (unsigned long long)registers[0],
           (unsigned long long)registers[1], (unsigned long long)registers[2],
           (unsigned long long)registers[3]);
    return (args->test < POLL
                ? litmus_is_outcome(&litmus_tests[args->test], registers)
                : is_wrong(args->test)) *
           3;
}

/* False: there is no such test. */
static int choose(const char *name, struct explore_args *args)
{
    args->sem = strstr(name, "relaxed") != NULL ? RLX : REL;
    args->test = strncmp(name, "poll", 4) == 0   ? POLL
                 : strncmp(name, "lock", 4) == 0 ? LOCK
                 : strncmp(name, "ring", 4) == 0 ? RING
                                                 : litmus_number(name);
    return args->test != NUM_LITMUS || strncmp(name, "poll", 4) == 0;
}

int main(int argc, char **argv)
{
    static const char *const verdicts[] = {"forbidden", "allowed", "unseen"};
    int seeds = argc == 3 ? atoi(argv[2]) : 1, status = 0;
    struct explore_args args = {.round = 1};

    if (argc == 1) {
        for (int i = 0; i < NUM_LITMUS; i++) {
            printf("%s|%s\n", litmus_tests[i].name,
                   verdicts[litmus_tests[i].verdict]);
        }
        return 0;
    }
    if (!choose(argv[1], &args)) {
        return 4;
    }
    for (int seed = 1; seed <= seeds && status != 4; seed++) {
        status = run(&args, argc == 3 ? seed : 0);
    }
    return status;
}
