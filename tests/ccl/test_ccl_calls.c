/* SPDX-License-Identifier: MIT
 *
 * What is asked of a collective: what is wrong says so and does nothing,
 * options of other headers' sizes, workspaces and who may use them.
 */
#include "config.h"

#include "ccl/play.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 64

/* Calls that are refused on every rank alike. */
#define REFUSED(call, argument, remedy) \
    CHECK_BAD(iris, call, IRIS_ERR_INVALID, argument, remedy)
static int refused_arguments(iris_t *iris, float *in, float *out)
{
    REFUSED(iris_all_reduce(iris, NULL, out, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, NULL),
            "in is NULL", "pass");
    REFUSED(iris_all_reduce(iris, in, NULL, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, NULL),
            "out is NULL", "pass");
    REFUSED(iris_all_reduce(iris, (char *)in + 2, out, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, NULL),
            "not aligned for f32", "multiple of 4");
    REFUSED(iris_all_reduce(iris, in, in + 1, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, NULL),
            "overlap", "memory apart");
    REFUSED(iris_all_reduce(iris, in, out, SIZE_MAX / 2, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, NULL),
            "count", "check the count");
    REFUSED(iris_all_reduce(iris, in, out, (size_t)1 << 30, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, NULL),
            "in", "heap");
    REFUSED(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_BAND, NULL),
            "op band of f32", "pass SUM");
    REFUSED(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_BOOL,
                            IRIS_REDUCE_SUM, NULL),
            "of bool", "BAND");
    REFUSED(iris_all_reduce(iris, in, out, COUNT, (iris_dtype_t)77,
                            IRIS_REDUCE_SUM, NULL),
            "dtype 77", "IRIS_DTYPE_F32");
    REFUSED(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                            (iris_reduce_op_t)9, NULL),
            "(9)", "pass SUM");
    REFUSED(iris_ccl_broadcast(iris, in, out, COUNT, IRIS_DTYPE_F32, 2, NULL),
            "root 2", "pass 0 to 1");
    return 0;
}

static int refused_options(iris_t *iris, float *in, float *out)
{
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.all_reduce = IRIS_CCL_PUSH;
    REFUSED(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, &options),
            "no variant push", "iris/ccl.h");
    options.all_reduce = IRIS_CCL_ONE_SHOT;
    REFUSED(iris_all_reduce(iris, in, in, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, &options),
            "variant one_shot", "not the same memory");
    options.all_reduce = IRIS_CCL_AUTO;
    options.num_cus = 100000;
    REFUSED(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, &options),
            "num_cus is 100000", "pass 1 to");
    options.num_cus = 0;
    options.async = 3;
    REFUSED(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, &options),
            "async is 3", "pass 0 to 1");
    options.async = 0;
    options.workspace = (iris_ccl_workspace_t *)(void *)in;
    REFUSED(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, &options),
            "workspace", "iris_ccl_workspace_create");
    REFUSED(iris_ccl_workspace_destroy(iris, options.workspace), "not a live",
            "once");
    options.size = 3;
    REFUSED(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, &options),
            "options of 3 bytes", "iris_ccl_options_init");
    options.size = sizeof options - 1; /* half a field */
    REFUSED(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, &options),
            "options of", "iris_ccl_options_init");
    return 0;
}
#undef REFUSED

