/* SPDX-License-Identifier: MIT
 *
 * Chooses variants of collectives from measured times.
 */
#ifndef IRIS_BENCH_CHOICES_H
#define IRIS_BENCH_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <iris/iris.h>

struct bench_chooser {
    int members;
    bool on_gpu;
    size_t min_bytes; /* sizes of the larger buffer */
    size_t max_bytes;
    int size_shift;
    double spread; /* allowed spread of repeats, as a share of the least */
    FILE *rules;   /* gets the rules; NULL except on rank 0 */
    FILE *table;   /* gets a line for each size; may be NULL */

    /* Times one call of a variant, on all ranks. Leaves *us_p 0 if the library
     * refuses it. Sets is_late if no time is left: the size is then dropped, and
     * the operation ends. */
    iris_status_t (*measure)(void *arg, int op, iris_ccl_variant_t variant,
                             size_t bytes, double *us_p);
    void *arg;
    bool is_late;

    int points; /* repeated measurements; unsteady: those that disagree */
    int unsteady;
    double least_us; /* times of the last unsteady measurement */
    double middle_us;
};

/* Chooses for all sizes of a collective (enum iris_ccl_op), prints the choices,
 * and writes their rules. */
iris_status_t bench_choose(struct bench_chooser *chooser, int op);

#endif /* IRIS_BENCH_CHOICES_H */
