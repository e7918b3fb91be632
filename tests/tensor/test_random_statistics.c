/* SPDX-License-Identifier: MIT
 *
 * Random numbers as a whole, with fixed seeds: chi-square, Kolmogorov and
 * Smirnov, moments, tails, and correlations between ranks, sequences and
 * neighbours. Each statistic is held to what chance exceeds once in some 10,000
 * times.
 */
#include "config.h"

#include "tensor/draw.h"

#include <math.h>
#include <stdlib.h>

#define MANY ((size_t)1 << 20)
#define BINS 256
#define Z_MAX 3.9 /* standard deviations: two-sided 1e-4 */

/* Chi-square of counts, as standard deviations from what is expected (Wilson
 * and Hilferty); -INFINITY to INFINITY, evenness beyond chance is suspect,
 * too. */
static double chi_square(const size_t *counts, size_t bins, size_t total)
{
    double expected = (double)total / (double)bins, sum = 0;
    double freedom = (double)bins - 1, spread = 2 / (9 * freedom);

    for (size_t i = 0; i < bins; i++) {
        double off = (double)counts[i] - expected;

        sum += off * off / expected;
    }
    return (cbrt(sum / freedom) - (1 - spread)) / sqrt(spread);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The largest distance from the distribution, times the root of how many there
 * are: above 2.23 once in 10,000 times. Sorts. */
static double distance(double *numbers, size_t count, double (*cdf)(double))
{
    double most = 0;

    qsort(numbers, count, sizeof *numbers, compare);
    for (size_t i = 0; i < count; i++) {
        double at = cdf(numbers[i]);

        most = fmax(most, fmax(at - (double)i / (double)count,
                               (double)(i + 1) / (double)count - at));
    }
    return most * sqrt((double)count);
}

static double uniform_cdf(double x)
{
    return x;
}

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x * sqrt(0.5));
}

static double power(double x, int exponent)
{
    return exponent == 0 ? 1 : x * power(x, exponent - 1);
}

/* A moment, as standard deviations of its mean from `expected`; `square` is
 * that of twice the exponent. */
static double moment(const double *numbers, size_t count, int exponent,
                     double expected, double square)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += power(numbers[i], exponent);
    }
    return (sum / (double)count - expected) /
           sqrt((square - expected * expected) / (double)count);
}

/* Of two rows of numbers with mean `mean` and variance `variance`. */
static double correlation(const double *a, const double *b, size_t count,
                          double mean, double variance)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += (a[i] - mean) * (b[i] - mean);
    }
    return sum / variance / sqrt((double)count);
}

/* `count` of them as doubles; complex ones in their parts. */
static int draw_doubles(iris_t *iris, struct draw draw, size_t count,
                        double *numbers)
{
    int is_wide = draw.dtype == IRIS_DTYPE_F64;
    int is_complex = draw.dtype == IRIS_DTYPE_COMPLEX64;
    float *narrow = malloc(count * sizeof *narrow);

    CHECK(narrow != NULL);
    CHECK_OK(draw_numbers(iris, &draw, is_complex ? count / 2 : count,
                          is_wide ? (void *)numbers : narrow));
    for (size_t i = 0; !is_wide && i < count; i++) {
        numbers[i] = (double)narrow[i];
    }
    free(narrow);
    return 0;
}

/* ---- Uniform ---- */

/* The leading 8 bits, and the last 8 that the type has. */
static int check_bins(const double *numbers, int bits)
{
    size_t leading[BINS] = {0}, last[BINS] = {0};

    for (size_t i = 0; i < MANY; i++) {
        leading[(size_t)(numbers[i] * BINS)]++;
        last[(uint64_t)ldexp(numbers[i], bits) % BINS]++;
    }
    CHECK(fabs(chi_square(leading, BINS, MANY)) < Z_MAX);
    CHECK(fabs(chi_square(last, BINS, MANY)) < Z_MAX);
    return 0;
}

