/* SPDX-License-Identifier: MIT
 *
 * The number of chunks of a fused operation: the table, and the settings that
 * come before it.
 */
#include "config.h"

#include "support/harness.h"

#include "ops/internal.h"

#include <stdlib.h>
#include <string.h>

static const char h100[] = "NVIDIA H100 80GB HBM3";

static struct iris_ops_size size_of(int op, const int64_t *shape,
                                    int64_t members)
{
    struct iris_ops_size size = {
        .m = shape[0],
        .n = shape[1],
        .k = shape[2],
        .members = members,
        .rows = (shape[0] + members - 1) / members,
        .cuts = op == IRIS_OPS_MATMUL_ALL_GATHER ? 1 : members,
        .op = op,
        .dtype = IRIS_DTYPE_BF16};

    return size;
}

/* bf16 on two H100: the time of two chunks of each share, in percent of one
 * part's; 0: not measured. Where a second run came out slower, the larger number. */
#define NUM_SHAPES 12
static const int64_t shapes[NUM_SHAPES][3] = {
    {2048, 2048, 2048}, {4096, 4096, 4096},  {8192, 8192, 8192},
    {8192, 4096, 1024}, {16384, 1024, 4096}, {4096, 8192, 8192},
    {3072, 3072, 3072}, {4100, 4096, 4096},  {5000, 5000, 5000},
    {6144, 6144, 6144}, {16384, 4096, 4096}, {8192, 2048, 8192}};
static const int percent[4][NUM_SHAPES] = {
    [IRIS_OPS_MATMUL_ALL_REDUCE] = {131, 110, 103, 112, 110, 105},
    [IRIS_OPS_ALL_GATHER_MATMUL] = {171, 87, 91, 100, 69, 91, 0, 0, 114, 93, 85,
                                    73},
    [IRIS_OPS_MATMUL_ALL_GATHER] = {159, 111, 96, 113, 110, 98, 0, 0, 0, 97,
                                    94},
    [IRIS_OPS_MATMUL_REDUCE_SCATTER] = {302, 91, 91, 94, 92, 91, 112, 109, 108,
                                        92, 89, 93}};

static TEST(two_h100_take_parts_where_they_were_faster)
{
    for (int i = 0; i < 4 * NUM_SHAPES; i++) {
        int share = percent[i / NUM_SHAPES][i % NUM_SHAPES];
        struct iris_ops_size size =
            size_of(i / NUM_SHAPES, shapes[i % NUM_SHAPES], 2);

        assert_int_equal(iris_i_ops_table_parts(&size, h100),
                         share > 0 && share < 99 ? 2 * (int)size.cuts : 1);
    }
}

/* The same on four H200, of parts by the members' shares. */
#define NUM_OF_FOUR 7
static const int64_t shapes_of_four[NUM_OF_FOUR][3] = {
    {512, 7168, 8192},  {2048, 2048, 2048}, {2048, 7168, 8192},
    {2048, 8192, 7168}, {4096, 4096, 4096}, {8192, 7168, 8192},
    {8192, 8192, 8192}};
static const int percent_of_four[4][NUM_OF_FOUR] = {
    [IRIS_OPS_MATMUL_ALL_REDUCE] = {304, 243, 115, 105, 107, 95, 89},
    [IRIS_OPS_ALL_GATHER_MATMUL] = {311, 202, 104, 102, 93, 90, 86},
    [IRIS_OPS_MATMUL_ALL_GATHER] = {311, 517, 246, 192, 216, 115, 113},
    [IRIS_OPS_MATMUL_REDUCE_SCATTER] = {288, 202, 103, 94, 90, 93, 86}};

static TEST(four_h200_take_shares_where_they_were_faster)
{
    for (int i = 0; i < 4 * NUM_OF_FOUR; i++) {
        const int64_t *shape = shapes_of_four[i % NUM_OF_FOUR];
        int share = percent_of_four[i / NUM_OF_FOUR][i % NUM_OF_FOUR];
        struct iris_ops_size size = size_of(i / NUM_OF_FOUR, shape, 4);

        /* Small shares were slower in all but one case. */
        assert_int_equal(iris_i_ops_table_parts(&size, "NVIDIA H200"),
                         share < 99 && shape[0] >= 4096 ? 4 : 1);
        size = size_of(i / NUM_OF_FOUR, shape, 16);
        assert_int_equal(iris_i_ops_table_parts(&size, "NVIDIA H200"), 1);
    }
}

