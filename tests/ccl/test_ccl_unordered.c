/* SPDX-License-Identifier: MIT
 *
 * all_reduce that keeps no order of addition: exact for integers, close to the
 * sum in f64 for floats, whatever was in the output before.
 */
#include "config.h"

#include "ccl/play.h"

#include <iris/device/core/half.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST ((size_t)256 << 10)

static const iris_ccl_variant_t variants[] = {IRIS_CCL_ATOMIC,
                                              IRIS_CCL_SPINLOCK, IRIS_CCL_RING};

static struct play first_play(void)
{
    struct play play = {.op = PLAY_ALL_REDUCE,
                        .type = &case_types[0],
                        .reduce = IRIS_REDUCE_SUM};

    iris_ccl_options_init(&play.options);
    return play;
}

/* Integers are exact, by rings of every operation and in place. */
static RANK_TEST(integers_are_exact, ALL_RANKS, 3)
{
    static const size_t counts[] = {1, 3, 1031, 130, 16, 4100, 0, 32771};
    struct play_board board;
    struct play play = first_play();

    CHECK_EQUAL(play_open(iris, MOST + 64, &board), 0);
    for (size_t i = 0; i < 48; i++) {
        play.type = &case_types[i % 8];
        play.reduce = (iris_reduce_op_t)(i % 7);
        play.count = counts[(i + i / 8) % 8];
        play.shift = i % 3;
        play.in_place = i % 4 == 1;
        play.options.num_cus = (int)(i % 3);
        for (size_t v = 0; v < 3; v++) {
            if (v < 2) {
                play.reduce = IRIS_REDUCE_SUM;
                play.in_place = 0;
            } else {
                play.reduce = (iris_reduce_op_t)(i % 7);
                play.in_place = i % 4 == 1;
            }
            play.options.all_reduce = variants[v];
            play.options.num_rings = (int)(i % 4 == 2 ? 2 : i % 2);
            play.round++;
            CHECK_EQUAL(play_and_check(&board, &play), 0);
        }
    }
    return 0;
}

/* ---- Floats ---- */

struct format {
    iris_dtype_t dtype;
    size_t bytes;
    double epsilon; /* of one rounding */
};
static const struct format formats[] = {
    {IRIS_DTYPE_F16, 2, 0x1p-11},
    {IRIS_DTYPE_BF16, 2, 0x1p-8},
    {IRIS_DTYPE_F32, 4, 0x1p-24},
    {IRIS_DTYPE_F64, 8, 0x1p-53},
};

static void put(const struct format *format, char *to, double value)
{
    float f = (float)value;
    iris_f16_t h = iris_f16_from_f32(f);
    iris_bf16_t b = iris_bf16_from_f32(f);

    memcpy(to,
           format->dtype == IRIS_DTYPE_F16    ? (void *)&h
           : format->dtype == IRIS_DTYPE_BF16 ? (void *)&b
           : format->dtype == IRIS_DTYPE_F32  ? (void *)&f
                                              : (void *)&value,
           format->bytes);
}

static double get(const struct format *format, const char *from)
{
    iris_f16_t h;
    iris_bf16_t b;
    float f;
    double d;

    memcpy(&h, from, sizeof h);
    memcpy(&b, from, sizeof b);
    if (format->dtype == IRIS_DTYPE_F16) {
        return (double)iris_f16_to_f32(h);
    }
    if (format->dtype == IRIS_DTYPE_BF16) {
        return (double)iris_bf16_to_f32(b);
    }
    memcpy(&f, from, sizeof f);
    if (format->dtype == IRIS_DTYPE_F32) {
        return (double)f;
    }
    memcpy(&d, from, sizeof d);
    return d;
}

/* What member `rank` has in element i, as its type holds it. */
static double value_of(const struct format *format, int rank, size_t i)
{
    char bytes[8] = {0};

    put(format, bytes, sin((double)i * 0.7 + rank) + 0.01 * rank);
    return get(format, bytes);
}

/* One call; each result is as close as one rounding for each member allows. */
static int floats_call(iris_t *iris, const struct format *format,
                       iris_ccl_variant_t variant, size_t count)
{
    int num_ranks = iris_num_ranks(iris);
    struct iris_ccl_options options;
    char *in, *out, *host = malloc(count * 8);

    CHECK(host != NULL);
    CHECK_OK(iris_malloc(iris, count * 8, (void **)&in));
    CHECK_OK(iris_malloc(iris, count * 8, (void **)&out));
    for (size_t i = 0; i < count; i++) {
        put(format, host + i * format->bytes,
            value_of(format, iris_rank(iris), i));
    }
    CHECK_OK(harness_write(iris, in, host, count * format->bytes));
    memset(host, 0x7f, count * 8);
    CHECK_OK(harness_write(iris, out, host, count * format->bytes));
    iris_ccl_options_init(&options);
    options.all_reduce = variant;
    CHECK_OK(iris_all_reduce(iris, in, out, count, format->dtype,
                             IRIS_REDUCE_SUM, &options));
    CHECK_OK(harness_read(iris, host, out, count * format->bytes));
    for (size_t i = 0; i < count; i++) {
        double sum = 0, most = 0;

        for (int r = 0; r < num_ranks; r++) {
            sum += value_of(format, r, i);
            most += fabs(value_of(format, r, i));
        }
        CHECK(fabs(get(format, host + i * format->bytes) - sum) <=
              most * num_ranks * format->epsilon);
    }
    CHECK_OK(iris_free(iris, in));
    CHECK_OK(iris_free(iris, out));
    free(host);
    return 0;
}

static RANK_TEST(floats_are_close, ALL_RANKS, 3)
{
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        for (size_t v = 0; v < 3; v++) {
            CHECK_EQUAL(floats_call(iris, &formats[f], variants[v], 1 + f), 0);
            CHECK_EQUAL(floats_call(iris, &formats[f], variants[v], 3001), 0);
        }
    }
    return 0;
}

static RANK_TEST(what_they_cannot_says_so, 2)
{
    struct iris_ccl_options options;
    float *words;

    CHECK_OK(iris_malloc(iris, 64, (void **)&words));
    iris_ccl_options_init(&options);
    options.all_reduce = IRIS_CCL_ATOMIC;
    CHECK_BAD(iris,
              iris_all_reduce(iris, words, words + 8, 8, IRIS_DTYPE_F32,
                              IRIS_REDUCE_MAX, &options),
              IRIS_ERR_INVALID, "variant atomic", "SUM");
    options.all_reduce = IRIS_CCL_SPINLOCK;
    CHECK_BAD(iris,
              iris_all_reduce(iris, words, words, 8, IRIS_DTYPE_F32,
                              IRIS_REDUCE_SUM, &options),
              IRIS_ERR_INVALID, "variant spinlock", "not the same memory");
    return 0;
}

TEST_GROUP(rank);
