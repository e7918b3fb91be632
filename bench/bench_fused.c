/* SPDX-License-Identifier: MIT
 *
 * Measures fused operations beside their parts: the product alone, the
 * collective alone, and the two in sequence, by this library and by another
 * one.
 */
#include "config.h"

#include "bench.h"

#include "fused_points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enqueued ahead of the host's wait. */
#define MAX_ENQUEUED 200

/* Operations of a graph. Larger products are not put into graphs: they take so
 * long that the cost of the host's calls does not matter. */
#define GRAPH_OPS 10
#define GRAPH_FLOPS 1e8

/* The heap has room for the shares of this number of ranks. */
#define MIN_PADDING 64
#define MAX_ELEMENT 4

static const char *const names[] = {[ALL_REDUCE] = "matmul_all_reduce",
                                    [ALL_GATHER_FIRST] = "all_gather_matmul",
                                    [ALL_GATHER] = "matmul_all_gather",
                                    [REDUCE_SCATTER] = "matmul_reduce_scatter",
                                    NULL};

/* ---- Memory ---- */

struct sizes {
    size_t a;
    size_t b;
    size_t out;
    size_t kept;
};

static size_t find_larger(size_t size, int64_t rows, int64_t columns)
{
    size_t other = (size_t)rows * (size_t)columns * MAX_ELEMENT;

    return other > size ? other : size;
}

static struct sizes sizes_of(const struct bench_options *options, int ranks)
{
    int64_t padding = ranks > MIN_PADDING ? ranks : MIN_PADDING;
    struct sizes sizes = {0};

    for (size_t i = 0; i < options->num_shapes; i++) {
        const struct bench_shape *shape = &options->shapes[i];
        int64_t rows = shape->m + padding;

        sizes.a = find_larger(sizes.a, rows, shape->k);
        sizes.b = find_larger(sizes.b, shape->k, shape->n);
        sizes.out = find_larger(sizes.out, rows, shape->n);
        sizes.kept = find_larger(find_larger(sizes.kept, rows, shape->n), rows,
                                 shape->k);
    }
    return sizes;
}

size_t bench_fused_bytes(const struct bench_options *options)
{
    struct sizes sizes = sizes_of(options, options->num_ranks);

    /* The library's own workspace is as large as `kept`. */
    return sizes.a + sizes.b + sizes.out + 2 * sizes.kept;
}

/* Chooses the product and the collective that are measured beside this
 * library's. */
static void find_peer(struct bench *b, struct fused *f)
{
    const char *product = "Iris";

    if (b->peer != NULL && !b->peer->on_stream) {
        f->cblas = bench_peer_cblas(b->num_ranks, &product);
    }
    if (b->peer != NULL) {
        snprintf(f->peer, sizeof f->peer, "%s + %s", product, b->peer->name);
    }
}

static iris_status_t fused_open(struct bench *b)
{
    struct sizes sizes = sizes_of(&b->options, b->num_ranks);
    size_t host = sizes.a > sizes.b ? sizes.a : sizes.b;
    struct fused *f = calloc(1, sizeof *f);
    iris_status_t status;

    if (f == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    b->state = f;
    host = sizes.kept > host ? sizes.kept : host; /* as large as `out` */
    f->host = malloc(host);
    if (f->host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    find_peer(b, f);
    status = iris_group_create(b->iris, &b->rank, 1, &f->self);
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, sizes.a, (void **)&f->a);
    }
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, sizes.b, (void **)&f->b);
    }
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, sizes.out, (void **)&f->out);
    }
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, sizes.kept, (void **)&f->kept);
    }
    return status == IRIS_OK ? bench_ccl_prepare(b) : status;
}

static void fused_close(struct bench *b)
{
    struct fused *f = b->state;

    if (f == NULL) {
        return;
    }
    /* After a failure that ends the job the rest fails, too. */
    if (iris_free(b->iris, f->kept) == IRIS_OK &&
        iris_free(b->iris, f->out) == IRIS_OK &&
        iris_free(b->iris, f->b) == IRIS_OK) {
        (void)iris_free(b->iris, f->a);
    }
    (void)iris_group_destroy(b->iris, f->self);
    free(f->host);
    free(f);
}

