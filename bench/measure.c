/* SPDX-License-Identifier: MIT
 *
 * Timing: all ranks begin each batch together, and the slowest rank's time
 * counts. Also medians, and figures over all ranks.
 */
#include "config.h"

#include "bench.h"

#include <stdlib.h>
#include <time.h>

/* The number of batches of a point, if an operation is short enough. There are
 * many, since a busy machine spoils some. A batch is never so short that its
 * time is mostly its launch. */
#define BATCHES 100
#define MIN_BATCH_US 250.0
#define MIN_BATCHES 5
#define MAX_REPS (UINT32_C(1) << 28)
/* The largest factor by which a batch grows after it is timed. */
#define MAX_GROWTH 16.0
/* The number of batches into which --iterations are divided. */
#define COUNTED_BATCHES 10

int64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct bench_peers bench_peers_of(const struct bench *b, int rank)
{
    struct bench_peers peers = {(rank + 1) % b->num_ranks, 1};

    if (b->options.pairs == BENCH_ONE && rank != 0) {
        peers.count = 0;
    } else if (b->options.pairs == BENCH_ALL && b->num_ranks > 1) {
        peers.count = b->num_ranks - 1;
    }
    return peers;
}

bool bench_is_peer(const struct bench *b, int rank, int peer)
{
    struct bench_peers peers = bench_peers_of(b, rank);

    return (peer - peers.first + b->num_ranks) % b->num_ranks < peers.count;
}

iris_status_t bench_copy(struct bench *b, void *dst, const void *src,
                         size_t bytes)
{
    iris_status_t status = iris_memcpy(b->iris, dst, src, bytes, NULL);

    return status == IRIS_OK ? iris_stream_synchronize(b->iris, NULL) : status;
}

iris_status_t bench_max(struct bench *b, double *values, size_t count)
{
    double *theirs = malloc(count * sizeof *theirs);
    double *most = malloc(count * sizeof *most);
    iris_status_t status =
        theirs == NULL || most == NULL ? IRIS_ERR_NO_MEMORY : IRIS_OK;

    for (int rank = 0; rank < b->num_ranks && status == IRIS_OK; rank++) {
        for (size_t i = 0; i < count; i++) {
            theirs[i] = values[i];
        }
        status =
            iris_broadcast(b->iris, theirs, count * sizeof *theirs, rank, NULL);
        for (size_t i = 0; i < count && status == IRIS_OK; i++) {
            most[i] = rank == 0 || theirs[i] > most[i] ? theirs[i] : most[i];
        }
    }
    for (size_t i = 0; i < count && status == IRIS_OK; i++) {
        values[i] = most[i];
    }
    free(most);
    free(theirs);
    return status;
}

