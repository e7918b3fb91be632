/* SPDX-License-Identifier: MIT
 *
 * Collectives on the default stream, of f32 by the size of the larger buffer.
 */
#include "config.h"

#include "bench.h"

#include <stdlib.h>
#include <string.h>

/* Enqueued ahead of the host's wait. */
#define MAX_ENQUEUED 200

enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST };

static const char *const names[] = {"all_reduce",     "all_gather",
                                    "reduce_scatter", "all_to_all",
                                    "broadcast",      NULL};

struct collectives {
    float *in; /* on the heap, as out */
    float *out;
    float *host;
};

struct point {
    size_t op;
    size_t count; /* elements, as the call takes it */
};

static iris_status_t collectives_open(struct bench *b)
{
    struct collectives *c = calloc(1, sizeof *c);
    iris_status_t status;

    if (c == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    b->state = c;
    c->host = malloc(b->options.max_bytes);
    if (c->host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    status = iris_malloc(b->iris, b->options.max_bytes, (void **)&c->in);
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, b->options.max_bytes, (void **)&c->out);
    }
    /* A graph of the default stream cannot have a first call. */
    return status == IRIS_OK ? iris_all_reduce_preamble(b->iris, NULL) : status;
}

static void collectives_close(struct bench *b)
{
    struct collectives *c = b->state;

    if (c != NULL && iris_free(b->iris, c->out) == IRIS_OK) {
        iris_free(b->iris, c->in);
    }
    if (c != NULL) {
        free(c->host);
    }
    free(c);
}

static iris_status_t enqueue(struct bench *b, const void *arg)
{
    const struct point *point = arg;
    struct collectives *c = b->state;
    size_t count = point->count;

    switch (point->op) {
    case ALL_REDUCE:
        return iris_all_reduce(b->iris, c->in, c->out, count, IRIS_DTYPE_F32,
                               IRIS_REDUCE_SUM, NULL);
    case ALL_GATHER:
        return iris_all_gather(b->iris, c->in, c->out, count, IRIS_DTYPE_F32,
                               NULL);
    case REDUCE_SCATTER:
        return iris_reduce_scatter(b->iris, c->in, c->out, count,
                                   IRIS_DTYPE_F32, IRIS_REDUCE_SUM, NULL);
    case ALL_TO_ALL:
        return iris_all_to_all(b->iris, c->in, c->out, count, IRIS_DTYPE_F32,
                               NULL);
    default:
        return iris_ccl_broadcast(b->iris, c->in, c->out, count, IRIS_DTYPE_F32,
                                  0, NULL);
    }
}

static iris_status_t run(struct bench *b, const void *arg, uint32_t reps,
                         bool reference)
{
    (void)reference;
    return bench_enqueue(b, enqueue, arg, reps);
}

/* What a rank has in its i-th element: small integers, which add up exactly. */
static float value_of(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 3) % 61);
}

/* What the i-th element of the result is to be. */
static float expected(const struct bench *b, const struct point *point,
                      size_t i)
{
    size_t first = point->op == REDUCE_SCATTER || point->op == ALL_TO_ALL
                       ? (size_t)b->rank * point->count
                       : 0;
    float sum = 0;

    if (point->op == BROADCAST) {
        return value_of(0, i);
    }
    if (point->op == ALL_GATHER || point->op == ALL_TO_ALL) {
        return value_of((int)(i / point->count), first + i % point->count);
    }
    for (int rank = 0; rank < b->num_ranks; rank++) {
        sum += value_of(rank, first + i);
    }
    return sum;
}

static iris_status_t verify(struct bench *b, const struct point *point,
                            uint64_t *wrong_p)
{
    struct collectives *c = b->state;
    size_t ranks = (size_t)b->num_ranks;
    size_t parts =
        point->op == ALL_GATHER || point->op == ALL_TO_ALL ? ranks : 1;
    size_t count = b->options.max_bytes / sizeof *c->host;
    iris_status_t status;

    for (size_t i = 0; i < count; i++) {
        c->host[i] = value_of(b->rank, i);
    }
    status = bench_copy(b, c->in, c->host, count * sizeof *c->host);
    status = status == IRIS_OK ? enqueue(b, point) : status;
    count = parts * point->count;
    if (status == IRIS_OK) {
        status = bench_copy(b, c->host, c->out, count * sizeof *c->host);
    }
    for (size_t i = 0; i < count && status == IRIS_OK; i++) {
        *wrong_p += c->host[i] != expected(b, point, i);
    }
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

static iris_status_t run_collectives(struct bench *b, size_t op,
                                     struct bench_row *row_p)
{
    size_t parts = op == ALL_REDUCE || op == BROADCAST ? 1 : b->num_ranks;
    struct point point = {op, row_p->bytes / sizeof(float) / parts};
    struct bench_work work = {
        .run = run, .arg = &point, .max_reps = MAX_ENQUEUED};
    iris_status_t status;

    if (point.count == 0) {
        return IRIS_OK;
    }
    status = verify(b, &point, &row_p->wrong);
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, row_p);
    }
    bench_rate_bytes(row_p, row_p->bytes, NULL);
    return status;
}

const struct bench_group bench_collectives = {
    .name = "collectives",
    .text = "of all ranks, f32, enqueued on a stream, by bytes of the larger "
            "buffer, of which the rate is",
    .ops = names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = sizeof(float),
    .open = collectives_open,
    .run = run_collectives,
    .close = collectives_close,
};
