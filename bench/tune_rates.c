/* SPDX-License-Identifier: MIT
 *
 * --tune: measures the rates that plan fused operations, and writes them in the
 * form that IRIS_CCL_TUNING reads. docs/fused.md explains them.
 */
#include "config.h"

#include "report.h"
#include "tune.h"

#include <stdlib.h>
#include <string.h>

#define MAX_POINTS (3 * BENCH_MAX_SHAPES) /* for each of three types */
#define CHUNKS 2

/* The series of measurements for each shape and type, in this order. */
enum series { PRODUCT, ONE_CHUNK, SUM, GATHER, SCATTER, CHUNKED, NUM_SERIES };

struct point {
    iris_dtype_t dtype;
    double operations;
    double bytes; /* bytes of the summed or gathered matrix */
    double us[NUM_SERIES][TUNE_REPEATS];
};

struct measured {
    struct point points[MAX_POINTS];
    double launch_us[TUNE_REPEATS];
    double signal_us[TUNE_REPEATS];
    double *single; /* destination of the next row's time */
    enum series series;
    int repeat;
    int count; /* number of points */
    int at;    /* point of the next row */
};

/* This rank's measurements, for the functions that get rows. */
static _Thread_local struct measured *measured;

static void keep_single(struct bench *b, const struct bench_row *row)
{
    *measured->single = row->median_us;
    bench_report_row(b, row);
}

static void keep_fused(struct bench *b, const struct bench_row *row)
{
    struct measured *m = measured;
    struct point *point = &m->points[m->at];
    const struct bench_shape *s = row->shape;
    double ranks = b->num_ranks;

    bench_report_row(b, row);
    if (m->at++ == MAX_POINTS) {
        m->at = MAX_POINTS;
        return;
    }
    m->count = m->at > m->count ? m->at : m->count;
    if (m->series == CHUNKED) {
        point->us[CHUNKED][m->repeat] = row->median_us;
        return;
    }
    point->us[m->series][m->repeat] = row->references_us[BENCH_COLLECTIVE];
    if (m->series == SUM) {
        point->dtype = row->dtype;
        point->operations = 2.0 * (double)s->m * (double)s->n * (double)s->k;
        point->us[PRODUCT][m->repeat] = row->references_us[BENCH_PRODUCT];
    } else if (m->series == GATHER) {
        point->bytes = (double)row->bytes * (ranks - 1) / ranks;
    } else {
        point->us[ONE_CHUNK][m->repeat] = row->median_us;
    }
}

/* Runs the operation with this name of a group. */
static iris_status_t run(struct bench *b, const struct bench_group *group,
                         const char *name, bench_row_fn keep)
{
    size_t op = 0;

    while (strcmp(group->ops[op], name) != 0) {
        op++;
    }
    measured->at = 0;
    return bench_run_op(b, group, op, keep);
}

static iris_status_t run_series(struct bench *b, enum series series)
{
    static const char *const names[] = {[SUM] = "matmul_all_reduce",
                                        [GATHER] = "matmul_all_gather",
                                        [SCATTER] = "matmul_reduce_scatter",
                                        [CHUNKED] = "matmul_reduce_scatter"};
    iris_status_t status;

    measured->series = series;
    b->chunks = series == CHUNKED ? CHUNKS : 1;
    status = run(b, &bench_fused, names[series], keep_fused);
    b->chunks = 0;
    return status;
}

/* Leaves out the last series unless this is a job of several ranks on GPUs. */
static int num_series(const struct bench *b)
{
    bool chunks = strcmp(tune_device(b), "gpu") == 0 && b->num_ranks > 1;

    return chunks ? NUM_SERIES : CHUNKED;
}

/* Measures everything once; the repeats alternate. */
static iris_status_t run_all(struct bench *b, const struct tuning *tuning,
                             bool *late_p)
{
    iris_status_t status;

    b->trusted = measured->repeat > 0;
    measured->single = &measured->launch_us[measured->repeat];
    status = run(b, &bench_launch, "launch_rate", keep_single);
    measured->single = &measured->signal_us[measured->repeat];
    if (status == IRIS_OK) {
        status = run(b, &bench_sync, "device_barrier", keep_single);
    }
    for (int series = SUM;
         series < num_series(b) && status == IRIS_OK && !*late_p; series++) {
        status = tune_is_late(b, tuning, "rates", late_p);
        if (status == IRIS_OK && !*late_p) {
            status = run_series(b, (enum series)series);
        }
    }
    b->trusted = false;
    return status;
}

/* ---- Rates ---- */

static void write_rate(const struct bench *b, struct tuning *tuning,
                       const char *name, double value)
{
    if (tuning->out != NULL && value > 0) {
        fprintf(tuning->out, "rate %s %s any any %.6f\n", tune_device(b), name,
                value);
    }
}

static void write_products(const struct bench *b, struct tuning *tuning)
{
    for (int i = 0; i < measured->count; i++) {
        struct point *point = &measured->points[i];
        double *us = point->us[PRODUCT];

        if (tune_is_steady(tuning, us) && us[0] > 0 && tuning->out != NULL) {
            fprintf(tuning->out, "rate %s product %s %.0f %.6f\n",
                    tune_device(b), iris_dtype_name(point->dtype),
                    point->operations,
                    point->operations / us[TUNE_REPEATS / 2] / 1e6);
        }
    }
}

