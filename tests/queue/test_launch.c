/* SPDX-License-Identifier: MIT
 *
 * Launching kernels: what is refused, which workgroups run, and which of them
 * at once.
 */
#include "config.h"

#include <iris/device.h>

#include "support/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRID 1000
#define ITEMS 10007 /* no multiple of anything */

/* One on each rank's heap, zeroed. */
struct board {
    uint64_t wrong;
    uint64_t running;
    uint64_t most;
    uint64_t arrived;
    uint64_t turns[GRID + 1];
    uint32_t hits[ITEMS];
};

struct launch_args {
    const int64_t *context;
    struct board *board;
};

/* Every workgroup waits for all: ends only if they run at once. */
IRIS_KERNEL(meet, struct launch_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        iris_signal_add(dev, &args->board->arrived, 1, dev.rank);
        (void)iris_wait_until(dev, &args->board->arrived, IRIS_CMP_GE,
                              wg.num_wgs);
    }
}

/* Each workgroup waits for the one before it. */
IRIS_KERNEL(queue_up, struct launch_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        if (wg.id > 0) {
            (void)iris_wait_until(dev, &args->board->turns[wg.id - 1],
                                  IRIS_CMP_EQ, wg.id);
        }
        args->board->arrived++; /* guarded by the turn */
        iris_signal_set(dev, &args->board->turns[wg.id], wg.id + 1, dev.rank);
    }
}

/* Counts who runs at the same time. */
IRIS_KERNEL(crowd, struct launch_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        uint64_t now =
            1 + iris_atomic_add(dev, &args->board->running, 1, dev.rank,
                                IRIS_ACQ_REL, IRIS_SCOPE_AGENT);

        (void)iris_atomic_max(dev, &args->board->most, now, dev.rank,
                              IRIS_RELAXED, IRIS_SCOPE_AGENT);
        (void)iris_atomic_sub(dev, &args->board->running, 1, dev.rank,
                              IRIS_ACQ_REL, IRIS_SCOPE_AGENT);
    }
}

IRIS_KERNEL(hit_each, struct launch_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, i, ITEMS) {
        args->board->hits[i]++;
    }
    if (iris_wg_leader(wg)) {
        uint64_t bad = wg.num_lanes != 3 || wg.id >= wg.num_wgs ? 1 : 0;

        (void)iris_atomic_add(dev, &args->board->wrong, bad, dev.rank,
                              IRIS_RELAXED, IRIS_SCOPE_AGENT);
        (void)iris_atomic_add(dev, &args->board->turns[wg.id % GRID], 1,
                              dev.rank, IRIS_RELAXED, IRIS_SCOPE_AGENT);
    }
}

/* Launches on a zeroed board of the heap; *seen_p is what it then holds. */
static int launch(iris_t *iris, const struct iris_kernel *kernel, unsigned grid,
                  struct board *board, struct board *seen_p)
{
    struct launch_args args = {iris_device_context(iris), board};

    CHECK_OK(iris_memset(iris, board, 0, sizeof *board, NULL));
    CHECK_OK(iris_launch(iris, kernel, grid, 3, &args, sizeof args, NULL));
    CHECK_OK(harness_read(iris, seen_p, board, sizeof *seen_p));
    CHECK_EQUAL(seen_p->wrong, 0);
    return 0;
}

/* *arg is how many run at once on the CPU. A GPU runs at least as many as it
 * says: one for each compute unit, which may have room for more. */
static int residency_body(iris_t *iris, void *arg)
{
    int on_gpu = harness_on_gpu(iris);
    unsigned cus = (unsigned)iris_num_cus(iris);
    struct board *board, seen;

    CHECK(on_gpu || cus == *(const unsigned *)arg);
    CHECK_OK(iris_malloc(iris, sizeof *board, (void **)&board));
    for (unsigned grid = 1; grid <= cus; grid++) {
        CHECK_EQUAL(launch(iris, meet, grid, board, &seen), 0);
        CHECK_EQUAL(seen.arrived, grid);
    }
    CHECK_EQUAL(launch(iris, crowd, GRID, board, &seen), 0);
    CHECK(seen.most >= 1 && (on_gpu || seen.most <= cus));
    CHECK_EQUAL(launch(iris, queue_up, GRID, board, &seen), 0);
    CHECK_EQUAL(seen.arrived, GRID);
    CHECK_EQUAL(launch(iris, meet, cus, board, &seen), 0);
    CHECK_OK(iris_free(iris, board));
    return 0;
}

/* Runs a body with IRIS_SIM_CUS as given; *arg is the number. */
static void run_with_cus(iris_rank_fn body, unsigned cus)
{
    const char *before = getenv("IRIS_SIM_CUS");
    char text[16], kept[32] = "";

    if (before != NULL) {
        snprintf(kept, sizeof kept, "%s", before);
    }
    snprintf(text, sizeof text, "%u", cus);
    setenv("IRIS_SIM_CUS", text, 1);
    harness_run_all(body, &cus);
    if (before != NULL) {
        setenv("IRIS_SIM_CUS", kept, 1);
    } else {
        unsetenv("IRIS_SIM_CUS");
    }
}

static TEST(as_many_workgroups_as_cus_run_at_once_and_no_more)
{
    run_with_cus(residency_body, 1);
    run_with_cus(residency_body, 3);
    run_with_cus(residency_body, 9);
}

