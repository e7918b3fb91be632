/* SPDX-License-Identifier: MIT
 *
 * Measures puts and signals that kernels send to a rank on another node, beside
 * MPI's. Rank r works with rank r + n / 2. With IRIS_NODES=2 the other node
 * begins there.
 */
#include "config.h"

#define IRIS_FAR 1 /* in GPU code, too */
#include <iris/device.h>

#include "bench.h"

#include <stdlib.h>

enum { PUT_FLUSH, PUTS_FLUSH, PUT_SIGNAL };

static const char *const names[] = {"put_flush", "puts_flush", "put_signal",
                                    NULL};

/* Puts before the flush in puts_flush. */
#define MANY 1000
/* The most bytes of one of them: larger puts would take seconds for a flush. */
#define MANY_BYTES ((size_t)64 << 10)

struct nodes {
    unsigned char *src; /* on the heap, like dst and signal */
    unsigned char *dst;
    uint64_t *signal;
    uint64_t turns; /* signals sent so far; the same on both ends */
    unsigned char *host;
};

struct nodes_args {
    const int64_t *context;
    const unsigned char *src;
    unsigned char *dst;
    uint64_t *signal;
    uint64_t bytes;
    uint64_t from; /* value of the signal before the first turn */
    uint32_t reps;
    uint32_t count; /* puts before a flush */
    int32_t partner;
    int32_t answers; /* 1: waits before it signals */
};