/* The point that moves the most bytes. */
static struct point *largest(void)
{
    struct point *most = &measured->points[0];

    for (int i = 1; i < measured->count; i++) {
        if (measured->points[i].bytes > most->bytes) {
            most = &measured->points[i];
        }
    }
    return most;
}

/* A gather's time without its launch and signal is the time of the links. A
 * scatter's time without a gather's is the time of the sums. */
static void write_links(const struct bench *b, struct tuning *tuning,
                        double fixed_us)
{
    struct point *point = largest();
    double *gather = point->us[GATHER], *scatter = point->us[SCATTER];
    double all = point->bytes * b->num_ranks / (b->num_ranks - 1);
    double us, sums_us;

    if (!tune_is_steady(tuning, gather) || !tune_is_steady(tuning, scatter)) {
        return;
    }
    us = gather[TUNE_REPEATS / 2] - fixed_us;
    sums_us = scatter[TUNE_REPEATS / 2] - gather[TUNE_REPEATS / 2];
    if (us > gather[TUNE_REPEATS / 2] / 2) { /* else too small to tell */
        write_rate(b, tuning, "link", point->bytes / us / 1e3);
        if (b->num_ranks == 2) {
            write_rate(b, tuning, "pair", point->bytes / us / 1e3);
        }
    }
    if (sums_us > scatter[TUNE_REPEATS / 2] / 20) {
        write_rate(b, tuning, "memory", all / sums_us / 1e3);
    }
}

/* Writes the share of the shorter of product and collective that chunks hide. */
static void write_hidden(const struct bench *b, struct tuning *tuning)
{
    struct point *point = largest();
    double *chunked = point->us[CHUNKED], *plain = point->us[ONE_CHUNK];
    double longer, shorter, lost, hidden;

    if (!tune_is_steady(tuning, chunked) || !tune_is_steady(tuning, plain) ||
        !tune_is_steady(tuning, point->us[PRODUCT]) ||
        !tune_is_steady(tuning, point->us[SCATTER]) || tuning->out == NULL) {
        return;
    }
    longer = point->us[PRODUCT][TUNE_REPEATS / 2] / CHUNKS;
    shorter = point->us[SCATTER][TUNE_REPEATS / 2] / CHUNKS;
    if (shorter > longer) {
        double other = shorter;

        shorter = longer;
        longer = other;
    }
    lost =
        (chunked[TUNE_REPEATS / 2] - longer - shorter) / (CHUNKS - 1) - longer;
    hidden = shorter > 0 ? 1 - lost / shorter : 0;
    hidden = chunked[TUNE_REPEATS / 2] < plain[TUNE_REPEATS / 2] ? hidden : 0;
    hidden = hidden < 0 ? 0 : hidden > 1 ? 1 : hidden;
    fprintf(tuning->out, "rate %s hidden any any %.4f\n", tune_device(b),
            hidden);
}

static void write_all(const struct bench *b, struct tuning *tuning)
{
    double *launch = measured->launch_us, *signal = measured->signal_us;
    int steady = tune_is_steady(tuning, launch);

    if (tuning->out != NULL) {
        fprintf(tuning->out, "# rate device name type size value\n");
    }
    steady &= tune_is_steady(tuning, signal);
    if (steady) {
        write_rate(b, tuning, "launch", launch[TUNE_REPEATS / 2]);
        write_rate(b, tuning, "signal", signal[TUNE_REPEATS / 2]);
    }
    write_products(b, tuning);
    if (measured->count > 0 && b->num_ranks > 1) {
        write_links(b, tuning,
                    launch[TUNE_REPEATS / 2] + signal[TUNE_REPEATS / 2]);
        if (strcmp(tune_device(b), "gpu") == 0) {
            write_hidden(b, tuning);
        }
    }
}

static bool is_selected(const struct bench *b)
{
    bool any = false;

    for (size_t op = 0; bench_fused.ops[op] != NULL; op++) {
        any |=
            bench_selected(b->options.ops, &bench_fused, bench_fused.ops[op]);
    }
    return any;
}

size_t tune_count_rates(const struct bench *b)
{
    size_t dtypes = (size_t)__builtin_popcount(b->options.dtypes);
    size_t series = (size_t)(num_series(b) - SUM);

    return is_selected(b)
               ? TUNE_REPEATS * (2 + series * dtypes * b->options.num_shapes)
               : 0;
}

iris_status_t tune_rates(struct bench *b, struct tuning *tuning)
{
    iris_status_t status = IRIS_OK;
    bool late = false;

    if (!is_selected(b)) {
        return IRIS_OK;
    }
    tuning->part_ns = tuning->end_ns;
    measured = calloc(1, sizeof *measured);
    if (measured == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    for (int i = 0; i < TUNE_REPEATS && status == IRIS_OK && !late; i++) {
        measured->repeat = i;
        status = run_all(b, tuning, &late);
    }
    if (status == IRIS_OK && !late) {
        write_all(b, tuning);
    }
    free(measured);
    measured = NULL;
    return status;
}