static int uniform_body(iris_t *iris, void *arg)
{
    const iris_dtype_t dtype = *(const iris_dtype_t *)arg;
    struct draw draw = {DRAW_UNIFORM, dtype, {314159, 0, 0}, 0, 0};
    double *numbers = malloc(MANY * sizeof *numbers);

    CHECK(numbers != NULL);
    CHECK_EQUAL(draw_doubles(iris, draw, MANY, numbers), 0);
    CHECK_EQUAL(check_bins(numbers, dtype == IRIS_DTYPE_F64 ? 53 : 24), 0);
    for (int exponent = 1; exponent <= 4; exponent++) {
        CHECK(fabs(moment(numbers, MANY, exponent, 1.0 / (exponent + 1),
                          1.0 / (2 * exponent + 1))) < Z_MAX);
    }
    for (size_t lag = 1; lag <= 8; lag++) {
        CHECK(fabs(correlation(numbers, numbers + lag, MANY - lag, 0.5,
                               1.0 / 12)) < Z_MAX);
    }
    CHECK(distance(numbers, MANY, uniform_cdf) < 2.23);
    free(numbers);
    return 0;
}

static void uniform_numbers_are_uniform(void **state)
{
    iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F64};

    harness_run(1, uniform_body, &dtypes[0]);
    harness_run(1, uniform_body, &dtypes[1]);
}

/* ---- Normal ---- */

/* How many are beyond so many deviations, on either side. */
static int check_tails(const double *numbers)
{
    for (double from = 1; from <= 4; from += 0.5) {
        double share = 2 * normal_cdf(-from), count = 0;

        for (size_t i = 0; i < MANY; i++) {
            count += fabs(numbers[i]) > from;
        }
        CHECK(fabs(count - share * MANY) / sqrt(share * (1 - share) * MANY) <
              Z_MAX);
    }
    return 0;
}

static int normal_body(iris_t *iris, void *arg)
{
    static const double moments[] = {1, 0, 1, 0, 3, 0, 15, 0, 105};
    const iris_dtype_t dtype = *(const iris_dtype_t *)arg;
    struct draw draw = {DRAW_NORMAL, dtype, {271828, 0, 0}, 0, 0};
    double scale = dtype == IRIS_DTYPE_COMPLEX64 ? sqrt(2) : 1;
    double *numbers = malloc(MANY * sizeof *numbers);

    CHECK(numbers != NULL);
    CHECK_EQUAL(draw_doubles(iris, draw, MANY, numbers), 0);
    for (size_t i = 0; i < MANY; i++) {
        numbers[i] *= scale;
    }
    for (int exponent = 1; exponent <= 4; exponent++) {
        CHECK(fabs(moment(numbers, MANY, exponent, moments[exponent],
                          moments[2 * exponent])) < Z_MAX);
    }
    for (size_t lag = 1; lag <= 8; lag++) {
        CHECK(fabs(correlation(numbers, numbers + lag, MANY - lag, 0, 1)) <
              Z_MAX);
    }
    CHECK_EQUAL(check_tails(numbers), 0);
    CHECK(distance(numbers, MANY, normal_cdf) < 2.23);
    /* The first and the last of a million are beyond 4.4 but for 1e-5. */
    CHECK(numbers[0] < -4.4 && numbers[MANY - 1] > 4.4);
    free(numbers);
    return 0;
}

static void normal_numbers_are_normal_to_their_tails(void **state)
{
    iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F64,
                             IRIS_DTYPE_COMPLEX64};

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        harness_run(1, normal_body, &dtypes[i]);
    }
}

/* ---- Integers ---- */

/* Of 3 * 2^30 numbers, thirds: taken modulo that, 32 bits would make the first
 * twice as likely. And of few, each. */
