/* SPDX-License-Identifier: MIT
 *
 * The common part of operations that fill a tensor: its memory, and the time of
 * a fill in alternation with iris_memset of the same memory.
 */
#include "config.h"

#include "bench.h"

#include <stdlib.h>

iris_status_t bench_tensor_open(struct bench *b, size_t host_bytes)
{
    struct bench_tensor *state = calloc(1, sizeof *state);
    struct iris_tensor_options options;

    if (state == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    b->state = state;
    state->host = malloc(host_bytes);
    if (state->host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    iris_tensor_options_init(&options);
    options.dtype = IRIS_DTYPE_U8;
    return iris_empty(b->iris, IRIS_SHAPE((int64_t)b->options.max_bytes),
                      &options, &state->memory);
}

void bench_tensor_close(struct bench *b)
{
    struct bench_tensor *state = b->state;

    if (state == NULL) {
        return;
    }
    (void)iris_tensor_free(b->iris, &state->memory);
    free(state->host);
    free(state);
}

iris_status_t bench_tensor_memset(struct bench *b, const void *arg)
{
    const struct bench_tensor_point *point = arg;

    return iris_memset(b->iris, point->out.data, 1,
                       iris_tensor_bytes(&point->out), NULL);
}

static iris_status_t run_tensor(struct bench *b, const void *arg, uint32_t reps,
                                int reference)
{
    const struct bench_tensor_point *point = arg;

    return bench_enqueue(
        b, reference ? bench_tensor_memset : point->kind->enqueue, arg, reps);
}

iris_status_t bench_tensor_run(struct bench *b,
                               const struct bench_tensor_kind *kind, size_t op,
                               struct bench_row *row_p)
{
    const struct bench_tensor *state = b->state;
    struct bench_tensor_point point = {
        .kind = kind, .what = kind->ops[op].what, .out = state->memory};
    struct bench_work work = {.run = run_tensor,
                              .arg = &point,
                              .max_reps = kind->max_enqueued,
                              .references = 1};
    iris_status_t status;

    point.out.dtype = kind->ops[op].dtype;
    point.out.shape[0] =
        (int64_t)(row_p->bytes / iris_dtype_size(point.out.dtype));
    row_p->variant = iris_dtype_name(point.out.dtype);
    status = kind->verify(b, &point, &row_p->wrong);
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, row_p);
    }
    bench_rate_bytes(row_p, row_p->bytes, "iris_memset");
    return status;
}
