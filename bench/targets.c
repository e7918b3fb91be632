/* SPDX-License-Identifier: MIT
 *
 * Measures the targets and prints whether each one holds. Timings are noisy, so
 * nothing depends on the verdict.
 */
#include "config.h"

#include "bench.h"

#include <stdio.h>
#include <string.h>

/* The figure of a row that has the target. */
enum figure { RATIO, MEDIAN_US, MEDIAN_MS, RATE };

struct target {
    const char *text;
    const char *op;
    enum bench_pairs pairs;
    enum figure figure;
    double limit; /* lower limit for RATIO, else upper limit; 0: no limit */
};

#define MIN_BULK_BYTES ((size_t)1 << 20)
#define MAX_BULK_BYTES ((size_t)64 << 20)

static const struct target targets[] = {
    {"put of 1 MB or more / memcpy, one rank", "wg_put", BENCH_ONE, RATIO,
     0.95},
    {"put of 1 MB or more / memcpy, all ranks", "wg_put", BENCH_RING, RATIO,
     0.95},
    {"get of 1 MB or more / memcpy, one rank", "wg_get", BENCH_ONE, RATIO,
     0.95},
    {"get of 1 MB or more / memcpy, all ranks", "wg_get", BENCH_RING, RATIO,
     0.95},
    {"empty kernel, launch to completion, one rank", "launch", BENCH_ONE,
     MEDIAN_US, 20},
    {"empty kernel, launch to completion, all ranks", "launch", BENCH_RING,
     MEDIAN_US, 20},
    {"malloc, allocator alone", "malloc_local", BENCH_RING, MEDIAN_US, 2},
    {"free, allocator alone", "free_local", BENCH_RING, MEDIAN_US, 2},
    {"malloc, collective check included", "malloc", BENCH_RING, MEDIAN_US, 0},
    {"free, collective check included", "free", BENCH_RING, MEDIAN_US, 0},
    {"start of a job", "init", BENCH_RING, MEDIAN_MS, 1000},
    {"shared memory in use after that", "init", BENCH_RING, RATE, 0},
};

#define NUM_TARGETS (sizeof targets / sizeof targets[0])

/* The worst of an operation's rows. Each thread has its own pointer, since
 * ranks may be threads of one process. */
struct worst {
    struct bench_row row;
    int rows; /* seen so far */
    enum figure figure;
};

static _Thread_local struct worst *worst;

static double figure_of(enum figure which, const struct bench_row *row)
{
    switch (which) {
    case RATIO:
        return row->ratio;
    case MEDIAN_US:
        return row->median_us;
    case MEDIAN_MS:
        return row->median_us / 1e3;
    default:
        return row->rate;
    }
}

static void keep_worst(struct bench *b, const struct bench_row *row)
{
    double figure = figure_of(worst->figure, row);
    double most = figure_of(worst->figure, &worst->row);
    bool is_worse = worst->figure == RATIO ? figure < most : figure > most;

    if (worst->rows++ == 0 || is_worse) {
        worst->row = *row;
    }
    bench_report_row(b, row);
}

static void judge_target(struct bench *b, const struct target *target,
                         const struct bench_row *row)
{
    static const char *const units[] = {[RATIO] = "",
                                        [MEDIAN_US] = " us",
                                        [MEDIAN_MS] = " ms",
                                        [RATE] = " MiB"};
    const char *unit = units[target->figure];
    double figure = figure_of(target->figure, row);
    bool at_least = target->figure == RATIO;
    bool held = at_least ? figure >= target->limit : figure < target->limit;
    char text[96], limit[24] = "", measured[24], bytes[24] = "";

    if (row->bytes != 0) {
        bench_bytes_string(row->bytes, bytes);
    }
    snprintf(text, sizeof text, "%s%s%s%s%s", target->text,
             row->bytes != 0 ? ", " : "", row->variant,
             row->variant[0] != '\0' ? " of " : "", bytes);
    if (target->limit != 0) {
        snprintf(limit, sizeof limit, "%s %g%s", at_least ? ">=" : "<",
                 target->limit, unit);
    }
    snprintf(measured, sizeof measured, "%.3f%s", figure, unit);
    bench_report_verdict(b, &(struct bench_verdict){text, limit, measured,
                                                    target->limit == 0 ? ""
                                                    : held             ? "yes"
                                                                       : "no"});
}

/* Whether the measurement for the target before this one also gives this one's
 * figure. */
static bool is_measured(size_t i)
{
    return i > 0 && strcmp(targets[i].op, targets[i - 1].op) == 0 &&
           targets[i].pairs == targets[i - 1].pairs;
}

static iris_status_t run_target(struct bench *b, const struct target *target)
{
    iris_status_t status = IRIS_OK;

    b->options.pairs = target->pairs;
    for (size_t g = 0; bench_groups[g] != NULL; g++) {
        const struct bench_group *group = bench_groups[g];

        for (size_t op = 0; group->ops[op] != NULL && status == IRIS_OK; op++) {
            if (strcmp(group->ops[op], target->op) == 0) {
                status = bench_run_op(b, group, op, keep_worst);
            }
        }
    }
    return status;
}

iris_status_t bench_run_targets(struct bench *b)
{
    struct worst found[NUM_TARGETS];
    iris_status_t status = IRIS_OK;

    memset(found, 0, sizeof found);
    if (b->options.max_bytes < MIN_BULK_BYTES ||
        b->options.max_bytes > MAX_BULK_BYTES) {
        b->options.max_bytes = MAX_BULK_BYTES;
    }
    b->options.min_bytes = MIN_BULK_BYTES;
    b->points = NUM_TARGETS;
    for (size_t i = 0; i < NUM_TARGETS && status == IRIS_OK; i++) {
        found[i].figure = targets[i].figure;
        worst = &found[i];
        b->points_done = i;
        if (is_measured(i)) {
            found[i] = found[i - 1];
        } else {
            status = run_target(b, &targets[i]);
        }
    }
    worst = NULL;
    bench_progress(b, NULL);
    for (size_t i = 0; i < NUM_TARGETS && status == IRIS_OK; i++) {
        if (found[i].rows > 0) {
            judge_target(b, &targets[i], &found[i].row);
        }
    }
    return status;
}