/* ---- The ways to compute ---- */

static iris_status_t enqueue_fused(struct bench *b, const void *arg)
{
    static iris_status_t (*const calls[])(
        iris_t *, const iris_tensor_t *, const iris_tensor_t *,
        const iris_tensor_t *, const struct iris_ops_options *) = {
        [ALL_REDUCE] = iris_matmul_all_reduce,
        [ALL_GATHER_FIRST] = iris_all_gather_matmul,
        [ALL_GATHER] = iris_matmul_all_gather,
        [REDUCE_SCATTER] = iris_matmul_reduce_scatter};
    const struct point *p = arg;
    struct iris_ops_options options;

    iris_ops_options_init(&options);
    return calls[p->op](b->iris, &p->a, &p->b, &p->out, &options);
}

static iris_status_t enqueue_product(struct bench *b, const void *arg)
{
    const struct fused *f = b->state;
    const struct point *p = arg;
    struct iris_ops_options options;

    if (p->product_out.shape[0] == 0) {
        return IRIS_OK;
    }
    iris_ops_options_init(&options);
    options.group = f->self;
    return iris_matmul_all_reduce(b->iris, &p->product_a, &p->b,
                                  &p->product_out, &options);
}

static iris_status_t enqueue_collective(struct bench *b, const void *arg)
{
    const struct point *p = arg;

    return bench_ccl_enqueue(b, &p->alone);
}

static iris_status_t multiply_by_peer(struct bench *b, const struct point *p)
{
    const struct fused *f = b->state;
    struct bench_shape shape = *p->shape;
    iris_status_t status = IRIS_OK;

    shape.m = p->product_out.shape[0];
    if (f->cblas != NULL && shape.m > 0) {
        f->cblas(&shape, p->product_a.data, p->b.data, p->product_out.data);
    } else {
        status = enqueue_product(b, p);
    }
    return status == IRIS_OK && f->cblas == NULL && !b->peer->on_stream
               ? iris_stream_synchronize(b->iris, NULL)
               : status;
}

/* The product and the collective, in the operation's order. */
static iris_status_t enqueue_unfused(struct bench *b, const void *arg)
{
    const struct point *p = arg;
    bool first = p->op == ALL_GATHER_FIRST;
    iris_status_t status =
        first ? bench_ccl_enqueue(b, &p->ccl) : enqueue_product(b, p);

    if (status != IRIS_OK) {
        return status;
    }
    return first ? enqueue_product(b, p) : bench_ccl_enqueue(b, &p->ccl);
}

static iris_status_t enqueue_fused_peer(struct bench *b, const void *arg)
{
    const struct point *p = arg;
    bool first = p->op == ALL_GATHER_FIRST;
    iris_status_t status =
        first ? bench_ccl_enqueue_peer(b, &p->ccl) : multiply_by_peer(b, p);

    if (status != IRIS_OK) {
        return status;
    }
    return first ? multiply_by_peer(b, p) : bench_ccl_enqueue_peer(b, &p->ccl);
}

static iris_status_t run_call(struct bench *b, const void *arg, uint32_t reps,
                              int way)
{
    static const bench_enqueue_fn ways[] = {[FUSED] = enqueue_fused,
                                            [UNFUSED] = enqueue_unfused,
                                            [PRODUCT] = enqueue_product,
                                            [COLLECTIVE] = enqueue_collective,
                                            [PEER] = enqueue_fused_peer};
    iris_status_t status = IRIS_OK;

    if (way != PEER || b->peer->on_stream) {
        return bench_enqueue(b, ways[way], arg, reps);
    }
    while (reps-- != 0 && status == IRIS_OK) {
        status = enqueue_fused_peer(b, arg);
    }
    return status;
}

