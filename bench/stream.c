/* SPDX-License-Identifier: MIT
 *
 * Measures copies on a stream by size: between host memory, this rank's heap
 * and the peer's.
 */
#include "config.h"

#include "bench.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ENQUEUED 256

enum { TO_HEAP, FROM_HEAP, TO_PEER, FROM_PEER };

static const char *const stream_names[] = {"memcpy_to_heap", "memcpy_from_heap",
                                           "memcpy_to_peer", "memcpy_from_peer",
                                           NULL};

struct stream {
    unsigned char *host; /* two halves: the source, and the data that arrived */
    void *src;           /* on the heap, like dst */
    void *dst;
    size_t bytes; /* of each buffer */
};

struct stream_point {
    void *dst;
    const void *src;
    size_t bytes;
};

static iris_status_t stream_open(struct bench *b)
{
    struct stream *stream = calloc(1, sizeof *stream);
    iris_status_t status;

    if (stream == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    b->state = stream;
    stream->bytes = b->options.max_bytes;
    stream->host = malloc(2 * stream->bytes);
    if (stream->host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    /* Touch the pages before the timing. */
    memset(stream->host, 1, 2 * stream->bytes);
    status = iris_malloc(b->iris, stream->bytes, &stream->src);
    return status == IRIS_OK ? iris_malloc(b->iris, stream->bytes, &stream->dst)
                             : status;
}

static void stream_close(struct bench *b)
{
    struct stream *stream = b->state;

    if (stream == NULL) {
        return;
    }
    if (iris_free(b->iris, stream->dst) == IRIS_OK) {
        iris_free(b->iris, stream->src);
    }
    free(stream->host);
    free(stream);
}

static iris_status_t enqueue_copy(struct bench *b, const void *arg)
{
    const struct stream_point *point = arg;

    return iris_memcpy(b->iris, point->dst, point->src, point->bytes, NULL);
}

static iris_status_t run_copies(struct bench *b, const void *arg, uint32_t reps,
                                int reference)
{
    (void)reference;
    return bench_peers_of(b, b->rank).count == 0
               ? IRIS_OK
               : bench_enqueue(b, enqueue_copy, arg, reps);
}

static unsigned char stream_byte_of(int rank, size_t op, size_t i)
{
    return (unsigned char)(i * 31 + i / 251 + (size_t)rank * 17 + op * 5 + 1);
}

/* Sets the operation's source and destination. */
static iris_status_t aim_copy(struct bench *b, size_t op,
                              struct stream_point *point)
{
    struct stream *stream = b->state;
    int peer = bench_peers_of(b, b->rank).first;
    iris_status_t status = IRIS_OK;

    point->src = op == TO_HEAP ? (void *)stream->host : stream->src;
    point->dst =
        op == FROM_HEAP ? (void *)(stream->host + stream->bytes) : stream->dst;
    if (op == TO_PEER) {
        status = iris_as_remote(b->iris, stream->dst, peer, &point->dst);
    } else if (op == FROM_PEER) {
        void *src;

        status = iris_as_remote(b->iris, stream->src, peer, &src);
        point->src = src;
    }
    return status;
}

/* Copies once, fetches this rank's received data to the host, and compares it. */
static iris_status_t verify_copy(struct bench *b, size_t op,
                                 const struct stream_point *point,
                                 uint64_t *wrong_p)
{
    struct stream *stream = b->state;
    unsigned char *got = stream->host + stream->bytes;
    int peer = bench_peers_of(b, b->rank).first;
    int before = (b->rank + b->num_ranks - 1) % b->num_ranks;
    int source = op == TO_PEER ? before : op == FROM_PEER ? peer : b->rank;
    int writer = op == TO_PEER ? before : b->rank;
    iris_status_t status;

    for (size_t i = 0; i < point->bytes; i++) {
        stream->host[i] = stream_byte_of(b->rank, op, i);
    }
    status = bench_copy(b, stream->src, stream->host, point->bytes);
    status = status == IRIS_OK ? iris_barrier(b->iris, NULL, NULL) : status;
    status = status == IRIS_OK ? run_copies(b, point, 1, false) : status;
    status = status == IRIS_OK ? iris_barrier(b->iris, NULL, NULL) : status;
    if (status == IRIS_OK && op != FROM_HEAP) {
        status = bench_copy(b, got, stream->dst, point->bytes);
    }
    for (size_t i = 0; i < point->bytes && status == IRIS_OK &&
                       bench_peers_of(b, writer).count != 0;
         i++) {
        *wrong_p += got[i] != stream_byte_of(source, op, i);
    }
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

static iris_status_t run_stream(struct bench *b, size_t op,
                                struct bench_row *row_p)
{
    struct stream_point point = {.bytes = row_p->bytes};
    struct bench_work work = {
        .run = run_copies, .arg = &point, .max_reps = MAX_ENQUEUED};
    iris_status_t status = aim_copy(b, op, &point);

    if (status == IRIS_OK) {
        status = verify_copy(b, op, &point, &row_p->wrong);
    }
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, row_p);
    }
    bench_rate_bytes(row_p, row_p->bytes, NULL);
    return status;
}

const struct bench_group bench_stream = {
    .name = "stream",
    .text = "iris_memcpy of a batch on a stream: between host memory, this "
            "rank's heap and the next rank's",
    .ops = stream_names,
    .axis = BENCH_BY_SIZE,
    .min_bytes = 1,
    .open = stream_open,
    .run = run_stream,
    .close = stream_close,
};
