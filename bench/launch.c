/* SPDX-License-Identifier: MIT
 *
 * Measures empty kernels: the time from launch to completion, and launches per
 * second.
 */
#include "config.h"

#include <iris/device.h>

#include "bench.h"

#include <stdlib.h>

#define CHECK_LAUNCHES 100
#define WARM_LAUNCHES 200
#define MAX_SAMPLES 100000
#define MIN_SAMPLES 20
#define MAX_ENQUEUED 1000

enum { LAUNCH, LAUNCH_RATE };

static const char *const launch_names[] = {"launch", "launch_rate", NULL};

struct launch_args {
    const int64_t *context;
    uint64_t *count; /* NULL: the kernel does nothing */
};

IRIS_KERNEL(launch_empty, struct launch_args)
{
    iris_dev_t dev;

    if (args->count != NULL && iris_wg_leader(wg)) {
        dev = iris_dev_init(args->context);
        iris_atomic_add(dev, args->count, 1, dev.rank, IRIS_RELAXED,
                        IRIS_SCOPE_AGENT);
    }
}

static iris_status_t launch_open(struct bench *b)
{
    b->state = NULL;
    return iris_calloc(b->iris, 1, sizeof(uint64_t), &b->state);
}

static void launch_close(struct bench *b)
{
    iris_free(b->iris, b->state);
}

static iris_status_t launch_once(struct bench *b, uint64_t *count)
{
    struct launch_args args = {iris_device_context(b->iris), count};

    return iris_launch(b->iris, launch_empty, b->workgroups, b->options.block,
                       &args, sizeof args, NULL);
}

static bool is_idle(const struct bench *b)
{
    return bench_peers_of(b, b->rank).count == 0;
}

static iris_status_t enqueue_launch(struct bench *b, const void *arg)
{
    (void)arg;
    return launch_once(b, NULL);
}

static iris_status_t run_batch(struct bench *b, const void *arg, uint32_t reps,
                               int reference)
{
    (void)reference;
    return is_idle(b) ? IRIS_OK : bench_enqueue(b, enqueue_launch, arg, reps);
}

/* Checks that every workgroup of every launch has run once. */
static iris_status_t verify_launch(struct bench *b, uint64_t *wrong_p)
{
    const uint64_t zero = 0;
    uint64_t count;
    iris_status_t status = bench_copy(b, b->state, &zero, sizeof zero);

    for (int i = 0; i < CHECK_LAUNCHES && status == IRIS_OK; i++) {
        status = launch_once(b, b->state);
    }
    if (status == IRIS_OK) {
        status = bench_copy(b, &count, b->state, sizeof count);
    }
    *wrong_p =
        status == IRIS_OK && count != CHECK_LAUNCHES * (uint64_t)b->workgroups;
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

/* Times single launches until the time or the number is used up. */
static iris_status_t sample_launches(struct bench *b, double *samples,
                                     size_t *count_p)
{
    const struct bench_options *options = &b->options;
    int64_t start = bench_now_ns(), end = start;
    size_t count = 0;
    size_t most = options->iterations > 0 && options->iterations < MAX_SAMPLES
                      ? (size_t)options->iterations
                      : MAX_SAMPLES;
    double budget_ns = options->iterations > 0
                           ? 1e18
                           : options->seconds * BENCH_US_PER_S * 1e3;
    iris_status_t status = IRIS_OK;

    while (count < most && status == IRIS_OK &&
           (count < MIN_SAMPLES || (double)(end - start) < budget_ns)) {
        int64_t begin = end = bench_now_ns();

        status = launch_once(b, NULL);
        if (status == IRIS_OK) {
            status = iris_stream_synchronize(b->iris, NULL);
        }
        end = bench_now_ns();
        samples[count++] = (double)(end - begin) / 1e3;
    }
    *count_p = count;
    return status;
}

static iris_status_t run_latency(struct bench *b, struct bench_row *row_p)
{
    double *samples = malloc(MAX_SAMPLES * sizeof *samples);
    size_t count = 0;
    iris_status_t status;

    if (samples == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    status = run_batch(b, NULL, WARM_LAUNCHES, false);
    if (status == IRIS_OK) {
        status = iris_barrier(b->iris, NULL, NULL);
    }
    if (status == IRIS_OK && !is_idle(b)) {
        status = sample_launches(b, samples, &count);
    }
    if (status == IRIS_OK) {
        status = bench_sampled(b, samples, count, row_p);
    }
    free(samples);
    return status;
}

static iris_status_t run_launch(struct bench *b, size_t op,
                                struct bench_row *row_p)
{
    static const struct bench_work work = {.run = run_batch,
                                           .max_reps = MAX_ENQUEUED};
    iris_status_t status = verify_launch(b, &row_p->wrong);

    if (status != IRIS_OK) {
        return status;
    }
    status =
        op == LAUNCH ? run_latency(b, row_p) : bench_measure(b, &work, row_p);
    if (status == IRIS_OK) {
        bench_rate_ops(row_p, row_p->median_us);
    }
    return status;
}

const struct bench_group bench_launch = {
    .name = "launch",
    .text = "an empty kernel; launch: from the call to completion, one after "
            "another; launch_rate: each of a batch enqueued at once",
    .ops = launch_names,
    .axis = BENCH_ONCE,
    .open = launch_open,
    .run = run_launch,
    .close = launch_close,
};
