/* SPDX-License-Identifier: MIT
 *
 * Collectives on the default stream, by the size of the larger buffer, in
 * alternation with another library's.
 */
#include "config.h"

#include "bench.h"
#include "ccl/ccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most calls that the host enqueues before it waits. */
#define MAX_ENQUEUED 200

/* Operations of a graph, for sizes up to SMALL_BYTES and for larger ones. */
#define SMALL_BYTES ((size_t)1 << 20)
#define GRAPH_OPS_SMALL 50
#define GRAPH_OPS_LARGE 10

static const char *const names[] = {[BENCH_ALL_REDUCE] = "all_reduce",
                                    [BENCH_ALL_GATHER] = "all_gather",
                                    [BENCH_REDUCE_SCATTER] = "reduce_scatter",
                                    [BENCH_ALL_TO_ALL] = "all_to_all",
                                    [BENCH_BROADCAST] = "broadcast",
                                    NULL};

static const char *const message_names[] = {
    "reduce", "gather", "scatter", "all_to_allv", "send_recv", NULL};

struct collectives {
    void *in; /* on the heap, like out */
    void *out;
    void *host;
};

bool bench_ccl_has(enum bench_ccl_op op, iris_ccl_variant_t variant,
                   bool ordered)
{
    const struct iris_ccl_kind *kind = &iris_i_ccl_kinds[op];

    if (variant == IRIS_CCL_AUTO || op > BENCH_BROADCAST) {
        return variant == IRIS_CCL_AUTO;
    }
    for (size_t i = 0; kind->variants[i].variant != IRIS_CCL_AUTO; i++) {
        if (kind->variants[i].variant == variant) {
            return !ordered || !(kind->variants[i].needs & IRIS_CCL_BY_NAME);
        }
    }
    return false;
}

/* Calls the preamble, because a first collective cannot be captured. Also tries
 * an empty capture: the ways to call depend on whether the device has graphs. */
iris_status_t bench_ccl_prepare(struct bench *b)
{
    iris_status_t status = iris_all_reduce_preamble(b->iris, NULL);
    iris_graph_t *graph = NULL;

    if (status != IRIS_OK || !b->options.graph) {
        return status;
    }
    b->options.graph = iris_capture_begin(b->iris, NULL) == IRIS_OK;
    if (b->options.graph) {
        status = iris_capture_end(b->iris, NULL, &graph);
        iris_graph_destroy(b->iris, graph);
    }
    return status;
}

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
    status = iris_malloc(b->iris, b->options.max_bytes, &c->in);
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, b->options.max_bytes, &c->out);
    }
    return status == IRIS_OK ? bench_ccl_prepare(b) : status;
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

struct bench_ccl bench_ccl_call(const struct bench *b, enum bench_ccl_op op,
                                size_t bytes, iris_dtype_t dtype)
{
    const struct collectives *c = b->state;
    bool is_whole = op == BENCH_ALL_REDUCE || op == BENCH_BROADCAST ||
                    op == BENCH_REDUCE || op == BENCH_SEND_RECV;
    size_t parts = is_whole ? 1 : (size_t)b->num_ranks;

    return (struct bench_ccl){.num_ranks = b->num_ranks,
                              .op = op,
                              .count = bytes / iris_dtype_size(dtype) / parts,
                              .dtype = dtype,
                              .in = c->in,
                              .out = c->out};
}

/* Parts are equal, so the values are those of an all_to_all. */
static iris_status_t enqueue_all_to_allv(struct bench *b,
                                         const struct bench_ccl *call)
{
    size_t *counts = malloc((size_t)b->num_ranks * sizeof *counts);
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    for (int i = 0; i < b->num_ranks && counts != NULL; i++) {
        counts[i] = call->count;
    }
    if (counts != NULL) {
        status = iris_all_to_allv(b->iris, call->in, counts, NULL, call->out,
                                  counts, NULL, call->dtype, NULL);
    }
    free(counts);
    return status;
}

