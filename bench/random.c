/* SPDX-License-Identifier: MIT
 *
 * Fills tensors with random numbers by size, in alternation with iris_memset of
 * the same memory.
 */
#include "config.h"

#include "bench.h"

#include <string.h>

#define MAX_ENQUEUED 64

enum { RAND, RANDN, RANDINT };

static const char *const random_names[] = {
    "rand_f32", "rand_f64", "randn_f32", "randn_f64", "randint_i32", NULL};

static const struct bench_tensor_op random_ops[] = {
    {RAND, IRIS_DTYPE_F32},  {RAND, IRIS_DTYPE_F64},    {RANDN, IRIS_DTYPE_F32},
    {RANDN, IRIS_DTYPE_F64}, {RANDINT, IRIS_DTYPE_I32},
};

/* The host buffer holds the numbers twice. */
static iris_status_t random_open(struct bench *b)
{
    return bench_tensor_open(b, 2 * b->options.max_bytes);
}

/* Draws numbers of the rank's sequence, from `block` on, with a new generator. */
static iris_status_t draw_numbers(struct bench *b, int what,
                                  const iris_tensor_t *out, uint64_t block)
{
    iris_generator_t generator = iris_generator_make(1, (uint64_t)b->rank);
    iris_shape_t shape = IRIS_SHAPE(iris_tensor_numel(out));
    struct iris_tensor_options options;
    iris_tensor_t result;

    generator.offset = block;
    iris_tensor_options_init(&options);
    options.dtype = (int)out->dtype;
    options.out = out;
    options.generator = &generator;
    switch (what) {
    case RAND:
        return iris_rand(b->iris, shape, &options, &result);
    case RANDN:
        return iris_randn(b->iris, shape, &options, &result);
    default:
        return iris_randint(b->iris, -5, 1000000, shape, &options, &result);
    }
}

static iris_status_t enqueue_random(struct bench *b, const void *arg)
{
    const struct bench_tensor_point *point = arg;

    return draw_numbers(b, point->what, &point->out, 0);
}

/* Draws the same numbers in two pieces. The second piece begins at its own
 * block of the generator, and other workgroups make it. */
static iris_status_t draw_in_pieces(struct bench *b,
                                    const struct bench_tensor_point *point)
{
    int64_t first = iris_tensor_numel(&point->out) / 8 * 4;
    int per_block = point->out.dtype == IRIS_DTYPE_F64 ? 2 : 4;
    iris_tensor_t piece = point->out;
    iris_status_t status;

    piece.shape[0] = first;
    status = draw_numbers(b, point->what, &piece, 0);
    piece.shape[0] = iris_tensor_numel(&point->out) - first;
    piece.data =
        (char *)piece.data + (size_t)first * iris_dtype_size(piece.dtype);
    return status == IRIS_OK ? draw_numbers(b, point->what, &piece,
                                            (uint64_t)(first / per_block))
                             : status;
}

static iris_status_t verify_random(struct bench *b,
                                   const struct bench_tensor_point *point,
                                   uint64_t *wrong_p)
{
    const struct bench_tensor *state = b->state;
    size_t width = iris_dtype_size(point->out.dtype);
    size_t bytes = iris_tensor_bytes(&point->out);
    iris_status_t status = enqueue_random(b, point);

    if (status == IRIS_OK) {
        status = bench_copy(b, state->host, point->out.data, bytes);
    }
    if (status == IRIS_OK) {
        status = bench_tensor_memset(b, point);
    }
    if (status == IRIS_OK) {
        status = draw_in_pieces(b, point);
    }
    if (status == IRIS_OK) {
        status = bench_copy(b, state->host + bytes, point->out.data, bytes);
    }
    for (size_t i = 0; i < bytes && status == IRIS_OK; i += width) {
        *wrong_p +=
            memcmp(state->host + i, state->host + bytes + i, width) != 0;
    }
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

static iris_status_t run_random(struct bench *b, size_t op,
                                struct bench_row *row_p)
{
    static const struct bench_tensor_kind kind = {.ops = random_ops,
                                                  .max_enqueued = MAX_ENQUEUED,
                                                  .enqueue = enqueue_random,
                                                  .verify = verify_random};

    return bench_tensor_run(b, &kind, op, row_p);
}

const struct bench_group bench_random = {
    .name = "random",
    .text = "random numbers into a tensor of this rank's, beside iris_memset",
    .ops = random_names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = 8,
    .open = random_open,
    .run = run_random,
    .close = bench_tensor_close,
};