/* ---- Values ---- */

/* Zeroes a and kept before a point, because gathered matrices end in rows of
 * zeros. */
static iris_status_t zero_out(struct bench *b)
{
    const struct fused *f = b->state;
    struct sizes sizes = sizes_of(&b->options, b->num_ranks);
    iris_status_t status = iris_memset(b->iris, f->a, 0, sizes.a, NULL);

    return status == IRIS_OK
               ? iris_memset(b->iris, f->kept, 0, sizes.kept, NULL)
               : status;
}

/* Runs one way once and checks its results. */
static iris_status_t verify_fused(struct bench *b, const struct point *p,
                                  enum way way, uint64_t *wrong_p)
{
    const struct fused *f = b->state;
    struct sizes sizes = sizes_of(&b->options, b->num_ranks);
    iris_status_t status = iris_memset(b->iris, f->out, 0xff, sizes.out, NULL);

    /* Peers may write into this rank's `out` as soon as they start. */
    status = status == IRIS_OK ? iris_barrier(b->iris, NULL, NULL) : status;
    status = status == IRIS_OK ? run_call(b, p, 1, way) : status;
    return status == IRIS_OK ? fused_check(b, p, way, wrong_p) : status;
}

/* ---- Measuring ---- */

double bench_bound_share(const struct bench_row *row)
{
    double product = row->references_us[BENCH_PRODUCT];
    double collective = row->references_us[BENCH_COLLECTIVE];

    return (product > collective ? product : collective) / row->median_us;
}

static void fill_rates(const struct bench *b, const struct point *p,
                       struct bench_row *row_p)
{
    const struct bench_shape *s = p->shape;
    double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k /
                   (p->op == ALL_GATHER ? b->num_ranks : 1);
    double giga = flops * 1e-3; /* per microsecond */

    row_p->rate = row_p->median_us > 0 ? giga / row_p->median_us : 0;
    row_p->rate_unit = "GFLOP/s";
    row_p->reference = "unfused";
    row_p->reference_rate *= giga;
}

static iris_status_t run_fused(struct bench *b, size_t op,
                               struct bench_row *row_p)
{
    const struct fused *f = b->state;
    const struct bench_shape *s = row_p->shape;
    struct point p = fused_point(b, (enum op)op, row_p);
    bool has_peer = b->peer != NULL && b->peer->has(&p.ccl);
    int references = has_peer ? PEER : COLLECTIVE;
    struct bench_work work = {.run = run_call,
                              .arg = &p,
                              .max_reps = MAX_ENQUEUED,
                              .references = references};
    iris_status_t status = zero_out(b);

    status = status == IRIS_OK ? fused_fill(b, &p) : status;
    b->no_graph =
        2.0 * (double)s->m * (double)s->n * (double)s->k > GRAPH_FLOPS;
    b->graph_ops = GRAPH_OPS;
    if (b->options.graph && !b->no_graph) {
        work.step = GRAPH_OPS;
    }
    for (int way = FUSED; way <= references && status == IRIS_OK; way++) {
        if (way != COLLECTIVE) { /* UNFUSED checks it, too */
            status = verify_fused(b, &p, (enum way)way, &row_p->wrong);
        }
    }
    status = status == IRIS_OK ? bench_sum(b, &row_p->wrong) : status;
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, row_p);
    }
    row_p->bytes = p.ccl.count * iris_dtype_size(p.ccl.dtype) *
                   (p.op == ALL_REDUCE ? 1 : (size_t)b->num_ranks);
    row_p->peer = has_peer ? f->peer : NULL;
    fill_rates(b, &p, row_p);
    return status;
}

const struct bench_group bench_fused = {
    .name = "fused",
    .text = "products and collectives of all ranks in one call, by MxNxK of "
            "the whole product",
    .ops = names,
    .axis = BENCH_BY_SHAPE,
    .open = fused_open,
    .run = run_fused,
    .close = fused_close,
};