static int integers_body(iris_t *iris, void *arg)
{
    struct draw draw = {
        DRAW_INTEGER, IRIS_DTYPE_I64, {1618, 0, 0}, 0, (int64_t)3 << 30};
    int64_t *numbers = malloc(MANY * sizeof *numbers);
    size_t thirds[3] = {0}, sevenths[7] = {0}, wide[3] = {0};

    (void)arg;
    CHECK(numbers != NULL);
    CHECK_OK(draw_numbers(iris, &draw, MANY, numbers));
    for (size_t i = 0; i < MANY; i++) {
        thirds[numbers[i] >> 30]++;
    }
    CHECK(fabs(chi_square(thirds, 3, MANY)) < Z_MAX);
    draw.low = -3;
    draw.high = 4;
    CHECK_OK(draw_numbers(iris, &draw, MANY, numbers));
    for (size_t i = 0; i < MANY; i++) {
        sevenths[numbers[i] + 3]++;
    }
    CHECK(fabs(chi_square(sevenths, 7, MANY)) < Z_MAX);
    draw.low = INT64_MIN;
    draw.high = (int64_t)1 << 62;
    CHECK_OK(draw_numbers(iris, &draw, MANY, numbers));
    for (size_t i = 0; i < MANY; i++) {
        wide[((uint64_t)numbers[i] - (uint64_t)INT64_MIN) >> 62]++;
    }
    CHECK(fabs(chi_square(wide, 3, MANY)) < Z_MAX);
    free(numbers);
    return 0;
}

static void integers_are_equally_likely(void **state)
{
    harness_run(1, integers_body, NULL);
}

/* ---- One from another ---- */

#define SAMPLE ((size_t)1 << 17)

/* Rank 0's numbers, by the context's own generator, against each other's. */
static int ranks_body(iris_t *iris, void *arg)
{
    struct draw draw = {DRAW_NORMAL, IRIS_DTYPE_F64,
                        *iris_default_generator(iris), 0, 0};
    double *own = malloc(SAMPLE * sizeof *own);
    double *first = malloc(SAMPLE * sizeof *first);

    (void)arg;
    CHECK(own != NULL && first != NULL);
    CHECK_EQUAL(draw_doubles(iris, draw, SAMPLE, own), 0);
    for (size_t i = 0; i < SAMPLE; i++) {
        first[i] = own[i];
    }
    CHECK_OK(iris_broadcast(iris, first, SAMPLE * sizeof *first, 0, NULL));
    if (iris_rank(iris) != 0) {
        CHECK(fabs(correlation(first, own, SAMPLE, 0, 1)) < Z_MAX);
    }
    free(own);
    free(first);
    return 0;
}

static void ranks_are_independent(void **state)
{
    harness_run(4, ranks_body, NULL);
}

/* Generators that differ in one bit of the seed or of the sequence. */
static int sequences_body(iris_t *iris, void *arg)
{
    const struct draw draw = {DRAW_NORMAL, IRIS_DTYPE_F64, {0, 0, 0}, 0, 0};
    double *first = malloc(SAMPLE * sizeof *first);
    double *other = malloc(SAMPLE * sizeof *other);

    (void)arg;
    CHECK(first != NULL && other != NULL);
    CHECK_EQUAL(draw_doubles(iris, draw, SAMPLE, first), 0);
    for (int bit = 0; bit < 64; bit += 7) {
        struct draw seed = draw, sequence = draw;

        seed.generator.seed = (uint64_t)1 << bit;
        sequence.generator.sequence = (uint64_t)1 << bit;
        CHECK_EQUAL(draw_doubles(iris, seed, SAMPLE, other), 0);
        CHECK(fabs(correlation(first, other, SAMPLE, 0, 1)) < Z_MAX);
        CHECK_EQUAL(draw_doubles(iris, sequence, SAMPLE, other), 0);
        CHECK(fabs(correlation(first, other, SAMPLE, 0, 1)) < Z_MAX);
    }
    free(first);
    free(other);
    return 0;
}

static void seeds_and_sequences_are_independent(void **state)
{
    harness_run(1, sequences_body, NULL);
}

static int TEST_FILE(unit)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_numbers_are_uniform),
        cmocka_unit_test(normal_numbers_are_normal_to_their_tails),
        cmocka_unit_test(integers_are_equally_likely),
        cmocka_unit_test(ranks_are_independent),
        cmocka_unit_test(seeds_and_sequences_are_independent),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