static RANK_TEST(what_is_wrong_says_so, 2)
{
    float *in, *out;

    CHECK_OK(iris_malloc(iris, COUNT * sizeof *in * 4, (void **)&in));
    CHECK_OK(iris_malloc(iris, COUNT * sizeof *in * 4, (void **)&out));
    CHECK_EQUAL(refused_arguments(iris, in, out), 0);
    CHECK_EQUAL(refused_options(iris, in, out), 0);
    /* Nothing of that has cost anything. */
    CHECK_OK(iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                             IRIS_REDUCE_SUM, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* ---- A group of one ---- */

static RANK_TEST(a_group_of_one_refuses_what_others_do, 1, 2)
{
    int self = iris_rank(iris);
    struct iris_ccl_options options;
    float *in, *out;

    iris_ccl_options_init(&options);
    CHECK_OK(iris_malloc(iris, COUNT * sizeof *in * 4, (void **)&in));
    CHECK_OK(iris_malloc(iris, COUNT * sizeof *in * 4, (void **)&out));
    if (iris_num_ranks(iris) == 1) {
        CHECK_EQUAL(refused_options(iris, in, out), 0);
    }
    CHECK_OK(iris_group_create(iris, &self, 1, &options.group));
    options.num_cus = -1;
    CHECK_BAD(iris,
              iris_all_gather(iris, in, out, COUNT, IRIS_DTYPE_F32, &options),
              IRIS_ERR_INVALID, "num_cus is -1", "pass 1 to");
    options.num_cus = 0;
    options.broadcast = IRIS_CCL_RING;
    CHECK_BAD(
        iris,
        iris_ccl_broadcast(iris, in, out, COUNT, IRIS_DTYPE_F32, 0, &options),
        IRIS_ERR_INVALID, "no variant ring", "iris/ccl.h");
    options.all_reduce = IRIS_CCL_ATOMIC;
    CHECK_BAD(iris,
              iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                              IRIS_REDUCE_MAX, &options),
              IRIS_ERR_INVALID, "variant atomic", "operation SUM");
    return 0;
}

/* Every NaN becomes the same, in matrices and in place, too; what is none stays
 * as it is. */
static const uint32_t nans_in[] = {0x7fc12345, 0xffc00000, 0x7f800001,
                                   0x80000000, 0x3f800001, 0xff800000,
                                   0xffffffff};
static const uint32_t nans_out[] = {0x7fc00000, 0x7fc00000, 0x7fc00000,
                                    0x80000000, 0x3f800001, 0xff800000,
                                    0x7fc00000};

static RANK_TEST(a_group_of_one_has_one_nan, 1, 3)
{
    static const uint16_t half_in[] = {0x7e01, 0xfe00, 0x7c01, 0x8000, 0x7c00};
    static const uint16_t half_out[] = {0x7e00, 0x7e00, 0x7e00, 0x8000, 0x7c00};
    struct iris_ccl_options options;
    int self = iris_rank(iris);
    uint32_t *in, *out, seen[16];

    iris_ccl_options_init(&options);
    CHECK_OK(iris_group_create(iris, &self, 1, &options.group));
    CHECK_OK(iris_malloc(iris, sizeof seen, (void **)&in));
    CHECK_OK(iris_calloc(iris, 1, sizeof seen, (void **)&out));
    CHECK_OK(harness_write(iris, in, nans_in, sizeof nans_in));
    CHECK_OK(iris_reduce_scatter(iris, in, out, 7, IRIS_DTYPE_F32,
                                 IRIS_REDUCE_MIN, &options));
    CHECK_OK(harness_read(iris, seen, out, sizeof nans_out));
    CHECK(memcmp(seen, nans_out, sizeof nans_out) == 0);
    CHECK_OK(iris_all_reduce(iris, in, in, 7, IRIS_DTYPE_I32, IRIS_REDUCE_SUM,
                             &options));
    CHECK_OK(iris_all_gather(iris, in, out, 7, IRIS_DTYPE_F32, &options));
    CHECK_OK(harness_read(iris, seen, out, sizeof nans_in));
    CHECK(memcmp(seen, nans_in, sizeof nans_in) == 0);
    options.rows = 2;
    options.in_stride = options.out_stride = 4;
    CHECK_OK(iris_all_reduce(iris, in, in, 3, IRIS_DTYPE_F32, IRIS_REDUCE_SUM,
                             &options));
    CHECK_OK(harness_read(iris, seen, in, sizeof nans_in));
    CHECK(memcmp(seen, nans_out, 3 * sizeof seen[0]) == 0);
    CHECK(memcmp(seen + 3, nans_in + 3, 3 * sizeof seen[0]) == 0);
    CHECK_EQUAL(seen[6], nans_out[6]);
    options.rows = options.in_stride = options.out_stride = 0;
    CHECK_OK(harness_write(iris, in, half_in, sizeof half_in));
    CHECK_OK(iris_all_reduce(iris, in, in, 5, IRIS_DTYPE_F16, IRIS_REDUCE_SUM,
                             &options));
    CHECK_OK(harness_read(iris, seen, in, sizeof half_out));
    CHECK(memcmp(seen, half_out, sizeof half_out) == 0);
    return 0;
}

/* Where kernels cannot access memory of the host, it is refused; a kernel that
 * did would end the context. */
static RANK_TEST(host_memory_never_ends_the_context, 2)
{
    float *host = calloc(4, sizeof *host), *heap;
    iris_status_t status;

    CHECK(host != NULL);
    CHECK_OK(iris_calloc(iris, 4, sizeof *heap, (void **)&heap));
    status = iris_all_reduce(iris, host, host, 4, IRIS_DTYPE_F32,
                             IRIS_REDUCE_SUM, NULL);
    if (status != IRIS_OK) {
        CHECK(harness_on_gpu(iris));
        CHECK_STATUS(status, IRIS_ERR_INVALID);
        CHECK_MESSAGE("are host memory");
        CHECK_MESSAGE("pinned memory");
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_all_reduce(iris, heap, heap, 4, IRIS_DTYPE_F32,
                             IRIS_REDUCE_SUM, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    free(host);
    return iris_barrier(iris, NULL, NULL);
}

static RANK_TEST(nothing_is_legal, ALL_RANKS)
{
    CHECK_OK(iris_all_reduce(iris, NULL, NULL, 0, IRIS_DTYPE_F32,
                             IRIS_REDUCE_SUM, NULL));
    CHECK_OK(iris_all_gather(iris, NULL, NULL, 0, IRIS_DTYPE_COMPLEX64, NULL));
    CHECK_OK(iris_reduce_scatter(iris, NULL, NULL, 0, IRIS_DTYPE_I8,
                                 IRIS_REDUCE_BXOR, NULL));
    CHECK_OK(iris_all_to_all(iris, NULL, NULL, 0, IRIS_DTYPE_BOOL, NULL));
    CHECK_OK(iris_ccl_broadcast(iris, NULL, NULL, 0, IRIS_DTYPE_F64, 0, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* A program with an older header has fewer options, one with a newer more. */
static RANK_TEST(options_may_be_of_another_header, 2)
{
    union {
        struct iris_ccl_options options;
        char bytes[sizeof(struct iris_ccl_options) + 16];
    } space;
    int32_t *in;

    CHECK_OK(iris_malloc(iris, sizeof *in, (void **)&in));
    memset(&space, 0x7f, sizeof space);
    /* Every header's struct is as long as some pointers. */
    iris_ccl_options_init_sized(&space.options,
                                offsetof(struct iris_ccl_options, all_gather));
    CHECK_OK(iris_all_reduce(iris, in, in, 1, IRIS_DTYPE_I32, IRIS_REDUCE_SUM,
                             &space.options));
    iris_ccl_options_init_sized(&space.options, sizeof space);
    CHECK_OK(iris_all_reduce(iris, in, in, 1, IRIS_DTYPE_I32, IRIS_REDUCE_SUM,
                             &space.options));
    space.bytes[sizeof space - 1] = 1;
    CHECK_BAD(iris,
              iris_all_reduce(iris, in, in, 1, IRIS_DTYPE_I32, IRIS_REDUCE_SUM,
                              &space.options),
              IRIS_ERR_INVALID, "does not know", "as new as");
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* Bools combine as bits, complex numbers by their two halves. */
static RANK_TEST(bools_and_complex_numbers_reduce, ALL_RANKS)
{
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    float mine[2] = {(float)rank + 0.5f, -1.0f}, sum[2];
    unsigned char any[2] = {(unsigned char)(rank == 1), 0}, result[2];
    char *buffer;

    CHECK_OK(iris_malloc(iris, 64, (void **)&buffer));
    CHECK_OK(harness_write(iris, buffer, mine, sizeof mine));
    CHECK_OK(iris_all_reduce(iris, buffer, buffer, 1, IRIS_DTYPE_COMPLEX64,
                             IRIS_REDUCE_SUM, NULL));
    CHECK_OK(harness_read(iris, sum, buffer, sizeof sum));
    CHECK_EQUAL((int)(2 * sum[0]), num_ranks * num_ranks);
    CHECK_EQUAL((int)sum[1], -num_ranks);
    CHECK_OK(harness_write(iris, buffer, any, sizeof any));
    CHECK_OK(iris_all_reduce(iris, buffer, buffer, 2, IRIS_DTYPE_BOOL,
                             IRIS_REDUCE_BOR, NULL));
    CHECK_OK(harness_read(iris, result, buffer, sizeof result));
    CHECK_EQUAL(result[0], num_ranks > 1);
    CHECK_EQUAL(result[1], 0);
    return 0;
}

/* ---- Workspaces ---- */

static RANK_TEST(each_stream_has_a_workspace, 2, 4)
{
    struct iris_ccl_options options[2];
    iris_ccl_workspace_t *workspace;
    iris_stream_t *stream;
    uint64_t *buffers, seen[2], ranks = (uint64_t)iris_num_ranks(iris);

    CHECK_OK(iris_calloc(iris, 2, sizeof *buffers, (void **)&buffers));
    CHECK_OK(iris_stream_create(iris, &stream));
    iris_ccl_options_init(&options[0]);
    iris_ccl_options_init(&options[1]);
    options[1].stream = stream;
#define REDUCE(i)                                                      \
    iris_all_reduce(iris, &buffers[i], &buffers[i], 1, IRIS_DTYPE_U64, \
                    IRIS_REDUCE_SUM, &options[i])
    CHECK_OK(REDUCE(0));
    CHECK_BAD(iris, REDUCE(1), IRIS_ERR_STATE, "another stream",
              "iris_ccl_workspace_create");
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(REDUCE(1)); /* which is known to be done now */
    CHECK_BAD(iris, REDUCE(0), IRIS_ERR_STATE, "another stream",
              "iris_stream_synchronize");
    iris_stream_destroy(iris, stream);
    CHECK_OK(REDUCE(0)); /* so it is with a stream that is gone */
    CHECK_OK(iris_stream_synchronize(iris, NULL));

    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_ccl_workspace_create(iris, NULL, &workspace));
    options[1].stream = stream;
    options[1].workspace = workspace;
    for (seen[0] = 0; seen[0] < 2; seen[0]++) {
        CHECK_OK(harness_write(iris, &buffers[seen[0]], &(uint64_t){1},
                               sizeof(uint64_t)));
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int i = 0; i < 10; i++) { /* by turns, or one stream ahead */
        CHECK_OK(REDUCE(iris_rank(iris) % 2 ? i % 2 : i / 5));
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(harness_read(iris, seen, buffers, sizeof seen));
    CHECK_EQUAL(seen[0], ranks * ranks * ranks * ranks * ranks);
    CHECK_EQUAL(seen[1], seen[0]);
#undef REDUCE
    CHECK_OK(iris_ccl_workspace_destroy(iris, workspace));
    CHECK_OK(iris_ccl_workspace_destroy(iris, NULL));
    return 0;
}

static RANK_TEST(groups_take_turns_with_the_memory, 4)
{
    int rank = iris_rank(iris), pair[2] = {rank / 2 * 2, rank / 2 * 2 + 1};
    struct iris_ccl_options options;
    uint32_t *word, seen, mine = 1u << rank;

    CHECK_OK(iris_malloc(iris, sizeof *word, (void **)&word));
    iris_ccl_options_init(&options);
    CHECK_OK(iris_group_create(iris, pair, 2, &options.group));
    CHECK_BAD(iris, iris_all_reduce_preamble(iris, &options), IRIS_ERR_STATE,
              "group of 2 of 4", "iris_ccl_prepare");
    CHECK_OK(iris_ccl_prepare(iris));
    CHECK_OK(iris_ccl_prepare(iris));
    for (int i = 0; i < 40; i++) { /* a group's memory is free after it */
        CHECK_OK(harness_write(iris, word, &mine, sizeof mine));
        CHECK_OK(iris_all_reduce(iris, word, word, 1, IRIS_DTYPE_U32,
                                 IRIS_REDUCE_BOR, &options));
        CHECK_OK(harness_read(iris, &seen, word, sizeof seen));
        CHECK_EQUAL(seen, 3u << pair[0]);
        CHECK_OK(iris_group_destroy(iris, options.group));
        CHECK_OK(iris_group_create(iris, pair, 2, &options.group));
    }
    return 0;
}

/* ---- Members that do not play along ---- */

static RANK_TEST(members_that_differ_are_told, 2)
{
    struct iris_ccl_options options;
    char *buffer;

    CHECK_OK(iris_calloc(iris, 1, 4096, (void **)&buffer));
    iris_ccl_options_init(&options);
    options.all_reduce = IRIS_CCL_TWO_SHOT;
    CHECK_OK(iris_all_reduce(iris, buffer, buffer,
                             100 + (size_t)iris_rank(iris), IRIS_DTYPE_F32,
                             IRIS_REDUCE_SUM, &options));
    CHECK_BAD(iris, iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH,
              "different collective calls", "the same calls");
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    /* The workspace was left in the middle of a step. */
    CHECK_OK(iris_all_reduce(iris, buffer, buffer, 100, IRIS_DTYPE_F32,
                             IRIS_REDUCE_SUM, &options));
    CHECK_BAD(iris, iris_stream_synchronize(iris, NULL), IRIS_ERR_INVALID,
              "did not end", "workspace");
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_ccl_workspace_create(iris, NULL, &options.workspace));
    CHECK_OK(iris_all_reduce(iris, buffer, buffer, 100, IRIS_DTYPE_F32,
                             IRIS_REDUCE_SUM, &options));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static int absent_body(iris_t *iris, void *arg)
{
    struct iris_ccl_options options;
    uint32_t *word;

    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    iris_ccl_options_init(&options);
    CHECK_OK(iris_all_reduce_preamble(iris, &options));
    for (int i = 0; i < 4; i++) {
        options.all_reduce = play_variant(PLAY_ALL_REDUCE, i);
        if (iris_rank(iris) == 0 && options.all_reduce != IRIS_CCL_ONE_SHOT) {
            CHECK_OK(iris_ccl_workspace_create(iris, NULL, &options.workspace));
            CHECK_OK(iris_all_reduce(iris, word, word, 1, IRIS_DTYPE_U32,
                                     IRIS_REDUCE_SUM, &options));
            CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_TIMEOUT);
            CHECK_MESSAGE("IRIS_DEVICE_TIMEOUT_MS");
            CHECK_OK(iris_clear_error(iris));
        } else if (options.all_reduce != IRIS_CCL_ONE_SHOT) {
            CHECK_OK(iris_ccl_workspace_create(iris, NULL, &options.workspace));
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    return 0;
}

static TEST(a_member_that_does_not_come_ends_the_wait)
{
    setenv("IRIS_DEVICE_TIMEOUT_MS", "100", 1);
    harness_run(2, absent_body, NULL);
    unsetenv("IRIS_DEVICE_TIMEOUT_MS");
}

TEST_GROUP(rank);