static RANK_TEST(every_workgroup_and_every_index_comes_once, ALL_RANKS)
{
    static const unsigned grids[] = {1, 2, 3, 5, 64, GRID};
    struct board *board, seen;

    CHECK_OK(iris_malloc(iris, sizeof *board, (void **)&board));
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
        CHECK_EQUAL(launch(iris, hit_each, grids[g], board, &seen), 0);
        for (size_t i = 0; i < ITEMS; i++) {
            CHECK_EQUAL(seen.hits[i], 1);
        }
        for (unsigned i = 0; i < GRID; i++) {
            CHECK_EQUAL(seen.turns[i], i < grids[g] ? 1 : 0);
        }
    }
    CHECK_OK(iris_free(iris, board));
    return 0;
}

static RANK_TEST(launches_that_make_no_sense_are_refused_by_name, ALL_RANKS)
{
    struct iris_kernel foreign = {
        IRIS_KERNEL_VERSION, "elsewhere", sizeof(struct launch_args), NULL,
        "a GPU's",           NULL};
    struct iris_kernel huge = hit_each[0], newer = hit_each[0];
    static char many[IRIS_LAUNCH_ARGS_MAX + 1];
    struct launch_args args = {iris_device_context(iris), NULL};
    size_t bytes = sizeof args;
    char text[64];

    CHECK_BAD(iris, iris_launch(iris, NULL, 1, 1, &args, bytes, NULL),
              IRIS_ERR_INVALID, "kernel is NULL",
              "pass a kernel that IRIS_KERNEL");
    CHECK_BAD(iris, iris_launch(iris, hit_each, 0, 1, &args, bytes, NULL),
              IRIS_ERR_INVALID, "hit_each: grid 0, block 1", "at least 1");
    CHECK_BAD(iris, iris_launch(iris, hit_each, 1, 0, &args, bytes, NULL),
              IRIS_ERR_INVALID, "hit_each: grid 1, block 0", "at least 1");
    CHECK_BAD(iris, iris_launch(iris, hit_each, 1, 1025, &args, bytes, NULL),
              IRIS_ERR_INVALID, "hit_each: grid 1, block 1025", "at most 1024");
    for (size_t wrong = bytes - 1; wrong <= bytes + 1; wrong += 2) {
        snprintf(text, sizeof text, "hit_each: args_bytes is %zu", wrong);
        CHECK_BAD(iris, iris_launch(iris, hit_each, 1, 1, &args, wrong, NULL),
                  IRIS_ERR_INVALID, text, "pass sizeof the struct");
    }
    CHECK_BAD(iris, iris_launch(iris, hit_each, 1, 1, NULL, bytes, NULL),
              IRIS_ERR_INVALID, "hit_each: args is NULL", "pass its argument");
    newer.version++;
    CHECK_BAD(iris, iris_launch(iris, &newer, 1, 1, &args, bytes, NULL),
              IRIS_ERR_UNSUPPORTED, "kernel hit_each was compiled with Iris",
              "recompile it");
    huge.args_bytes = sizeof many;
    snprintf(text, sizeof text, "args_bytes is %zu", sizeof many);
    CHECK_BAD(iris, iris_launch(iris, &huge, 1, 1, many, sizeof many, NULL),
              IRIS_ERR_INVALID, text, "at most 4096");
    if (harness_on_gpu(iris)) {
        foreign.cpu_entry = hit_each->cpu_entry;
        foreign.gpu_image = NULL;
        CHECK_STATUS(iris_launch(iris, &foreign, 1, 1, &args, bytes, NULL),
                     IRIS_ERR_UNSUPPORTED);
        CHECK_MESSAGE("no GPU version of kernel elsewhere");
        CHECK_MESSAGE("build it with iriscc");
    } else {
        CHECK_BAD(iris, iris_launch(iris, &foreign, 1, 1, &args, bytes, NULL),
                  IRIS_ERR_UNSUPPORTED, "kernel elsewhere has no CPU version",
                  "compile its IRIS_KERNEL for the CPU");
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

struct large_args {
    uint64_t *sum;
    unsigned char bytes[IRIS_LAUNCH_ARGS_MAX - sizeof(uint64_t *)];
};

IRIS_KERNEL(sum_args, struct large_args)
{
    if (iris_wg_leader(wg)) {
        for (size_t i = 0; i < sizeof args->bytes; i++) {
            *args->sum += args->bytes[i];
        }
    }
}

static RANK_TEST(the_largest_argument_struct_arrives_whole, ALL_RANKS)
{
    struct large_args args;
    uint64_t sum, expected = 0;

    CHECK_OK(iris_calloc(iris, 1, sizeof *args.sum, (void **)&args.sum));
    for (size_t round = 1; round < 5; round++) {
        for (size_t i = 0; i < sizeof args.bytes; i++) {
            args.bytes[i] = (unsigned char)(i * round);
            expected += args.bytes[i];
        }
        CHECK_OK(iris_launch(iris, sum_args, 1, 1, &args, sizeof args, NULL));
    }
    CHECK_OK(harness_read(iris, &sum, args.sum, sizeof sum));
    CHECK_EQUAL(sum, expected);
    CHECK_OK(iris_free(iris, args.sum));
    return 0;
}

TEST_GROUP(rank, one_gpu, sample);
