/* SPDX-License-Identifier: MIT
 *
 * Filling tensors with random numbers by size, beside iris_memset of the same
 * memory.
 */
#include "config.h"

#include "bench.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ENQUEUED 64

enum { RAND, RANDN, RANDINT };

static const char *const random_names[] = {
    "rand_f32", "rand_f64", "randn_f32", "randn_f64", "randint_i32", NULL};

static const struct {
    int what;
    iris_dtype_t dtype;
} random_ops[] = {
    {RAND, IRIS_DTYPE_F32},  {RAND, IRIS_DTYPE_F64},    {RANDN, IRIS_DTYPE_F32},
    {RANDN, IRIS_DTYPE_F64}, {RANDINT, IRIS_DTYPE_I32},
};

struct numbers {
    iris_tensor_t memory; /* on the heap */
    unsigned char *host;  /* room for it twice */
};

struct random_point {
    int what;
    iris_tensor_t out;
};

static iris_status_t random_open(struct bench *b)
{
    struct numbers *numbers = calloc(1, sizeof *numbers);
    struct iris_tensor_options options;

    if (numbers == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    b->state = numbers;
    numbers->host = malloc(2 * b->options.max_bytes);
    if (numbers->host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    iris_tensor_options_init(&options);
    options.dtype = IRIS_DTYPE_U8;
    return iris_empty(b->iris, IRIS_SHAPE((int64_t)b->options.max_bytes),
                      &options, &numbers->memory);
}

static void random_close(struct bench *b)
{
    struct numbers *numbers = b->state;

    if (numbers == NULL) {
        return;
    }
    (void)iris_tensor_free(b->iris, &numbers->memory);
    free(numbers->host);
    free(numbers);
}

/* The first numbers of a sequence of their own, each time. */
static iris_status_t draw(struct bench *b, int what, const iris_tensor_t *out,
                          uint64_t block)
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

static iris_status_t enqueue(struct bench *b, const void *arg)
{
    const struct random_point *point = arg;

    return draw(b, point->what, &point->out, 0);
}

static iris_status_t enqueue_memset(struct bench *b, const void *arg)
{
    const struct random_point *point = arg;

    return iris_memset(b->iris, point->out.data, 1,
                       iris_tensor_bytes(&point->out), NULL);
}

static iris_status_t run(struct bench *b, const void *arg, uint32_t reps,
                         bool reference)
{
    return bench_enqueue(b, reference ? enqueue_memset : enqueue, arg, reps);
}

/* The same numbers made in two pieces, the second from the block it begins
 * with, which other workgroups make. */
static iris_status_t draw_in_pieces(struct bench *b,
                                    const struct random_point *point)
{
    int64_t first = iris_tensor_numel(&point->out) / 8 * 4;
    int per_block = point->out.dtype == IRIS_DTYPE_F64 ? 2 : 4;
    iris_tensor_t piece = point->out;
    iris_status_t status;

    piece.shape[0] = first;
    status = draw(b, point->what, &piece, 0);
    piece.shape[0] = iris_tensor_numel(&point->out) - first;
    piece.data =
        (char *)piece.data + (size_t)first * iris_dtype_size(piece.dtype);
    return status == IRIS_OK
               ? draw(b, point->what, &piece, (uint64_t)(first / per_block))
               : status;
}

static iris_status_t verify(struct bench *b, const struct random_point *point,
                            uint64_t *wrong_p)
{
    struct numbers *numbers = b->state;
    size_t width = iris_dtype_size(point->out.dtype);
    size_t bytes = iris_tensor_bytes(&point->out);
    iris_status_t status = enqueue(b, point);

    if (status == IRIS_OK) {
        status = bench_copy(b, numbers->host, point->out.data, bytes);
    }
    if (status == IRIS_OK) {
        status = iris_memset(b->iris, point->out.data, 1, bytes, NULL);
    }
    if (status == IRIS_OK) {
        status = draw_in_pieces(b, point);
    }
    if (status == IRIS_OK) {
        status = bench_copy(b, numbers->host + bytes, point->out.data, bytes);
    }
    for (size_t i = 0; i < bytes && status == IRIS_OK; i += width) {
        *wrong_p +=
            memcmp(numbers->host + i, numbers->host + bytes + i, width) != 0;
    }
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

static iris_status_t run_random(struct bench *b, size_t op,
                                struct bench_row *row_p)
{
    struct numbers *numbers = b->state;
    struct random_point point = {.what = random_ops[op].what,
                                 .out = numbers->memory};
    struct bench_work work = {.run = run,
                              .arg = &point,
                              .max_reps = MAX_ENQUEUED,
                              .has_reference = true};
    iris_status_t status;

    point.out.dtype = random_ops[op].dtype;
    point.out.shape[0] =
        (int64_t)(row_p->bytes / iris_dtype_size(point.out.dtype));
    row_p->variant = iris_dtype_name(point.out.dtype);
    status = verify(b, &point, &row_p->wrong);
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, row_p);
    }
    bench_rate_bytes(row_p, row_p->bytes, "iris_memset");
    return status;
}

const struct bench_group bench_random = {
    .name = "random",
    .text = "random numbers into a tensor of this rank's, beside iris_memset",
    .ops = random_names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = 8,
    .open = random_open,
    .run = run_random,
    .close = random_close,
};