static iris_status_t enqueue_message(struct bench *b,
                                     const struct bench_ccl *call)
{
    int n = b->num_ranks;

    switch (call->op) {
    case BENCH_REDUCE:
        return iris_reduce(b->iris, call->in, call->out, call->count,
                           call->dtype, IRIS_REDUCE_SUM, 0, NULL);
    case BENCH_GATHER:
        return iris_gather(b->iris, call->in, call->out, call->count,
                           call->dtype, 0, NULL);
    case BENCH_SCATTER:
        return iris_scatter(b->iris, call->in, call->out, call->count,
                            call->dtype, 0, NULL);
    case BENCH_ALL_TO_ALLV:
        return enqueue_all_to_allv(b, call);
    default: /* in a ring */
        return iris_send_recv(b->iris, call->in, call->count, (b->rank + 1) % n,
                              call->out, call->count, (b->rank + n - 1) % n,
                              call->dtype, NULL);
    }
}

iris_status_t bench_ccl_enqueue(struct bench *b, const struct bench_ccl *call)
{
    size_t count = call->count;
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.num_cus = call->num_cus;
    options.all_reduce = options.all_gather = options.reduce_scatter =
        options.all_to_all = options.broadcast = call->variant;
    if (call->op > BENCH_BROADCAST) {
        return enqueue_message(b, call);
    }
    switch (call->op) {
    case BENCH_ALL_REDUCE:
        return iris_all_reduce(b->iris, call->in, call->out, count, call->dtype,
                               IRIS_REDUCE_SUM, &options);
    case BENCH_ALL_GATHER:
        return iris_all_gather(b->iris, call->in, call->out, count, call->dtype,
                               &options);
    case BENCH_REDUCE_SCATTER:
        return iris_reduce_scatter(b->iris, call->in, call->out, count,
                                   call->dtype, IRIS_REDUCE_SUM, &options);
    case BENCH_ALL_TO_ALL:
        return iris_all_to_all(b->iris, call->in, call->out, count, call->dtype,
                               &options);
    default:
        return iris_ccl_broadcast(b->iris, call->in, call->out, count,
                                  call->dtype, 0, &options);
    }
}

iris_status_t bench_ccl_enqueue_peer(struct bench *b,
                                     const struct bench_ccl *call)
{
    return b->peer->call(b->peer, call) ? IRIS_OK : IRIS_ERR_DEVICE;
}

static iris_status_t enqueue_call(struct bench *b, const void *arg)
{
    return bench_ccl_enqueue(b, arg);
}

static iris_status_t enqueue_peer_call(struct bench *b, const void *arg)
{
    return bench_ccl_enqueue_peer(b, arg);
}

/* Makes the calls one by one and waits for each. MPI's calls are done when they
 * return. */
static iris_status_t run_each(struct bench *b, bench_enqueue_fn one,
                              const void *arg, uint32_t reps)
{
    bool must_wait = one == enqueue_call || b->peer->on_stream;
    iris_status_t status = IRIS_OK;

    while (reps-- != 0 && status == IRIS_OK) {
        status = one(b, arg);
        if (status == IRIS_OK && must_wait) {
            status = iris_stream_synchronize(b->iris, NULL);
        }
    }
    return status;
}

static iris_status_t run_calls(struct bench *b, const void *arg, uint32_t reps,
                               int reference)
{
    bench_enqueue_fn one = reference ? enqueue_peer_call : enqueue_call;
    bool on_stream = !reference || b->peer->on_stream;

    return b->wait_each || !on_stream ? run_each(b, one, arg, reps)
                                      : bench_enqueue(b, one, arg, reps);
}

iris_status_t bench_ccl_time(struct bench *b, const struct bench_ccl *call,
                             struct bench_row *row_p)
{
    struct bench_work work = {.run = run_calls,
                              .arg = call,
                              .max_reps = MAX_ENQUEUED,
                              .references =
                                  b->peer != NULL && b->peer->has(call)};

    b->graph_ops =
        row_p->bytes <= SMALL_BYTES ? GRAPH_OPS_SMALL : GRAPH_OPS_LARGE;
    if (b->options.graph && !b->no_graph) {
        work.step = b->graph_ops;
    }
    return bench_measure(b, &work, row_p);
}

