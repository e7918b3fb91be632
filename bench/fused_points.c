/* SPDX-License-Identifier: MIT
 *
 * One point of a fused operation: its matrices, its collective, and the check
 * of its results.
 */
#include "config.h"

#include "fused_points.h"

#include "fused_values.h"

struct share {
    int64_t begin;
    int64_t rows;
};

/* A fused operation divides the rows as evenly as possible. A collective takes
 * equal parts, so its last ranks have fewer rows and some padding. */
static struct share share_of(const struct bench *b, enum way way, int64_t rows,
                             int rank)
{
    int64_t n = b->num_ranks, each = rows / n, more = rows % n;
    int64_t most = each + (more != 0);
    struct share share;

    if (way == FUSED) {
        share.begin = each * rank + (rank < more ? rank : more);
        share.rows = each + (rank < more);
        return share;
    }
    share.begin = most * rank < rows ? most * rank : rows;
    share.rows = rows - share.begin < most ? rows - share.begin : most;
    return share;
}

static bool is_sum(enum op op)
{
    return op == ALL_REDUCE || op == REDUCE_SCATTER;
}

static iris_tensor_t make_matrix(char *memory, int64_t begin,
                                 iris_dtype_t dtype, const int64_t *shape)
{
    size_t at = (size_t)(begin * shape[1]) * iris_dtype_size(dtype);
    iris_tensor_t matrix = {.data = memory + at,
                            .dtype = dtype,
                            .ndim = 2,
                            .shape = {shape[0], shape[1]},
                            .strides = {shape[1], 1}};

    return matrix;
}

static void set_collective(const struct bench *b, struct point *p)
{
    static const enum bench_ccl_op ops[] = {
        [ALL_REDUCE] = BENCH_ALL_REDUCE,
        [ALL_GATHER_FIRST] = BENCH_ALL_GATHER,
        [ALL_GATHER] = BENCH_ALL_GATHER,
        [REDUCE_SCATTER] = BENCH_REDUCE_SCATTER};
    const struct fused *f = b->state;
    const struct bench_shape *shape = p->shape;
    int64_t most = (shape->m + b->num_ranks - 1) / b->num_ranks;
    int64_t rows = p->op == ALL_REDUCE ? shape->m : most;
    int64_t columns = p->op == ALL_GATHER_FIRST ? shape->k : shape->n;
    size_t own = (size_t)(b->rank * most * columns) *
                 iris_dtype_size(p->a.dtype); /* this rank's part in a gather */

    p->ccl = (struct bench_ccl){.num_ranks = b->num_ranks,
                                .op = ops[p->op],
                                .count = (size_t)(rows * columns),
                                .dtype = p->a.dtype,
                                .in = f->out,
                                .out = f->out};
    if (p->op == ALL_GATHER_FIRST) {
        p->ccl.in = f->a + own;
        p->ccl.out = f->kept;
    } else if (p->op == ALL_GATHER) {
        p->ccl.in = f->out + own;
    } else if (p->op == REDUCE_SCATTER) {
        p->ccl.in = f->kept;
    }
    p->alone = p->ccl;
    if (p->op == ALL_REDUCE) { /* the sum of zeros stays zero */
        p->alone.in = p->alone.out = f->kept;
    }
}

struct point fused_point(const struct bench *b, enum op op,
                         const struct bench_row *row)
{
    const struct fused *f = b->state;
    const struct bench_shape *s = row->shape;
    bool is_share = op == ALL_GATHER || op == ALL_GATHER_FIRST;
    struct share all = {0, s->m}, fused = share_of(b, FUSED, s->m, b->rank);
    struct share apart =
        op == ALL_GATHER ? share_of(b, PRODUCT, s->m, b->rank) : all;
    struct share a = is_share ? fused : all;
    int64_t out = op == REDUCE_SCATTER ? fused.rows : s->m;
    struct point p = {.op = op, .shape = s};

    p.a = make_matrix(f->a, a.begin, row->dtype, (int64_t[]){a.rows, s->k});
    p.b = make_matrix(f->b, 0, row->dtype, (int64_t[]){s->k, s->n});
    p.out = make_matrix(f->out, 0, row->dtype, (int64_t[]){out, s->n});
    p.product_a =
        make_matrix(op == ALL_GATHER_FIRST ? f->kept : f->a, apart.begin,
                    row->dtype, (int64_t[]){apart.rows, s->k});
    p.product_out =
        make_matrix(op == REDUCE_SCATTER ? f->kept : f->out, apart.begin,
                    row->dtype, (int64_t[]){apart.rows, s->n});
    set_collective(b, &p);
    return p;
}

