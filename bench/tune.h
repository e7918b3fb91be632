/* SPDX-License-Identifier: MIT
 *
 * The tuning file while it is measured and written.
 */
#ifndef IRIS_BENCH_TUNE_H
#define IRIS_BENCH_TUNE_H

#include "bench.h"

#include <stdio.h>

/* The number of repeats of a measurement. The middle one counts. */
#define TUNE_REPEATS 3

struct tuning {
    FILE *out; /* NULL except on rank 0 */
    char path[4096];
    char part[4096]; /* name of the file until it is complete */
    char name[64];   /* name of the current measurement */
    double spread;   /* allowed spread of repeats, as a share of the least */
    int64_t end_ns;
    int64_t part_ns; /* end of the operation's part of the time */
    int parts_left;
    int points; /* repeated measurements; unsteady: those that disagree */
    int unsteady;
    double least_us; /* times of the last unsteady measurement */
    double middle_us;
};

/* Sorts the times of the repeats. Returns whether the middle one is near enough
 * to the least one. The greatest one may be an accident. */
bool tune_is_steady(struct tuning *tuning, double *us);

/* Whether the time for `what` is over, with the same result on all ranks. If it
 * is, rank 0 prints this. Collective. */
iris_status_t tune_is_late(struct bench *b, const struct tuning *tuning,
                           const char *what, bool *late_p);

/* "gpu" or "cpu" */
const char *tune_device(const struct bench *b);

/* The number of measurements in tune_rates(). */
size_t tune_count_rates(const struct bench *b);

/* Measures the rates that plan fused operations, if any of these is selected,
 * and writes them. */
iris_status_t tune_rates(struct bench *b, struct tuning *tuning);

#endif /* IRIS_BENCH_TUNE_H */
