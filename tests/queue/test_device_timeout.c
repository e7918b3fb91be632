/* SPDX-License-Identifier: MIT
 *
 * Waits inside kernels that take longer than IRIS_DEVICE_TIMEOUT_MS: the kernel
 * ends, the host hears what it waited for, and the context goes on.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_MS "200"
#define WORDS 5

/* What a kernel waits for. */
enum variant {
    WAIT_ONE,
    WAIT_SIGNED,
    WAIT_ALL,
    WAIT_ANY,
    WAIT_SOME,
};

/* One on each rank's heap. */
struct board {
    uint64_t words[WORDS];
    int32_t word;
    int32_t on_cpu;
    uint64_t mark;
};

struct timeout_args {
    const int64_t *context;
    struct board *board;
    int64_t variant;
    uint64_t value;
};

/* The last workgroup waits for what nobody writes. */
IRIS_KERNEL(wait_for_ever, struct timeout_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = args->board;
    size_t indices[WORDS];

    if (!iris_wg_leader(wg) || wg.id != wg.num_wgs - 1) {
        return;
    }
    if (args->variant == WAIT_ONE) {
        (void)iris_wait_until(dev, &board->words[1], IRIS_CMP_GE, args->value);
    } else if (args->variant == WAIT_SIGNED) {
        (void)iris_wait_until(dev, &board->word, IRIS_CMP_LT,
                              (int32_t)args->value);
    } else if (args->variant == WAIT_ALL) {
        iris_wait_until_all(dev, board->words, WORDS, NULL, IRIS_CMP_EQ,
                            args->value);
    } else if (args->variant == WAIT_ANY) {
        (void)iris_wait_until_any(dev, board->words, WORDS, NULL, IRIS_CMP_EQ,
                                  args->value);
    } else {
        (void)iris_wait_until_some(dev, board->words, WORDS, NULL, IRIS_CMP_EQ,
                                   args->value, indices);
    }
    board->mark = 1; /* nobody comes here */
}

IRIS_KERNEL(mark_board, struct timeout_args)
{
    if (iris_wg_leader(wg) && wg.id == 0) {
        args->board->mark = args->value;
        args->board->on_cpu = IRIS_ON_CPU;
    }
}