/* Makes one call with the library or the peer, and checks `out`. */
static iris_status_t verify_call(struct bench *b, const struct bench_ccl *call,
                                 int reference, uint64_t *wrong_p)
{
    struct collectives *c = b->state;
    iris_status_t status =
        iris_memset(b->iris, c->out, 0xff, b->options.max_bytes, NULL);

    if (status == IRIS_OK) {
        status = bench_ccl_fill(b, call, c->host);
    }
    if (status == IRIS_OK && reference && call->op == BENCH_BROADCAST &&
        b->rank == 0) {
        /* MPI's broadcast is in place: its root sends from `out`. */
        status = bench_copy(b, c->out, c->in,
                            call->count * iris_dtype_size(call->dtype));
    }
    /* The peer may write into another rank's `out` as soon as it starts. */
    status = status == IRIS_OK ? iris_barrier(b->iris, NULL, NULL) : status;
    status = status == IRIS_OK ? run_calls(b, call, 1, reference) : status;
    return status == IRIS_OK ? bench_ccl_check(b, call, c->host, wrong_p)
                             : status;
}

double bench_ccl_bus_share(const struct bench_ccl *call)
{
    double n = call->num_ranks;

    return call->op == BENCH_BROADCAST    ? 1
           : call->op == BENCH_ALL_REDUCE ? 2 * (n - 1) / n
                                          : (n - 1) / n;
}

static iris_status_t measure_call(struct bench *b, const struct bench_ccl *call,
                                  struct bench_row *row_p)
{
    bool has_peer = b->peer != NULL && b->peer->has(call);
    iris_status_t status = verify_call(b, call, false, &row_p->wrong);

    if (status == IRIS_ERR_INVALID &&
        !bench_ccl_has(call->op, call->variant, true)) {
        return IRIS_OK; /* the variant does not support this element type */
    }
    if (status == IRIS_OK && has_peer) {
        status = verify_call(b, call, true, &row_p->wrong);
    }
    status = status == IRIS_OK ? bench_sum(b, &row_p->wrong) : status;
    if (status == IRIS_OK) {
        status = bench_ccl_time(b, call, row_p);
    }
    bench_rate_bytes(row_p, row_p->bytes, has_peer ? b->peer->name : NULL);
    row_p->bus_rate = row_p->rate * bench_ccl_bus_share(call);
    return status;
}

static iris_status_t run_collectives(struct bench *b, size_t op,
                                     struct bench_row *row_p)
{
    struct bench_ccl call =
        bench_ccl_call(b, (enum bench_ccl_op)op, row_p->bytes, row_p->dtype);
    bool as_graph = strcmp(row_p->calls, "graph") == 0;
    iris_status_t status;

    call.variant = row_p->how;
    if (call.count == 0) {
        return IRIS_OK;
    }
    b->no_graph = !as_graph;
    b->wait_each = strcmp(row_p->calls, "waited") == 0;
    status = measure_call(b, &call, row_p);
    b->wait_each = false;
    /* The point had too few calls for a graph, or cannot be captured. */
    if (as_graph && b->graphs[0].graph == NULL) {
        row_p->calls = "eager";
    }
    return status;
}

const struct bench_group bench_collectives = {
    .name = "collectives",
    .text = "of all ranks, enqueued on a stream, by bytes of the larger "
            "buffer, of which the rate is",
    .ops = names,
    .axis = BENCH_BY_CALL,
    .min_bytes = 1,
    .open = collectives_open,
    .run = run_collectives,
    .close = collectives_close,
};

static iris_status_t run_messages(struct bench *b, size_t op,
                                  struct bench_row *row_p)
{
    struct bench_ccl call =
        bench_ccl_call(b, (enum bench_ccl_op)(BENCH_REDUCE + op), row_p->bytes,
                       IRIS_DTYPE_F32);
    struct bench_peer *peer = b->peer;
    iris_status_t status = IRIS_OK;

    row_p->dtype = IRIS_DTYPE_F32;
    if (call.count > 0) {
        b->peer = NULL;
        status = measure_call(b, &call, row_p);
        row_p->bus_rate = 0;
        b->peer = peer;
    }
    return status;
}

const struct bench_group bench_messages = {
    .name = "messages",
    .text = "of f32, with a root or between pairs of ranks, by bytes of the "
            "larger buffer, of which the rate is",
    .ops = message_names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = 1024,
    .open = collectives_open,
    .run = run_messages,
    .close = collectives_close,
};
