/* SPDX-License-Identifier: MIT
 *
 * Ranks whose threads have different floating-point environments: results are
 * the same on all members, and each thread keeps its environment.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/ccl.h>
#include <iris/device.h>
#include <iris/tensor.h>

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#define COUNT 64
#define MEMBERS 3

enum mode { NEAREST, UPWARD, TO_ZERO, FLUSHING, MODES };

static void set_mode(enum mode mode)
{
    static const int rounding[MODES] = {FE_TONEAREST, FE_UPWARD, FE_TOWARDZERO,
                                        FE_TONEAREST};
#if defined(__SSE__)
    unsigned bits = mode == FLUSHING ? 0x8040u : 0; /* flush-to-zero, and
                                                     * subnormals are zero */
    unsigned control = _mm_getcsr() & ~0x8040u;

    _mm_setcsr(control | bits);
#endif
    (void)fesetround(rounding[mode]);
}

static int has_mode(enum mode mode)
{
    int is_flushing = 0;

#if defined(__SSE__)
    is_flushing = (_mm_getcsr() & 0x8040u) == 0x8040u;
#else
    is_flushing = mode == FLUSHING;
#endif
    return is_flushing == (mode == FLUSHING) &&
           fegetround() == (mode == UPWARD    ? FE_UPWARD
                            : mode == TO_ZERO ? FE_TOWARDZERO
                                              : FE_TONEAREST);
}

struct third_args {
    volatile float *out; /* a third, and a subnormal number doubled */
};

IRIS_KERNEL(third, struct third_args)
{
    if (iris_wg_leader(wg)) {
        volatile float three = 3, small = 1e-41f;

        args->out[0] = 1 / three;
        args->out[1] = small + small;
    }
}

struct board {
    iris_t *iris;
    iris_stream_t *stream;
    float *in;
    float *out;
    float *all;
};

/* The value of out[i] in the default environment, by integers for tiny ones. */
static float sum_of(int n, int i)
{
    float sum = 0;

    for (int r = 0; r < n; r++) {
        sum += i % 2 ? 1.0f / (float)(3 + r + i) : (float)(i + 1 + r) * 1e-41f;
    }
    return sum;
}

static int check_reduce(struct board *board, iris_ccl_variant_t variant,
                        const float *in, const float *want)
{
    int n = iris_num_ranks(board->iris);
    struct iris_ccl_options options;
    float seen[MEMBERS * COUNT];

    iris_ccl_options_init(&options);
    options.all_reduce = variant;
    options.stream = board->stream;
    CHECK_OK(iris_ccl_workspace_create(board->iris, NULL, &options.workspace));
    CHECK_OK(iris_memcpy_sync(board->iris, board->in, in, COUNT * sizeof *in));
    CHECK_OK(iris_barrier(board->iris, NULL, NULL));
    CHECK_OK(iris_all_reduce(board->iris, board->in, board->out, COUNT,
                             IRIS_DTYPE_F32, IRIS_REDUCE_SUM, &options));
    CHECK_OK(iris_all_gather(board->iris, board->out, board->all, COUNT,
                             IRIS_DTYPE_F32, &options));
    CHECK_OK(iris_stream_synchronize(board->iris, board->stream));
    CHECK_OK(iris_memcpy_sync(board->iris, seen, board->all,
                              (size_t)n * COUNT * sizeof *seen));
    for (int r = 0; r < n; r++) {
        CHECK(memcmp(&seen[r * COUNT], want, COUNT * sizeof *want) == 0);
    }
    CHECK_OK(iris_ccl_workspace_destroy(board->iris, options.workspace));
    return 0;
}

static int check_kernel(struct board *board)
{
    struct third_args args = {board->out};
    uint32_t bits[2];

    CHECK_OK(iris_launch(board->iris, third, 1, 1, &args, sizeof args,
                         board->stream));
    CHECK_OK(iris_stream_synchronize(board->iris, board->stream));
    CHECK_OK(iris_memcpy_sync(board->iris, bits, board->out, sizeof bits));
    CHECK_EQUAL(bits[0], 0x3eaaaaabu);
    CHECK_EQUAL(bits[1], 2 * 0x1be0u);
    return 0;
}

/* Conversions on the host: a third and a subnormal number as elements. */
static int check_tensors(struct board *board)
{
    iris_shape_t one = IRIS_SHAPE(1);
    const double values[] = {1.0 / 3, 1e-41};
    const uint32_t want[] = {0x3eaaaaabu, 0x1be0u};
    iris_tensor_t tensor;
    uint32_t seen;

    for (int i = 0; i < 2; i++) {
        CHECK_OK(iris_full(board->iris, one, iris_value_float(values[i]), NULL,
                           &tensor));
        CHECK_OK(iris_memcpy_sync(board->iris, &seen, tensor.data, 4));
        CHECK_EQUAL(seen, want[i]);
        CHECK_OK(iris_tensor_free(board->iris, &tensor));
    }
    return 0;
}

static int mode_body(iris_t *iris, void *arg)
{
    static const iris_ccl_variant_t variants[] = {
        IRIS_CCL_AUTO, IRIS_CCL_ONE_SHOT, IRIS_CCL_TWO_SHOT,
        IRIS_CCL_ONE_SHOT_PACKET, IRIS_CCL_TWO_SHOT_PACKET};
    enum mode mode = *(enum mode *)arg;
    int rank = iris_rank(iris), n = iris_num_ranks(iris);
    struct board board = {.iris = iris};
    float in[COUNT], want[COUNT];

    mode = rank == 0 ? mode : NEAREST;
    for (int i = 0; i < COUNT; i++) {
        in[i] = i % 2 ? 1.0f / (float)(3 + rank + i)
                      : (float)(i + 1 + rank) * 1e-41f;
        want[i] = sum_of(n, i);
    }
    set_mode(mode);
    /* The stream's threads inherit the environment. */
    CHECK_OK(iris_stream_create(iris, &board.stream));
    CHECK_OK(iris_malloc_typed(iris, COUNT, &board.in));
    CHECK_OK(iris_malloc_typed(iris, COUNT, &board.out));
    CHECK_OK(iris_malloc_typed(iris, MEMBERS * COUNT, &board.all));
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        CHECK_EQUAL(check_reduce(&board, variants[v], in, want), 0);
        CHECK(has_mode(mode));
    }
    if (iris_num_nodes(iris) == 1) {
        CHECK_EQUAL(check_kernel(&board), 0);
        CHECK_EQUAL(check_tensors(&board), 0);
    }
    CHECK(has_mode(mode));
    iris_stream_destroy(iris, board.stream);
    CHECK(has_mode(mode));
    set_mode(NEAREST);
    return 0;
}

static TEST(members_get_the_same_bits_in_any_environment)
{
    for (int mode = 0; mode < MODES; mode++) {
        enum mode one = (enum mode)mode;

        harness_run(2, mode_body, &one);
        harness_run(3, mode_body, &one);
    }
}

static TEST(nodes_get_the_same_bits_in_any_environment)
{
    setenv("IRIS_NODES", "2", 1);
    for (int mode = 1; mode < MODES; mode++) {
        enum mode one = (enum mode)mode;

        harness_run(3, mode_body, &one);
    }
    unsetenv("IRIS_NODES");
}

TEST_GROUP(rank);