/* A board of known words, through calls that work for any device. */
static int make_board(iris_t *iris, struct board **board_p)
{
    struct board board = {.words = {9, 3, 9, 9, 9}, .word = -5};

    CHECK_OK(iris_calloc(iris, 1, sizeof board, (void **)board_p));
    CHECK_OK(iris_memcpy(iris, *board_p, &board, sizeof board, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* The stream has no error left and runs kernels. *board_p is what they see. */
static int check_usable(iris_t *iris, struct timeout_args args,
                        struct board *board_p)
{
    CHECK_OK(iris_memcpy(iris, board_p, args.board, sizeof *board_p, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_EQUAL(board_p->mark, 0);
    args.value = 42;
    CHECK_OK(iris_launch(iris, mark_board, 3, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_memcpy(iris, board_p, args.board, sizeof *board_p, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_EQUAL(board_p->mark, 42);
    CHECK_OK(
        iris_memset(iris, &args.board->mark, 0, sizeof board_p->mark, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* The message has what a user needs; `seen` is the value that was there. */
static int check_message(iris_t *iris, const void *word, const char *goal,
                         int seen)
{
    const char *base =
        (const char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)];
    char text[64];

    snprintf(text, sizeof text, "rank %d", iris_rank(iris));
    CHECK_MESSAGE(text);
    CHECK_MESSAGE("(IRIS_DEVICE_TIMEOUT_MS)");
    snprintf(text, sizeof text, "offset %zu",
             (size_t)((const char *)word - base));
    CHECK_MESSAGE(text);
    CHECK_MESSAGE("workgroup 1");
    CHECK_MESSAGE(goal);
    snprintf(text, sizeof text, "last saw %d", seen);
    CHECK_MESSAGE(text);
    return 0;
}

static RANK_TEST(every_kind_of_wait_ends_and_says_what_it_waited_for, 1, 2)
{
    static const char *const goals[] = {"to be >= 77", "to be < -1000",
                                        "to be == 77", "to be == 77",
                                        "to be == 77"};
    static const int last[] = {3, -5, 9, 9, 9};
    struct timeout_args args = {.context = iris_device_context(iris)};
    struct board seen;

    CHECK_EQUAL(make_board(iris, &args.board), 0);
    CHECK_EQUAL(check_usable(iris, args, &seen), 0);
    for (int variant = WAIT_ONE; variant <= WAIT_SOME; variant++) {
        const void *word = variant == WAIT_ONE      ? &args.board->words[1]
                           : variant == WAIT_SIGNED ? (void *)&args.board->word
                                                    : args.board->words;

        args.variant = variant;
        args.value = variant == WAIT_SIGNED ? (uint64_t)-1000 : 77;
        CHECK_OK(
            iris_launch(iris, wait_for_ever, 2, 64, &args, sizeof args, NULL));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_TIMEOUT);
        CHECK_EQUAL(check_message(iris, word, goals[variant], last[variant]),
                    0);
        if (!harness_on_gpu(iris)) {
            CHECK_MESSAGE("kernel wait_for_ever");
        }
        CHECK_OK(iris_clear_error(iris));
        CHECK_EQUAL(check_usable(iris, args, &seen), 0);
    }
    return 0;
}

/* What comes behind the kernel on its stream is skipped. */
static RANK_TEST(an_error_is_cleared_once_for_all_that_waits_on_a_stream, 1)
{
    struct timeout_args args = {.context = iris_device_context(iris),
                                .value = 77};
    struct timeout_args mark;
    struct board seen;

    CHECK_EQUAL(make_board(iris, &args.board), 0);
    mark = args;
    CHECK_OK(iris_launch(iris, wait_for_ever, 2, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_launch(iris, wait_for_ever, 2, 64, &args, sizeof args, NULL));
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_TIMEOUT);
    CHECK_EQUAL(check_message(iris, &args.board->words[1], "to be >= 77", 3),
                0);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return check_usable(iris, mark, &seen);
}

/* One rank stays away from a device barrier of the group. */
static int miss(iris_t *iris, iris_group_t *group, int away)
{
    char text[80];

    if (iris_rank(iris) != away) {
        snprintf(text, sizeof text,
                 "to be >= 1 and last saw 0: rank %d has not come to it", away);
        CHECK_OK(iris_device_barrier(iris, NULL, group));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE("(IRIS_DEVICE_TIMEOUT_MS)");
        CHECK_MESSAGE("barrier");
        CHECK_MESSAGE(text);
        CHECK_OK(iris_clear_error(iris));
    }
    return iris_barrier(iris, NULL, NULL);
}

/* In the group the ranks have other places than in the job. */
static RANK_TEST(a_device_barrier_that_one_rank_misses_ends_on_the_other, 2, 4)
{
    int num_ranks = iris_num_ranks(iris), ranks[8];
    iris_group_t *group;

    for (int i = 0; i < num_ranks; i++) {
        ranks[i] = (i + 1) % num_ranks;
    }
    CHECK_OK(iris_group_create(iris, ranks, num_ranks, &group));
    CHECK_EQUAL(miss(iris, NULL, 0), 0);
    return miss(iris, group, 1);
}

static int setup(void **state)
{
    setenv("IRIS_DEVICE_TIMEOUT_MS", DEADLINE_MS, 1);
    return harness_setup(state);
}

static int teardown(void **state)
{
    unsetenv("IRIS_DEVICE_TIMEOUT_MS");
    return harness_teardown(state);
}

TEST_GROUP_WITH(setup, teardown, rank, one_gpu);