static TEST(sizes_that_were_not_measured_stay_in_one_part)
{
    const int64_t large[] = {8192, 8192, 8192};
    struct iris_ops_size size = size_of(IRIS_OPS_ALL_GATHER_MATMUL, large, 2);

    assert_int_equal(iris_i_ops_table_parts(&size, h100), 4);
    assert_int_equal(iris_i_ops_table_parts(&size, "NVIDIA H200"), 4);
    assert_int_equal(iris_i_ops_table_parts(&size, "AMD Instinct MI300X"), 1);
    assert_int_equal(iris_i_ops_table_parts(&size, "CPU"), 1);
    size.dtype = IRIS_DTYPE_F32;
    assert_int_equal(iris_i_ops_table_parts(&size, h100), 1);
    size.dtype = IRIS_DTYPE_F16;
    assert_int_equal(iris_i_ops_table_parts(&size, h100), 4);
    size.by_column = 1;
    assert_int_equal(iris_i_ops_table_parts(&size, h100), 1);
}

/* Chunks whose rows do not fill blocks compute more. */
static TEST(ragged_chunks_are_not_worth_it)
{
    const int64_t even[] = {4096, 4096, 4096}, odd[] = {8448, 8192, 8192},
                  less[] = {4095, 4096, 4096};
    struct iris_ops_size size = size_of(IRIS_OPS_ALL_GATHER_MATMUL, even, 2);

    assert_int_equal(iris_i_ops_table_parts(&size, h100), 4);
    size = size_of(IRIS_OPS_ALL_GATHER_MATMUL, odd, 2); /* 33 blocks a share */
    assert_int_equal(iris_i_ops_table_parts(&size, h100), 1);
    size = size_of(IRIS_OPS_ALL_GATHER_MATMUL, less, 2);
    assert_int_equal(iris_i_ops_table_parts(&size, h100), 1);
}

/* ---- In a job ---- */

/* The chunks that a call of these sizes is planned with. */
static int planned(iris_t *iris, int chunks, int *planned_p)
{
    iris_tensor_t matrix = {.dtype = IRIS_DTYPE_F32,
                            .ndim = 2,
                            .shape = {512, 512},
                            .strides = {512, 1}};
    iris_tensor_t tensors[] = {matrix, matrix, matrix};
    struct iris_ops_options options;
    struct iris_ops_call call = {.name = "test",
                                 .op = IRIS_OPS_MATMUL_ALL_REDUCE,
                                 .a = &tensors[0],
                                 .b = &tensors[1],
                                 .out = &tensors[2]};

    for (int i = 0; i < 3; i++) {
        CHECK_OK(iris_malloc(iris, 512 * 512 * 4, &tensors[i].data));
    }
    iris_ops_options_init(&options);
    options.chunks = chunks;
    CHECK_OK(iris_i_ops_check(iris, &call, &options));
    *planned_p = call.plan.parts;
    return 0;
}

static int planned_body(iris_t *iris, void *arg)
{
    int chunks;

    CHECK_EQUAL(planned(iris, 0, &chunks), 0);
    CHECK_EQUAL(chunks, *(int *)arg);
    CHECK_EQUAL(planned(iris, 5, &chunks), 0);
    CHECK_EQUAL(chunks, 5);
    return 0;
}

static TEST(the_call_and_the_environment_come_before_the_table)
{
    int three = 3, one = 1;

    /* A CPU library's products of parts have other bits. */
    setenv("IRIS_BLAS", "none", 1);
    harness_run(2, planned_body, &one);
    setenv("IRIS_OPS_CHUNKS", "3", 1);
    harness_run(2, planned_body, &three);
}

static int ignored_body(iris_t *iris, void *arg)
{
    int chunks;

    (void)arg;
    CHECK_EQUAL(planned(iris, 5, &chunks), 0);
    CHECK_EQUAL(chunks, 1);
    return 0;
}

static TEST(chunks_that_are_ignored_are_told_at_debug)
{
    struct harness_capture capture;

    setenv("IRIS_LOG_LEVEL", "debug", 1);
    harness_capture(&capture);
    harness_run(1, ignored_body, NULL); /* nobody to overlap with */
    harness_captured(&capture);
    assert_non_null(strstr(capture.text, "test: takes 1 of the 5 chunks"));
    free(capture.text);
}

TEST_GROUP(unit);