iris_status_t bench_sum(struct bench *b, uint64_t *value)
{
    uint64_t sum = 0;
    iris_status_t status = IRIS_OK;

    for (int rank = 0; rank < b->num_ranks && status == IRIS_OK; rank++) {
        uint64_t theirs = *value;

        status = iris_broadcast(b->iris, &theirs, sizeof theirs, rank, NULL);
        sum += theirs;
    }
    if (status == IRIS_OK) {
        *value = sum;
    }
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_quantile(double *samples, size_t count, double fraction)
{
    size_t at = (size_t)(fraction * (double)(count - 1) + 0.5);

    qsort(samples, count, sizeof *samples, compare_doubles);
    return samples[at];
}

/* Times one batch, from the barrier at which all ranks begin to this rank's
 * end. */
static iris_status_t time_batch(struct bench *b, const struct bench_work *work,
                                uint32_t reps, int reference, double *us_p)
{
    int64_t begin;
    iris_status_t status = iris_barrier(b->iris, NULL, NULL);

    if (status != IRIS_OK) {
        return status;
    }
    begin = bench_now_ns();
    status = work->run(b, work->arg, reps, reference);
    *us_p = (double)(bench_now_ns() - begin) / 1e3;
    return status;
}

/* The plan for the time of a point. */
struct plan {
    uint32_t reps; /* operations of a batch */
    size_t batches;
};

/* Rounds `reps` up to a multiple of the work's step. */
static uint32_t in_steps(const struct bench_work *work, uint32_t reps)
{
    uint32_t step = work->step != 0 ? work->step : 1;

    return (reps + step - 1) / step * step;
}

static uint32_t max_reps(const struct bench_work *work)
{
    return work->max_reps != 0 ? work->max_reps : MAX_REPS;
}

/* Makes the batch larger until it takes a fair part of the point's time. All
 * ranks make the same plan, since they use the slowest rank's time. */
static iris_status_t plan_by_time(struct bench *b,
                                  const struct bench_work *work,
                                  struct plan *plan_p)
{
    double parts = 1 + work->references;
    double budget_us = b->options.seconds * BENCH_US_PER_S / parts;
    double goal_us =
        budget_us / BATCHES > MIN_BATCH_US ? budget_us / BATCHES : MIN_BATCH_US;
    uint32_t most = max_reps(work), reps = in_steps(work, 1);
    double us = 0;
    iris_status_t status = time_batch(b, work, reps, 0, &us);

    while (status == IRIS_OK) {
        status = bench_max(b, &us, 1);
        if (us >= goal_us || reps == most || status != IRIS_OK) {
            break;
        }
        us = 1.1 * goal_us / (us > 0.01 ? us : 0.01);
        us = us > MAX_GROWTH ? MAX_GROWTH : us;
        reps = us * reps >= most ? most
                                 : in_steps(work, (uint32_t)(us * reps) + 1);
        status = time_batch(b, work, reps, 0, &us);
    }
    us = us > goal_us / 4 ? us : goal_us / 4;
    plan_p->reps = reps;
    plan_p->batches = (size_t)(budget_us / us);
    if (plan_p->batches < MIN_BATCHES) {
        plan_p->batches = MIN_BATCHES;
    }
    return status;
}

static void plan_by_count(const struct bench *b, const struct bench_work *work,
                          struct plan *plan_p)
{
    int64_t count = b->options.iterations;
    int64_t reps = (count + COUNTED_BATCHES - 1) / COUNTED_BATCHES;

    reps = reps > max_reps(work) ? max_reps(work) : reps;
    plan_p->reps = (uint32_t)reps;
    plan_p->batches = (size_t)((count + reps - 1) / reps);
}

/* Times the batches in the order work, reference, reference, work, and so on.
 * So neither has the better place in the scheduler's rhythm. With more
 * references it goes through all of them, forwards and then backwards. */
static iris_status_t time_batches(struct bench *b,
                                  const struct bench_work *work,
                                  const struct plan *plan, double *samples)
{
    size_t ways = 1 + (size_t)work->references;
    size_t count = plan->batches * ways;
    iris_status_t status = IRIS_OK;

    for (size_t i = 0; i < count && status == IRIS_OK; i++) {
        size_t batch = i / ways;
        size_t way = batch % 2 == 0 ? i % ways : ways - 1 - i % ways;
        /* The samples of the work come first, then those of each reference. */
        double *sample = &samples[way * plan->batches + batch];

        status = time_batch(b, work, plan->reps, (int)way, sample);
    }
    return status == IRIS_OK ? bench_max(b, samples, count) : status;
}

static void fill_row(const struct bench_work *work, const struct plan *plan,
                     double *samples, struct bench_row *row_p)
{
    size_t count = plan->batches;
    double per_rep = work->per_rep != 0 ? work->per_rep : 1;
    double operations = per_rep * plan->reps;

    row_p->median_us = bench_quantile(samples, count, 0.5) / operations;
    row_p->min_us = samples[0] / operations;
    row_p->p90_us = bench_quantile(samples, count, 0.9) / operations;
    for (size_t i = 0; i < (size_t)work->references; i++) {
        row_p->references_us[i] =
            bench_quantile(samples + (i + 1) * count, count, 0.5) / operations;
    }
    if (work->references > 0) {
        row_p->reference_rate = 1 / row_p->references_us[0];
        row_p->ratio = row_p->references_us[0] / row_p->median_us;
    }
}

iris_status_t bench_measure(struct bench *b, const struct bench_work *work,
                            struct bench_row *row_p)
{
    struct plan plan = {1, MIN_BATCHES};
    iris_status_t status = work->run(b, work->arg, 1, 0);
    double *samples;

    for (int i = 1; i <= work->references && status == IRIS_OK; i++) {
        status = work->run(b, work->arg, 1, i);
    }
    if (status == IRIS_OK && b->options.iterations > 0) {
        plan_by_count(b, work, &plan);
    } else if (status == IRIS_OK) {
        status = plan_by_time(b, work, &plan);
    }
    if (status != IRIS_OK) {
        return status;
    }
    samples =
        calloc((1 + (size_t)work->references) * plan.batches, sizeof *samples);
    if (samples == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    status = time_batches(b, work, &plan, samples);
    if (status == IRIS_OK) {
        fill_row(work, &plan, samples, row_p);
    }
    free(samples);
    return status;
}

iris_status_t bench_sampled(struct bench *b, double *samples, size_t count,
                            struct bench_row *row_p)
{
    double figures[3] = {0, 0, 0};
    iris_status_t status;

    if (count > 0) {
        figures[0] = bench_quantile(samples, count, 0.5);
        figures[1] = samples[0];
        figures[2] = bench_quantile(samples, count, 0.9);
    }
    status = bench_max(b, figures, 3);
    if (status == IRIS_OK) {
        row_p->median_us = figures[0];
        row_p->min_us = figures[1];
        row_p->p90_us = figures[2];
    }
    return status;
}

/* Bytes per microsecond are 1e-3 GB/s. */
void bench_rate_bytes(struct bench_row *row, size_t bytes, const char *against)
{
    double gigabytes = (double)bytes * 1e-3;

    row->rate = row->median_us > 0 ? gigabytes / row->median_us : 0;
    row->rate_unit = "GB/s";
    row->reference = against;
    row->reference_rate *= gigabytes; /* was operations per microsecond */
}

void bench_rate_ops(struct bench_row *row, double median_us)
{
    row->rate = median_us > 0 ? 1 / median_us : 0;
    row->rate_unit = "Mop/s";
}
