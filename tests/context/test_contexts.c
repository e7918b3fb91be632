/* SPDX-License-Identifier: MIT
 *
 * Several contexts of one rank at once: their kernels, barriers and heaps do
 * not know of each other.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTEXTS 2
#define ROUNDS 50
#define MAX_RANKS 8
#define HANG_MS 20000

/* One on each heap. */
struct board {
    uint64_t words[MAX_RANKS]; /* [sender] */
};

struct contexts_args {
    const int64_t *context;
    struct board *board;
    uint64_t value;
};

/* What `from` sends in a round on one of the contexts. */
static uint64_t mark(int context, int round, int from)
{
    return (uint64_t)(context * 1000000 + round * 100 + from + 1);
}

IRIS_KERNEL(tell_all, struct contexts_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        for (int to = 0; to < dev.num_ranks; to++) {
            iris_store(dev, &args->board->words[dev.rank], args->value, to);
        }
    }
}

/* No heap of one overlaps any of the other, wherever they are mapped. */
static int check_disjoint(const iris_t *one, const iris_t *other)
{
    struct iris_heap_stats stats;
    int ranks = iris_num_ranks(one);

    CHECK_OK(iris_heap_stats(one, &stats));
    for (int i = 0; i < ranks * ranks; i++) {
        int64_t a = iris_heap_bases(one)[i / ranks];
        int64_t b = iris_heap_bases(other)[i % ranks];
        int64_t bytes = (int64_t)stats.heap_bytes;

        if (a == 0 || b == 0) { /* not mapped: on another node */
            CHECK(iris_num_nodes(one) > 1);
            continue;
        }
        CHECK(a + bytes <= b || b + bytes <= a);
    }
    return 0;
}

static int send_value(iris_t *iris, struct board *board, uint64_t value)
{
    struct contexts_args args = {iris_device_context(iris), board, value};

    CHECK_OK(iris_launch(iris, tell_all, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    return 0;
}

static int check_received(iris_t *iris, const struct board *board, int context,
                          int round)
{
    struct board seen;

    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(harness_read(iris, &seen, board, sizeof seen));
    for (int from = 0; from < iris_num_ranks(iris); from++) {
        CHECK_EQUAL(seen.words[from], mark(context, round, from));
    }
    /* Nobody sends again before all have looked. */
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return 0;
}

/* Work on all contexts is under way before that of any is waited for, and not
 * in the order it was begun. */
static int play_round(iris_t **contexts, struct board **boards, int count,
                      int round)
{
    for (int i = 0; i < count; i++) {
        uint64_t value = mark(i, round, iris_rank(contexts[i]));

        CHECK_EQUAL(send_value(contexts[i], boards[i], value), 0);
    }
    for (int i = 0; i < count; i++) {
        int c = (i + round) % count;

        CHECK_EQUAL(check_received(contexts[c], boards[c], c, round), 0);
    }
    return 0;
}

/* *arg is the context to finalize first. */
static int body(iris_t *iris, void *arg)
{
    int first = *(const int *)arg, left = CONTEXTS - 1 - first;
    iris_t *contexts[CONTEXTS] = {NULL};
    struct board *boards[CONTEXTS];

    for (int i = 0; i < CONTEXTS; i++) {
        CHECK_EQUAL(harness_open_again(iris, NULL, &contexts[i]), 0);
        CHECK_OK(iris_calloc(contexts[i], 1, sizeof *boards[i],
                             (void **)&boards[i]));
        CHECK_EQUAL(check_disjoint(iris, contexts[i]), 0);
    }
    CHECK_EQUAL(check_disjoint(contexts[0], contexts[1]), 0);
    CHECK_EQUAL(iris_is_symmetric(contexts[0], boards[1]), 0);
    CHECK_STATUS(iris_free(contexts[0], boards[1]), IRIS_ERR_INVALID);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_EQUAL(play_round(contexts, boards, CONTEXTS, round), 0);
    }
    CHECK_OK(iris_finalize(contexts[first]));
    CHECK_STATUS(iris_barrier(contexts[first], NULL, NULL), IRIS_ERR_STATE);
    if (harness_on_gpu(iris)) {
        /* Ranks may share a GPU, and giving back a heap waits for all that runs
         * there: no kernel may wait yet for a rank that is still at it. */
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_EQUAL(play_round(&contexts[left], &boards[left], 1, round), 0);
    }
    CHECK_OK(iris_finalize(contexts[left]));
    return 0;
}

static TEST(two_contexts_work_in_turn_and_the_second_may_end_first)
{
    harness_run_all(body, &(int){1});
}

static TEST(two_contexts_work_in_turn_and_the_first_may_end_first)
{
    harness_run_all(body, &(int){0});
}

/* Its exit() runs what this process has for its own. */
static int fork_body(iris_t *iris, void *arg)
{
    int ms = 0, how = 1;
    pid_t pid, ended;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        exit(0);
    }
    while ((ended = waitpid(pid, &how, WNOHANG)) == 0 && ms++ < HANG_MS) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (ended == 0) {
        kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    CHECK_EQUAL(ended, pid);
    CHECK_EQUAL(how, 0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return 0;
}

/* What other processes a rank has is for mpirun to be upset by. */
static TEST(a_child_of_a_rank_may_exit)
{
    if (getenv("OMPI_COMM_WORLD_RANK") == NULL) {
        skip();
    }
    harness_run_all(fork_body, NULL);
}

TEST_GROUP(rank, one_gpu, one_node);
