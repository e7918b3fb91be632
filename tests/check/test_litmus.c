/* SPDX-License-Identifier: MIT
 *
 * The litmus tests on this machine, GPUs too: no round has a forbidden outcome.
 * Prints how many rounds had an allowed one.
 */
#include "config.h"

#include "support/harness.h"

#include "check/litmus_run.h"

#include <string.h>

#define ROUNDS 512

struct litmus_args {
    const int64_t *context;
    uint64_t *words; /* of each round, on the heap of rank 1 */
    uint64_t *starts;
    uint64_t *registers; /* of each round, on the heap of rank 0 */
    int threads;
    int rounds;
    struct litmus_thread thread[LITMUS_THREADS];
};

/* Begins once all threads have come to this round. Nothing else orders the
 * rounds. */
IRIS_DEVICE void litmus_round(iris_dev_t dev, const struct litmus_args *args,
                              const struct litmus_thread *thread, int round)
{
    uint64_t values[LITMUS_REGISTERS] = {LITMUS_ANY, LITMUS_ANY, LITMUS_ANY,
                                         LITMUS_ANY};

    iris_atomic_add(dev, &args->starts[round], (uint64_t)1, 1, RLX, SYS);
    while (iris_atomic_load(dev, &args->starts[round], 1, RLX, SYS) <
           (uint64_t)args->threads) {
    }
    for (int k = 0; k < LITMUS_STEPS; k++) {
        litmus_step(dev, &args->words[(size_t)round * LITMUS_WORDS],
                    &thread->steps[k], values);
    }
    for (int reg = 0; reg < LITMUS_REGISTERS; reg++) {
        if (values[reg] != LITMUS_ANY) {
            iris_store(dev, &args->registers[round * LITMUS_REGISTERS + reg],
                       values[reg], 0);
        }
    }
}

IRIS_KERNEL(litmus_rounds, struct litmus_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (int i = 0; i < args->threads; i++) {
        const struct litmus_thread *thread = &args->thread[i];

        if (thread->rank != dev.rank || thread->workgroup != wg.id ||
            !iris_wg_leader(wg)) {
            continue;
        }
        for (int round = 0; round < args->rounds; round++) {
            litmus_round(dev, args, thread, round);
        }
    }
}

#if !defined(IRIS_I_IMAGE)

static int run_rank(iris_t *iris, void *arg)
{
    const struct litmus_test *test = arg;
    static uint64_t seen[ROUNDS * LITMUS_REGISTERS]; /* rank 0's */
    static uint64_t began[ROUNDS];                   /* rank 1's */
    struct litmus_args args = {.rounds = ROUNDS};
    void *words, *starts, *registers;
    int count = 0;

    CHECK_OK(
        iris_calloc(iris, ROUNDS * LITMUS_WORDS, sizeof(uint64_t), &words));
    CHECK_OK(iris_calloc(iris, ROUNDS, sizeof(uint64_t), &starts));
    CHECK_OK(iris_calloc(iris, ROUNDS * LITMUS_REGISTERS, sizeof(uint64_t),
                         &registers));
    args.context = iris_device_context(iris);
    args.words = words;
    args.starts = starts;
    args.registers = registers;
    args.threads = litmus_threads(test);
    memcpy(args.thread, test->threads, sizeof args.thread);
    CHECK_OK(iris_launch(iris, litmus_rounds, 2, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (iris_rank(iris) == 1) { /* all lanes have played all rounds */
        CHECK_OK(harness_read(iris, began, starts, sizeof began));
        for (int round = 0; round < ROUNDS; round++) {
            CHECK_EQUAL(began[round], (uint64_t)args.threads);
        }
    }
    if (iris_rank(iris) == 0) {
        CHECK_OK(harness_read(iris, seen, registers, sizeof seen));
        for (int round = 0; round < ROUNDS; round++) {
            count += litmus_is_outcome(test, &seen[round * LITMUS_REGISTERS]);
        }
        if (count != 0) {
            print_message("%s: %d of %d rounds\n", test->name, count, ROUNDS);
        }
        CHECK(count == 0 || test->verdict != FORBIDDEN);
    }
    CHECK_OK(iris_free(iris, registers));
    CHECK_OK(iris_free(iris, starts));
    return iris_free(iris, words);
}

static TEST(no_round_has_a_forbidden_outcome)
{
    for (int i = 0; i < NUM_LITMUS; i++) {
        harness_run(litmus_ranks(&litmus_tests[i]), run_rank,
                    (void *)(uintptr_t)&litmus_tests[i]);
    }
}

TEST_GROUP(rank);
#endif
