/* SPDX-License-Identifier: MIT
 *
 * Averages and scaled sums: what is refused, groups of one member, complex
 * numbers, sums beyond the type's range. The other tests of collectives make
 * some of their reductions averages and scaled sums.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/ccl.h>
#include <iris/device/core/half.h>

#include <math.h>
#include <string.h>

#define COUNT 64

static iris_status_t reduce(iris_t *iris, void *data, iris_dtype_t dtype,
                            iris_reduce_op_t op,
                            const struct iris_ccl_options *options)
{
    iris_status_t status =
        iris_all_reduce(iris, data, data, COUNT, dtype, op, options);

    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

#define REFUSED(op, dtype, text)                                            \
    CHECK_STATUS(                                                           \
        reduce(iris, data, IRIS_DTYPE_##dtype, IRIS_REDUCE_##op, &options), \
        IRIS_ERR_INVALID);                                                  \
    CHECK_MESSAGE(text)

static RANK_TEST(only_sums_of_floats_have_a_finite_scale, 1, 2)
{
    struct iris_ccl_options options;
    float *data;

    CHECK_OK(iris_calloc(iris, COUNT, 16, (void **)&data));
    iris_ccl_options_init(&options);
    REFUSED(AVG, I32, "op avg of i32");
    REFUSED(AVG, BOOL, "AVG of floats");
    options.all_reduce = IRIS_CCL_RING;
    REFUSED(AVG, F32, "neither AVG nor a scale");
    REFUSED(SUM, F8E4M3, "a type of 16 bits or more");
    options.scale = 2;
    REFUSED(SUM, F32, "neither AVG nor a scale");
    options.all_reduce = IRIS_CCL_AUTO;
    REFUSED(SUM, I32, "scale is 2, and it is for SUM of floats");
    REFUSED(AVG, F32, "scale is 2");
    REFUSED(MAX, F32, "scale is 2");
    CHECK_STATUS(iris_all_gather(iris, data, data, 1, IRIS_DTYPE_F32, &options),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("scale is 2");
    options.scale = (double)INFINITY;
    REFUSED(SUM, F32, "scale is inf; pass a finite number");
    options.scale = (double)NAN;
    REFUSED(SUM, F64, "pass a finite number");
    return iris_barrier(iris, NULL, NULL);
}

/* A member alone has no workspace, and its own kernel. */
static RANK_TEST(a_group_of_one_scales_its_own, 1, 2)
{
    static const double in[] = {3.0, -0.1, 1e300, (double)NAN};
    struct iris_ccl_options options;
    int self = iris_rank(iris);
    iris_f16_t halves[COUNT] = {{0x7bff}, {0x3c01}, {0x0001}}, half;
    double seen[COUNT];
    char *data;

    CHECK_OK(iris_calloc(iris, COUNT, 16, (void **)&data));
    iris_ccl_options_init(&options);
    CHECK_OK(iris_group_create(iris, &self, 1, &options.group));
    options.scale = 1.0 / 3;
    CHECK_OK(harness_write(iris, data, in, sizeof in));
    CHECK_OK(reduce(iris, data, IRIS_DTYPE_F64, IRIS_REDUCE_SUM, &options));
    CHECK_OK(harness_read(iris, seen, data, sizeof seen));
    for (int i = 0; i < 3; i++) {
        CHECK(seen[i] == in[i] * (1.0 / 3));
    }
    CHECK(isnan(seen[3]));
    options.scale = 0.5;
    CHECK_OK(harness_write(iris, data, halves, sizeof halves));
    CHECK_OK(reduce(iris, data, IRIS_DTYPE_F16, IRIS_REDUCE_SUM, &options));
    CHECK_OK(harness_read(iris, seen, data, sizeof halves));
    for (size_t i = 0; i < 3; i++) {
        memcpy(&half, (char *)seen + i * sizeof half, sizeof half);
        CHECK_EQUAL(half.bits,
                    iris_f16_from_f32(0.5f * iris_f16_to_f32(halves[i])).bits);
    }
    options.scale = 0;
    CHECK_OK(harness_write(iris, data, in, sizeof in));
    CHECK_OK(reduce(iris, data, IRIS_DTYPE_F64, IRIS_REDUCE_AVG, &options));
    CHECK_OK(harness_read(iris, seen, data, sizeof seen));
    CHECK(memcmp(seen, in, 3 * sizeof in[0]) == 0);
    return iris_barrier(iris, NULL, NULL);
}

/* The sum of the largest f16 is no f16, and their average is. */
static RANK_TEST(averages_are_rounded_once, 3, 4)
{
    int num_ranks = iris_num_ranks(iris);
    float factor = (float)(1.0 / num_ranks), complex[COUNT * 2],
          seen[COUNT * 2];
    iris_f16_t halves[COUNT];
    char *data;

    CHECK_OK(iris_calloc(iris, COUNT, 16, (void **)&data));
    for (int i = 0; i < COUNT; i++) {
        halves[i].bits = 0x7bff;
        complex[2 * i] = (float)(iris_rank(iris) + i);
        complex[2 * i + 1] = -1.0f;
    }
    CHECK_OK(harness_write(iris, data, halves, sizeof halves));
    CHECK_OK(reduce(iris, data, IRIS_DTYPE_F16, IRIS_REDUCE_AVG, NULL));
    CHECK_OK(harness_read(iris, seen, data, sizeof halves));
    CHECK(memcmp(seen, halves, sizeof halves) == 0);
    CHECK_OK(harness_write(iris, data, complex, sizeof complex));
    CHECK_OK(reduce(iris, data, IRIS_DTYPE_COMPLEX64, IRIS_REDUCE_AVG, NULL));
    CHECK_OK(harness_read(iris, seen, data, sizeof seen));
    for (int i = 0; i < COUNT; i++) {
        CHECK(seen[2 * i] ==
              (float)(num_ranks * (num_ranks - 1) / 2 + num_ranks * i) *
                  factor);
        CHECK(seen[2 * i + 1] == (float)-num_ranks * factor);
    }
    return 0;
}

TEST_GROUP(rank);