iris_status_t fused_fill(struct bench *b, const struct point *p)
{
    const struct fused *f = b->state;
    const struct bench_shape *s = p->shape;
    iris_tensor_t whole =
        make_matrix(f->host, 0, p->a.dtype, (int64_t[]){s->m, s->k});
    iris_tensor_t other = p->b;
    iris_status_t status;

    fused_fill_a(&whole, is_sum(p->op) ? b->rank : 0);
    status = bench_copy(b, f->a, f->host, iris_tensor_bytes(&whole));
    if (status == IRIS_OK) {
        other.data = f->host;
        fused_fill_b(&other, b->rank);
        status = bench_copy(b, f->b, f->host, iris_tensor_bytes(&other));
    }
    return status;
}

/* Counts the wrong elements of dense rows in device memory. The rows begin at
 * row `first` of the whole product. They are the product of one rank, or the
 * sum of the products of ranks[0] up to but not including ranks[1]. */
static iris_status_t check_rows(struct bench *b, const struct point *p,
                                const iris_tensor_t *rows, int64_t first,
                                const int *ranks, uint64_t *wrong_p)
{
    const struct fused *f = b->state;
    struct fused_sums sums = {0};
    iris_tensor_t on_host = *rows;
    iris_status_t status;

    if (rows->shape[0] == 0) {
        return IRIS_OK;
    }
    for (int rank = ranks[0]; rank < ranks[1]; rank++) {
        fused_add(&sums, is_sum(p->op) ? rank : 0, rank, p->shape->k);
    }
    on_host.data = f->host;
    status = bench_copy(b, f->host, rows->data, iris_tensor_bytes(rows));
    if (status == IRIS_OK) {
        *wrong_p += fused_wrong(&sums, &on_host, first);
    }
    return status;
}

/* Checks gathered products: each rank's rows. */
static iris_status_t check_gathered(struct bench *b, const struct point *p,
                                    enum way way, uint64_t *wrong_p)
{
    iris_status_t status = IRIS_OK;

    for (int rank = 0; rank < b->num_ranks && status == IRIS_OK; rank++) {
        struct share share = share_of(b, way, p->shape->m, rank);
        iris_tensor_t rows = make_matrix(p->out.data, share.begin, p->out.dtype,
                                         (int64_t[]){share.rows, p->shape->n});

        status = check_rows(b, p, &rows, share.begin, (int[]){rank, rank + 1},
                            wrong_p);
    }
    return status;
}

iris_status_t fused_check(struct bench *b, const struct point *p, enum way way,
                          uint64_t *wrong_p)
{
    int own[] = {b->rank, b->rank + 1}, all[] = {0, b->num_ranks};
    struct share share = share_of(b, way, p->shape->m, b->rank);
    iris_tensor_t rows = p->out;

    if (way == PRODUCT) {
        return check_rows(b, p, &p->product_out,
                          p->op == ALL_GATHER ? share.begin : 0, own, wrong_p);
    }
    switch (p->op) {
    case ALL_GATHER:
        return check_gathered(b, p, way, wrong_p);
    case REDUCE_SCATTER:
        rows.shape[0] = share.rows;
        return check_rows(b, p, &rows, share.begin, all, wrong_p);
    default:
        return check_rows(b, p, &rows, 0, p->op == ALL_REDUCE ? all : own,
                          wrong_p);
    }
}
