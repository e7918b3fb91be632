/* SPDX-License-Identifier: MIT
 *
 * The tuning file while it is measured and written.
 */
#ifndef IRIS_BENCH_TUNE_H
#define IRIS_BENCH_TUNE_H

#include "bench.h"

#include <stdio.h>

/* Each measurement is made so many times; the middle one counts. */
#define TUNE_REPEATS 3

struct tuning {
    FILE *out; /* NULL but on rank 0 */
    char path[4096];
    char part[4096]; /* the file while it is written */
    char name[64];   /* of what is being measured */
    double spread;   /* that repeats may have, as a share of the least */
    int64_t end_ns;
    int64_t part_ns; /* end of the operation's part, or of the rates' */
    int parts_left;
    int points; /* repeated measurements, and those that disagree */
    int unsteady;
    double least_us; /* of the last one that does */
    double middle_us;
};

/* Sorts the times of the repeats. Whether the middle one is as near to the least
 * one as it should be: the greatest may be an accident. */
bool tune_is_steady(struct tuning *tuning, double *us);

/* Whether the time for `what` is over, on all ranks alike; says so. Collective. */
iris_status_t tune_is_late(struct bench *b, const struct tuning *tuning,
                           const char *what, bool *late_p);

/* "gpu" or "cpu" */
const char *tune_device(const struct bench *b);

/* Measurements that tune_rates() makes. */
size_t tune_count_rates(const struct bench *b);

/* Measures the rates by which fused operations are planned, if any of these is
 * selected, and writes them. */
iris_status_t tune_rates(struct bench *b, struct tuning *tuning);

#endif /* IRIS_BENCH_TUNE_H */
