/* SPDX-License-Identifier: MIT
 *
 * What tests/check/explore.sh explores: one round of a litmus test.
 *
 * TEST may also be poll, lock, poll+relaxed, lock+relaxed.
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
};

static uint64_t registers[LITMUS_REGISTERS];

enum { POLL = NUM_LITMUS, LOCK };

/* Loops of their own: a message, and two ranks that count under a lock. */
static void loop(iris_dev_t dev, uint64_t *words, int test, iris_sem_t sem)
{
    uint64_t sum;

    if (test == POLL && dev.rank == 0) {
        iris_store(dev, &words[X], 1, 1);
        iris_atomic_store(dev, &words[F], 1, 1, sem, SYS);
    } else if (test == POLL) {
        while (iris_atomic_load(dev, &words[F], 1, ACQ, SYS) == 0) {
        }
        registers[0] = iris_load(dev, &words[X], 1);
    } else {
        while (iris_atomic_cas(dev, &words[F], 0, 1, 1, ACQ, SYS) != 0) {
        }
        sum = iris_load(dev, &words[X], 1) + 1;
        iris_store(dev, &words[X], sum, 1);
        iris_atomic_store(dev, &words[F], 0, 1, sem, SYS);
        registers[dev.rank] = sum;
    }
}

IRIS_KERNEL(explore_loop, struct explore_args)
{
    (void)wg;
    loop(iris_dev_init(args->context), args->words, args->test, args->sem);
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

static int run_rank(iris_t *iris, void *arg)
{
    struct explore_args args = *(const struct explore_args *)arg;
    unsigned grid = args.test >= POLL;
    void *words;

    for (int i = 0;
         args.test < POLL && i < litmus_threads(&litmus_tests[args.test]);
         i++) {
        grid += litmus_tests[args.test].threads[i].rank == iris_rank(iris);
    }
    if (iris_calloc(iris, LITMUS_WORDS, sizeof(uint64_t), &words) != IRIS_OK) {
        return 1;
    }
    args.words = words;
    args.context = iris_device_context(iris);
    return grid == 0 ||
                   (iris_launch(
                        iris, args.test < POLL ? explore_litmus : explore_loop,
                        grid, 64, &args, sizeof args, NULL) == IRIS_OK &&
                    iris_stream_synchronize(iris, NULL) == IRIS_OK)
               ? 0
               : 1;
}

static int run(struct explore_args *args, int64_t seed)
{
    int ranks = args->test < POLL ? litmus_ranks(&litmus_tests[args->test]) : 2;
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
    if (args->test < POLL) {
        return litmus_is_outcome(&litmus_tests[args->test], registers) ? 3 : 0;
    }
    /* The data was not there; one of two additions is lost. */
    return args->test == POLL ? (registers[0] == 0) * 3
                              : (registers[0] == registers[1]) * 3;
}

static int choose(const char *name, struct explore_args *args)
{
    args->test = strncmp(name, "poll", 4) == 0   ? POLL
                 : strncmp(name, "lock", 4) == 0 ? LOCK
                                                 : litmus_number(name);
    args->sem = strstr(name, "relaxed") != NULL ? RLX : REL;
    return args->test < NUM_LITMUS || strncmp(name, "poll", 4) == 0 ||
           strncmp(name, "lock", 4) == 0;
}

int main(int argc, char **argv)
{
    static const char *const verdicts[] = {"forbidden", "allowed", "unseen"};
    int seeds = argc == 3 ? atoi(argv[2]) : 1, status = 0;
    struct explore_args args;

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