IRIS_KERNEL(nodes_put_flush, struct nodes_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (uint32_t rep = 0; rep < args->reps; rep++) {
        for (uint32_t i = 0; i < args->count; i++) {
            iris_wg_put(wg, dev, args->src, args->dst, args->bytes,
                        args->partner);
        }
        iris_wg_barrier(wg);
        iris_fence(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    }
}

IRIS_KERNEL(nodes_put_signal, struct nodes_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (uint64_t turn = args->from + 1; turn <= args->from + args->reps;
         turn++) {
        if (args->answers) {
            iris_wait_until(dev, args->signal, IRIS_CMP_GE, turn);
        }
        iris_wg_put(wg, dev, args->src, args->dst, args->bytes, args->partner);
        iris_wg_barrier(wg);
        iris_signal_set(dev, args->signal, turn, args->partner);
        if (!args->answers) {
            iris_wait_until(dev, args->signal, IRIS_CMP_GE, turn);
        }
    }
}

static iris_status_t nodes_open(struct bench *b)
{
    struct nodes *nodes = calloc(1, sizeof *nodes);
    size_t bytes = b->options.max_bytes;
    iris_status_t status;

    if (nodes == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    b->state = nodes;
    nodes->host = malloc(bytes);
    if (nodes->host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    status = iris_malloc(b->iris, bytes, (void **)&nodes->src);
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, bytes, (void **)&nodes->dst);
    }
    if (status == IRIS_OK) {
        status = iris_calloc(b->iris, 1, sizeof *nodes->signal,
                             (void **)&nodes->signal);
    }
    if (status == IRIS_OK && b->peer != NULL && b->peer->far != NULL &&
        !b->peer->far->open(bytes)) {
        status = IRIS_ERR_UNSUPPORTED;
    }
    return status;
}

static void nodes_close(struct bench *b)
{
    struct nodes *nodes = b->state;

    if (nodes == NULL) {
        return;
    }
    if (b->peer != NULL && b->peer->far != NULL) {
        b->peer->far->close();
    }
    if (iris_free(b->iris, nodes->signal) == IRIS_OK &&
        iris_free(b->iris, nodes->dst) == IRIS_OK) {
        iris_free(b->iris, nodes->src);
    }
    free(nodes->host);
    free(nodes);
}

/* One point, which run() gets as `arg`. */
struct nodes_point {
    size_t op;
    size_t bytes;
    int partner;
    bool leads; /* puts first; without signals, only it puts */
};

static iris_status_t run_peer(struct bench *b, const struct nodes_point *point,
                              uint32_t reps)
{
    struct bench_far_call call = {.partner = point->partner,
                                  .leads = point->leads,
                                  .bytes = point->bytes,
                                  .count = point->op == PUTS_FLUSH ? MANY : 1,
                                  .reps = reps};

    return (point->op == PUT_SIGNAL ? b->peer->far->ping_pong
                                    : b->peer->far->put_flush)(&call)
               ? IRIS_OK
               : IRIS_ERR_SYSTEM;
}

static iris_status_t run_puts(struct bench *b, const void *arg, uint32_t reps,
                              int reference)
{
    const struct nodes_point *point = arg;
    struct nodes *nodes = b->state;
    struct nodes_args args = {.context = iris_device_context(b->iris),
                              .src = nodes->src,
                              .dst = nodes->dst,
                              .signal = nodes->signal,
                              .bytes = point->bytes,
                              .from = nodes->turns,
                              .reps = reps,
                              .count = point->op == PUTS_FLUSH ? MANY : 1,
                              .partner = point->partner,
                              .answers = !point->leads};
    iris_status_t status;

    if (reference) {
        return run_peer(b, point, reps);
    }
    if (point->op != PUT_SIGNAL && !point->leads) {
        return IRIS_OK;
    }
    nodes->turns += point->op == PUT_SIGNAL ? reps : 0;
    status = iris_launch(
        b->iris, point->op == PUT_SIGNAL ? nodes_put_signal : nodes_put_flush,
        1, 1, &args, sizeof args, NULL);
    return status == IRIS_OK ? iris_stream_synchronize(b->iris, NULL) : status;
}

/* Byte i of a rank's source. */
static unsigned char byte_of(int rank, size_t i)
{
    return (unsigned char)(i * 7 + (size_t)rank * 31 + 1);
}

static iris_status_t fill_src(struct bench *b, size_t bytes)
{
    struct nodes *nodes = b->state;
    iris_status_t status;

    for (size_t i = 0; i < bytes; i++) {
        nodes->host[i] = byte_of(b->rank, i);
    }
    status = bench_copy(b, nodes->src, nodes->host, bytes);
    if (status == IRIS_OK) {
        status = iris_memset(b->iris, nodes->dst, 0, bytes, NULL);
    }
    return status == IRIS_OK ? iris_barrier(b->iris, NULL, NULL) : status;
}

static iris_status_t
verify_puts(struct bench *b, const struct nodes_point *point, uint64_t *wrong_p)
{
    struct nodes *nodes = b->state;
    iris_status_t status = iris_barrier(b->iris, NULL, NULL);

    if (status == IRIS_OK) {
        status = bench_copy(b, nodes->host, nodes->dst, point->bytes);
    }
    for (size_t i = 0; status == IRIS_OK && i < point->bytes; i++) {
        bool gets = point->op == PUT_SIGNAL || !point->leads;

        *wrong_p += nodes->host[i] != (gets ? byte_of(point->partner, i) : 0);
    }
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

static iris_status_t run_nodes(struct bench *b, size_t op,
                               struct bench_row *row_p)
{
    int half = b->num_ranks / 2;
    struct nodes_point point = {.op = op,
                                .bytes = row_p->bytes,
                                .partner = (b->rank + half) % b->num_ranks,
                                .leads = b->rank < half};
    bool has_peer = b->peer != NULL && b->peer->far != NULL &&
                    row_p->bytes <= INT32_MAX; /* a count of MPI's */
    struct bench_work work = {.run = run_puts,
                              .arg = &point,
                              .per_rep = op == PUT_SIGNAL ? 2 : 1,
                              .references = has_peer};
    iris_status_t status;

    if (b->num_ranks % 2 != 0 ||
        (op == PUTS_FLUSH && row_p->bytes > MANY_BYTES)) {
        return IRIS_OK;
    }
    status = fill_src(b, point.bytes);
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, row_p);
    }
    bench_rate_bytes(row_p, row_p->bytes * (op == PUTS_FLUSH ? MANY : 1),
                     has_peer ? b->peer->name : NULL);
    return status == IRIS_OK ? verify_puts(b, &point, &row_p->wrong) : status;
}

const struct bench_group bench_nodes = {
    .name = "nodes",
    .text = "one rank of the first half of the ranks with one of the second: "
            "put_flush, a put and a release; puts_flush, 1000 puts and a "
            "release; put_signal, a put with a signal, one way, back and forth",
    .ops = names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = 8,
    .open = nodes_open,
    .run = run_nodes,
    .close = nodes_close,
};
