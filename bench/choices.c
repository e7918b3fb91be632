/* SPDX-License-Identifier: MIT
 *
 * Chooses the fastest variant of a collective for each size, and writes the
 * choices as rules: for IRIS_CCL_TUNING, and for src/ccl/choices.
 *
 * A size's variants are timed in turns, so that the machine's other work affects
 * all of them alike, and a variant's middle time counts. The last size's variant
 * stays if it takes at most STAY of the least time: noise makes no rules.
 */
#include "config.h"

#include "choices.h"
#include "ccl/ccl.h"

#include <stdlib.h>
#include <string.h>

#define STAY 1.03

/* The number of repeats of a measurement. */
#define REPEATS 3

#define MAX_WAYS 8
#define MAX_SIZES 64

struct way {
    iris_ccl_variant_t variant;
    double us[REPEATS]; /* sorted; 0: the library refuses this way */
    bool is_steady;
};

struct choice {
    size_t bytes; /* as rules count them */
    iris_ccl_variant_t variant, second;
    double us;
    double second_us; /* 0: there is no second variant */
};

static int compare_times(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Sorts a way's times. The middle one has to be near the least one; the greatest
 * may be an accident. */
static void settle_way(struct bench_chooser *chooser, struct way *way)
{
    double *us = way->us, middle;

    qsort(us, REPEATS, sizeof *us, compare_times);
    middle = us[REPEATS / 2];
    if (us[0] <= 0) {
        return;
    }
    way->is_steady = middle <= us[0] * (1 + chooser->spread);
    chooser->points++;
    if (!way->is_steady) {
        chooser->unsteady++;
        chooser->least_us = us[0];
        chooser->middle_us = middle;
    }
}

/* The steady way with the least time, but not `other`. NULL: there is none. */
static struct way *find_best(struct way *ways, int count,
                             const struct way *other)
{
    struct way *best = NULL;

    for (struct way *way = ways; way < ways + count; way++) {
        if (way != other && way->is_steady &&
            (best == NULL || way->us[REPEATS / 2] < best->us[REPEATS / 2])) {
            best = way;
        }
    }
    return best;
}

/* Whether a way whose times disagree may be faster than the best one: then
 * nothing is known of the size. */
static bool has_doubt(const struct way *ways, int count, const struct way *best)
{
    for (const struct way *way = ways; way < ways + count; way++) {
        if (!way->is_steady && way->us[0] > 0 &&
            way->us[0] < best->us[REPEATS / 2]) {
            return true;
        }
    }
    return false;
}

/* Lists the variants that a rule may name. On a CPU the library ignores rules
 * whose variant needs all members' buffers on the heap. */
static int list_ways(const struct bench_chooser *chooser, int op,
                     struct way *ways)
{
    const struct iris_ccl_kind *kind = &iris_i_ccl_kinds[op];
    int count = 0;

    for (int i = 0; kind->variants[i].variant != IRIS_CCL_AUTO; i++) {
        int needs = kind->variants[i].needs;

        if (!(needs & IRIS_CCL_BY_NAME) &&
            (chooser->on_gpu || !(needs & IRIS_CCL_ON_HEAP) ||
             (needs & IRIS_CCL_STAGES))) {
            ways[count++] = (struct way){.variant = kind->variants[i].variant};
        }
    }
    return count;
}

/* Chooses for one size. Leaves choice_p->us 0 if the times do not tell the best
 * variant. */
static iris_status_t choose_size(struct bench_chooser *chooser, int op,
                                 size_t bytes, iris_ccl_variant_t last,
                                 struct choice *choice_p)
{
    const struct iris_ccl_kind *kind = &iris_i_ccl_kinds[op];
    int has_parts = kind->in_parts || kind->out_parts;
    struct way ways[MAX_WAYS], *best, *second;
    int count = list_ways(chooser, op, ways);
    iris_status_t status = IRIS_OK;

    *choice_p = (struct choice){
        .bytes = has_parts ? bytes / (size_t)chooser->members : bytes};
    for (int i = 0; i < REPEATS * count && status == IRIS_OK; i++) {
        struct way *way = &ways[i % count];

        status = chooser->measure(chooser->arg, op, way->variant, bytes,
                                  &way->us[i / count]);
    }
    if (status != IRIS_OK || chooser->is_late) {
        return status;
    }
    for (int i = 0; i < count; i++) {
        settle_way(chooser, &ways[i]);
    }
    best = find_best(ways, count, NULL);
    if (best != NULL && has_doubt(ways, count, best)) {
        best = NULL;
    }
    for (int i = 0; i < count && best != NULL; i++) {
        if (ways[i].variant == last && ways[i].is_steady &&
            ways[i].us[REPEATS / 2] <= STAY * best->us[REPEATS / 2]) {
            best = &ways[i];
        }
    }
    if (best != NULL) {
        second = find_best(ways, count, best);
        choice_p->variant = best->variant;
        choice_p->us = best->us[REPEATS / 2];
        choice_p->second = second == NULL ? IRIS_CCL_AUTO : second->variant;
        choice_p->second_us = second == NULL ? 0 : second->us[REPEATS / 2];
    }
    return status;
}

/* "5.64 us; two_shot +12 %": the choice's time and the second best variant. */
static const char *describe_choice(const struct choice *choice, char text[96])
{
    int length = snprintf(text, 96, "%.2f us", choice->us);

    if (choice->second_us > 0) {
        snprintf(text + length, 96 - (size_t)length, "; %s %+.0f %%",
                 iris_ccl_variant_name(choice->second),
                 100 * (choice->second_us / choice->us - 1));
    }
    return text;
}

/* Prints a line of the table for people. */
static void print_choice(const struct bench_chooser *chooser, int op,
                         const struct choice *choice)
{
    char text[96];

    if (chooser->table != NULL) {
        fprintf(chooser->table, "%-14s %12zu  %-16s %s\n",
                iris_i_ccl_kinds[op].rule_name, choice->bytes,
                iris_ccl_variant_name(choice->variant),
                describe_choice(choice, text));
        fflush(chooser->table);
    }
}

/* Writes the rules of one operation, without those that equal the next one. */
static void write_rules(const struct bench_chooser *chooser, int op,
                        const struct choice *choices, size_t count)
{
    char text[96];

    for (size_t i = 0; i < count && chooser->rules != NULL; i++) {
        if (i + 1 < count && choices[i].variant == choices[i + 1].variant) {
            continue;
        }
        fprintf(chooser->rules, "%s %s =%d %zu %s 0 # %s\n",
                iris_i_ccl_kinds[op].rule_name, chooser->on_gpu ? "gpu" : "cpu",
                chooser->members, choices[i].bytes,
                iris_ccl_variant_name(choices[i].variant),
                describe_choice(&choices[i], text));
    }
}

iris_status_t bench_choose(struct bench_chooser *chooser, int op)
{
    struct choice choices[MAX_SIZES];
    iris_ccl_variant_t last = IRIS_CCL_AUTO;
    iris_status_t status = IRIS_OK;
    size_t count = 0;

    for (size_t bytes = chooser->min_bytes;
         bytes <= chooser->max_bytes && !chooser->is_late;
         bytes <<= chooser->size_shift) {
        struct choice *choice = &choices[count];

        status = choose_size(chooser, op, bytes, last, choice);
        if (status != IRIS_OK) {
            return status;
        }
        if (choice->us > 0) {
            print_choice(chooser, op, choice);
            last = choice->variant;
            count++;
        }
    }
    write_rules(chooser, op, choices, count);
    return IRIS_OK;
}
