/* SPDX-License-Identifier: MIT
 *
 * Measures how long a job takes to start and how much shared memory it uses. It
 * starts separate jobs, before the one that measures everything else.
 */
#include "config.h"

#include "bench.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SHM_FOLDER "/dev/shm"
#define MAX_STARTS 5
#define MIB 1048576.0

/* The arguments of each rank of such a job. */
struct start {
    const char *prefix; /* of heap-bases files; NULL: keep the files */
    int64_t begin_ns;
    struct bench_shared *shared;
    double used_before;
};

static double shm_used_bytes(void)
{
    struct statvfs fs;

    if (statvfs(SHM_FOLDER, &fs) != 0) {
        return 0;
    }
    return (double)(fs.f_blocks - fs.f_bfree) * (double)fs.f_frsize;
}

void bench_remove_bases(const char *prefix, int rank)
{
    char path[PATH_MAX];

    if (prefix != NULL) {
        snprintf(path, sizeof path, "%s_rank_%d_heap_bases.json", prefix, rank);
        unlink(path);
    }
}

/* Runs on every rank when its context is open. */
static int note_start(iris_t *iris, void *arg)
{
    struct start *start = arg;
    struct bench_shared *shared = start->shared;
    double us = (double)(bench_now_ns() - start->begin_ns) / 1e3;
    struct bench b = {.iris = iris, .num_ranks = iris_num_ranks(iris)};
    iris_status_t status;

    bench_remove_bases(start->prefix, iris_rank(iris));
    status = bench_max(&b, &us, 1);
    if (status != IRIS_OK) {
        return (int)status;
    }
    if (iris_rank(iris) == 0) {
        shared->init_us[shared->init_count] = us;
        shared->init_ranks = b.num_ranks;
        shared->init_shm_bytes = shm_used_bytes() - start->used_before;
    }
    return (int)iris_barrier(iris, NULL, NULL);
}

iris_status_t bench_measure_init(const struct iris_config *config,
                                 const struct bench_options *options,
                                 struct bench_shared *shared_p)
{
    struct iris_config mine = *config;
    struct start start = {.shared = shared_p,
                          .prefix = config->heap_bases_prefix};
    iris_status_t status = IRIS_OK;
    int starts = options->iterations > 0 && options->iterations < MAX_STARTS
                     ? (int)options->iterations
                     : MAX_STARTS;

    /* The launcher decides the number of ranks. */
    mine.num_ranks = getenv("IRIS_RANK") == NULL ? options->init_ranks : -1;
    mine.heap_bytes = (int64_t)options->init_heap_bytes;
    for (int i = 0; i < starts && status == IRIS_OK; i++) {
        start.used_before = shm_used_bytes();
        start.begin_ns = bench_now_ns();
        status = iris_spawn(&mine, 0, note_start, &start);
        shared_p->init_count += status == IRIS_OK;
    }
    snprintf(shared_p->init_variant, sizeof shared_p->init_variant, "%d rank%s",
             shared_p->init_ranks, shared_p->init_ranks == 1 ? "" : "s");
    return status;
}

static iris_status_t run_init(struct bench *b, size_t op,
                              struct bench_row *row_p)
{
    const struct bench_shared *shared = b->shared;
    double samples[MAX_STARTS];
    size_t count = 0;
    iris_status_t status;

    (void)op;
    if (b->rank == 0) {
        count = (size_t)shared->init_count;
        memcpy(samples, shared->init_us, count * sizeof *samples);
    }
    status = bench_sampled(b, samples, count, row_p);
    row_p->bytes = b->options.init_heap_bytes;
    row_p->variant = shared->init_variant;
    row_p->rate = shared->init_shm_bytes / MIB;
    row_p->rate_unit = "MiB shm";
    return status;
}

static const char *const init_names[] = {"init", NULL};

const struct bench_group bench_init = {
    .name = "init",
    .text = "from iris_spawn() to every rank running, heap of the size shown a "
            "rank; shm: shared memory all of them use then",
    .ops = init_names,
    .axis = BENCH_ONCE,
    .run = run_init,
};
