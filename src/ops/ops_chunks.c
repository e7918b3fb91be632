/* SPDX-License-Identifier: MIT
 *
 * Operations in chunks of rows, on their own streams: the transfer of one chunk
 * overlaps with the product of another.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>
#include <iris/device/kernels/ops_args.h>

#include "ops/kernels.h"
#include "queue/kernels.h"

#include <stdlib.h>

#define SUM_LANES 512
#define SUM_BYTES 16 /* bytes that a lane of a GPU sums at a time */

/* ---- Rows ---- */

/* Chunk `chunk` of these rows; it may be empty. */
static struct iris_ops_share chunk_of(const struct iris_ops_way *way,
                                      struct iris_ops_share rows, int chunk)
{
    int64_t chunks = way->call->plan.chunks;
    struct iris_ops_share part = {rows.begin + rows.rows * chunk / chunks,
                                  rows.begin +
                                      rows.rows * (chunk + 1) / chunks};

    part.rows -= part.begin;
    return part;
}

/* The same rows, relative to the share's first row. */
static struct iris_ops_share within(struct iris_ops_share rows,
                                    struct iris_ops_share share)
{
    rows.begin -= share.begin;
    return rows;
}

static struct iris_ops_share share_of(const struct iris_ops_way *way,
                                      int64_t member)
{
    return iris_i_ops_share(way->call, way->call->m, member);
}

/* Multiplies rows of `a`, from row `begin` on of the product that determines
 * the bits. For matmul_all_gather that product is a share's. */
static iris_status_t multiply(const struct iris_ops_way *way, iris_tensor_t a,
                              iris_tensor_t out, int64_t begin,
                              struct iris_stream *stream)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_piece piece = {
        a, out, begin,
        call->op == IRIS_OPS_MATMUL_ALL_GATHER ? call->a->shape[0] : call->m};

    return iris_i_ops_multiply_part(way->iris, call, &piece, stream);
}

/* The place of a product without rows, where the members of a first call
 * meet. */
static iris_status_t skip(const struct iris_ops_way *way)
{
    return iris_i_ops_meet(way->call, iris_i_ops_meet(way->call, IRIS_OK));
}

/* ---- The operations ---- */

typedef iris_status_t (*take_fn)(struct iris_ops_way *way, int64_t member,
                                 int chunk, struct iris_ops_share rows);

/* Takes each chunk of the other members' shares, in the order of their
 * arrival. */
static iris_status_t take_all(struct iris_ops_way *way, take_fn take)
{
    int64_t others = way->call->members - 1;
    iris_status_t status = IRIS_OK;

    for (int64_t i = 0;
         i < way->call->plan.chunks * others && status == IRIS_OK; i++) {
        int chunk = (int)(i / others);
        int64_t member = iris_i_way_neighbour(way, -1 - i % others);
        struct iris_ops_share rows =
            chunk_of(way, share_of(way, member), chunk);

        status = take(way, member, chunk, rows);
    }
    return status;
}

/* Computes a chunk's product, and sends it to the others. */
static iris_status_t gather_product(struct iris_ops_way *way, int chunk)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share share = share_of(way, call->index);
    struct iris_ops_share rows = chunk_of(way, share, chunk);
    struct iris_ops_share at = within(rows, share);
    iris_tensor_t out = iris_i_ops_part(call->out, 0, rows);
    iris_tensor_t kept = iris_i_ops_kept(call, rows.begin, rows.rows, call->n);
    int direct = iris_i_way_is_direct(way, &out);
    const iris_tensor_t *to = direct ? &out : &kept;
    struct iris_stream *products = iris_i_way_products(way);
    iris_status_t status;

    if (rows.rows == 0) {
        return skip(way);
    }
    status =
        multiply(way, iris_i_ops_part(call->a, 0, at), *to, at.begin, products);
    if (status == IRIS_OK) {
        status = iris_i_queue_follow(call->transport, products);
    }
    if (status == IRIS_OK) {
        status = iris_i_way_send_to_all(way, &kept, to->data, chunk);
    }
    return status == IRIS_OK && !direct
               ? iris_i_ops_copy(way->iris, out, kept, products)
               : status;
}

/* Copies other members' products from the place of their arrival. */
static iris_status_t take_product(struct iris_ops_way *way, int64_t member,
                                  int chunk, struct iris_ops_share rows)
{
    const struct iris_ops_call *call = way->call;
    struct iris_stream *stream = call->options.stream;
    iris_status_t status =
        rows.rows == 0 ? IRIS_OK : iris_i_way_await(way, member, chunk, stream);

    return status == IRIS_OK
               ? iris_i_ops_copy(
                     way->iris, iris_i_ops_part(call->out, 0, rows),
                     iris_i_ops_kept(call, rows.begin, rows.rows, call->n),
                     stream)
               : status;
}

static iris_status_t matmul_all_gather(struct iris_ops_way *way)
{
    iris_status_t status = iris_i_way_meet(way);

    for (int c = 0; c < way->call->plan.chunks && status == IRIS_OK; c++) {
        status = gather_product(way, c);
    }
    return status == IRIS_OK ? take_all(way, take_product) : status;
}

/* Sends a chunk of `a`, and multiplies it. */
static iris_status_t multiply_own(struct iris_ops_way *way, int chunk)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share share = share_of(way, call->index);
    struct iris_ops_share rows = chunk_of(way, share, chunk);
    iris_tensor_t a = iris_i_ops_part(call->a, 0, within(rows, share));
    iris_tensor_t kept = iris_i_ops_kept(call, rows.begin, rows.rows, call->k);
    int direct = iris_i_way_is_direct(way, &a);
    struct iris_stream *products = iris_i_way_products(way);
    iris_status_t status;

    if (rows.rows == 0) {
        return skip(way);
    }
    /* The product uses the copied rows, which have the same strides as the
     * other members' rows. */
    status = iris_i_ops_copy(way->iris, kept, a, products);
    if (status == IRIS_OK && !direct) {
        status = iris_i_queue_follow(call->transport, products);
    }
    if (status == IRIS_OK) {
        status = iris_i_way_send_to_all(way, &kept, direct ? a.data : kept.data,
                                        chunk);
    }
    return status == IRIS_OK
               ? multiply(way, kept, iris_i_ops_part(call->out, 0, rows),
                          rows.begin, products)
               : status;
}

/* Multiplies other members' rows after their arrival. */
static iris_status_t take_rows(struct iris_ops_way *way, int64_t member,
                               int chunk, struct iris_ops_share rows)
{
    const struct iris_ops_call *call = way->call;
    struct iris_stream *products = iris_i_way_products(way);
    iris_status_t status;

    if (rows.rows == 0) {
        return skip(way);
    }
    status = iris_i_way_await(way, member, chunk, products);
    return status == IRIS_OK
               ? multiply(
                     way, iris_i_ops_kept(call, rows.begin, rows.rows, call->k),
                     iris_i_ops_part(call->out, 0, rows), rows.begin, products)
               : status;
}

static iris_status_t gather_rows(struct iris_ops_way *way)
{
    iris_status_t status = iris_i_way_meet(way);

    for (int c = 0; c < way->call->plan.chunks && status == IRIS_OK; c++) {
        status = multiply_own(way, c);
    }
    return status == IRIS_OK ? take_all(way, take_rows) : status;
}

static iris_status_t send_columns(struct iris_ops_way *way, int chunk)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share all = {0, call->m};
    struct iris_ops_share rows = chunk_of(way, all, chunk);
    iris_tensor_t columns = iris_i_ops_kept_columns(call, call->index);
    iris_tensor_t kept = iris_i_ops_part(&columns, 0, rows);
    struct iris_stream *products = call->products[chunk % 2];
    iris_status_t status;

    if (call->a->shape[1] == 0) {
        return IRIS_OK;
    }
    status = iris_i_ops_copy(way->iris, kept, iris_i_ops_part(call->a, 0, rows),
                             products);
    if (status == IRIS_OK) {
        status = iris_i_queue_follow(call->transport, products);
    }
    return status == IRIS_OK
               ? iris_i_way_send_to_all(way, &kept, kept.data, chunk)
               : status;
}

/* Joins a chunk's columns after their arrival, and multiplies. */
static iris_status_t multiply_columns(struct iris_ops_way *way, int chunk)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share all = {0, call->m};
    struct iris_ops_share rows = chunk_of(way, all, chunk);
    iris_tensor_t matrix = iris_i_ops_whole(call);
    iris_tensor_t whole = iris_i_ops_part(&matrix, 0, rows);
    struct iris_stream *products = call->products[chunk % 2];
    iris_status_t status = iris_i_way_await_all(way, chunk, products);

    for (int64_t i = 0; i < call->members && status == IRIS_OK; i++) {
        iris_tensor_t columns = iris_i_ops_kept_columns(call, i);

        status = iris_i_ops_copy(
            way->iris,
            iris_i_ops_part(&whole, 1, iris_i_ops_share(call, call->k, i)),
            iris_i_ops_part(&columns, 0, rows), products);
    }
    return status == IRIS_OK
               ? multiply(way, whole, iris_i_ops_part(call->out, 0, rows),
                          rows.begin, products)
               : status;
}

static iris_status_t gather_columns(struct iris_ops_way *way)
{
    int chunks = way->call->plan.chunks;
    iris_status_t status = iris_i_way_meet(way);

    for (int c = 0; c < chunks && status == IRIS_OK; c++) {
        status = send_columns(way, c);
    }
    for (int c = 0; c < chunks && status == IRIS_OK; c++) {
        status = multiply_columns(way, c);
    }
    return status;
}

/* The place for member i's products of this member's rows. This member's
 * products for the others come behind all of these. */
static iris_tensor_t slot(const struct iris_ops_way *way, int64_t i,
                          struct iris_ops_share at)
{
    const struct iris_ops_call *call = way->call;

    return iris_i_ops_kept(call, i * iris_i_ops_most(call, call->m) + at.begin,
                           at.rows, call->n);
}

/* Multiplies rows of that member's share, and sends the product there. */
static iris_status_t scatter_product(struct iris_ops_way *way, int64_t member,
                                     int chunk)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share share = share_of(way, member);
    struct iris_ops_share rows = chunk_of(way, share, chunk);
    iris_tensor_t there = slot(way, call->index, within(rows, share));
    iris_tensor_t to =
        member == call->index ? there : slot(way, call->members, rows);
    struct iris_stream *products = iris_i_way_products(way);
    iris_status_t status;

    if (rows.rows == 0) {
        return skip(way);
    }
    status = multiply(way, iris_i_ops_part(call->a, 0, rows), to, rows.begin,
                      products);
    if (status != IRIS_OK || member == call->index) {
        return status == IRIS_OK
                   ? iris_i_queue_follow(call->options.stream, products)
                   : status;
    }
    status = iris_i_queue_follow(call->transport, products);
    return status == IRIS_OK
               ? iris_i_way_send(way, &there, to.data, member, chunk)
               : status;
}

/* Sums a chunk of this member's share after all of it has arrived. */
static iris_status_t sum_up(const struct iris_ops_way *way, int chunk)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share share = share_of(way, call->index);
    struct iris_ops_share rows = within(chunk_of(way, share, chunk), share);
    size_t size = iris_dtype_size(call->b->dtype);
    int dense = rows.rows == 1 || call->out->strides[0] == call->n;
    struct iris_ops_sum_args args = {
        .in = slot(way, 0, rows).data,
        .out = iris_i_ops_part(call->out, 0, rows).data,
        .pitch = (uint64_t)(iris_i_ops_most(call, call->m) * call->n) * size,
        .members = (uint64_t)call->members,
        .rows = dense ? 1 : (uint64_t)rows.rows,
        .columns = (uint64_t)(dense ? rows.rows * call->n : call->n),
        .out_row = call->out->strides[0]};
    uint64_t bytes = (uint64_t)(rows.rows * call->n) * size;
    uint64_t worth = bytes / (SUM_LANES * SUM_BYTES) + 1;
    uint64_t most = (uint64_t)iris_i_device(way->iris)->num_cus;
    struct iris_launch_request request = {
        iris_i_ops_sum_kernel(call->b->dtype),
        (unsigned)(worth < most ? worth : most),
        SUM_LANES,
        &args,
        sizeof args,
        true};
    iris_status_t status;

    if (rows.rows == 0) {
        return IRIS_OK;
    }
    status = iris_i_way_await_all(way, chunk, call->options.stream);
    return status == IRIS_OK ? iris_i_launch(iris_i_queue(way->iris), &request,
                                             call->options.stream)
                             : status;
}

static iris_status_t matmul_reduce_scatter(struct iris_ops_way *way)
{
    const struct iris_ops_call *call = way->call;
    iris_status_t status = iris_i_way_meet(way);

    for (int c = 0; c < call->plan.chunks && status == IRIS_OK; c++) {
        for (int64_t j = 1; j <= call->members && status == IRIS_OK; j++) {
            status = scatter_product(way, iris_i_way_neighbour(way, j), c);
        }
        status = status == IRIS_OK ? sum_up(way, c) : status;
    }
    return status;
}

static iris_status_t matmul_all_reduce(struct iris_ops_way *way)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ccl_options options = iris_i_way_options(call);
    struct iris_ops_share all = {0, call->m};
    iris_status_t status = IRIS_OK;

    options.num_cus = call->plan.workgroups;
    for (int c = 0; c < call->plan.chunks && status == IRIS_OK; c++) {
        struct iris_ops_share rows = chunk_of(way, all, c);
        struct iris_ops_sums sums = iris_i_ops_sums(call, rows);
        struct iris_stream *products = iris_i_way_products(way);

        way->met = 0; /* the members wait for each other in each chunk */
        status = multiply(way, iris_i_ops_part(call->a, 0, rows), sums.products,
                          rows.begin, products);
        if (status == IRIS_OK) {
            status = iris_i_queue_follow(call->transport, products);
        }
        if (status == IRIS_OK) {
            status =
                iris_all_reduce(way->iris, sums.products.data, sums.sums.data,
                                (size_t)(rows.rows * call->n), call->b->dtype,
                                IRIS_REDUCE_SUM, &options);
            way->met = status == IRIS_OK && c == call->plan.chunks - 1;
        }
        if (status == IRIS_OK && !call->direct) {
            status =
                iris_i_ops_copy(way->iris, iris_i_ops_part(call->out, 0, rows),
                                sums.sums, call->transport);
        }
    }
    return status;
}

static iris_status_t enqueue(struct iris_ops_way *way)
{
    switch (way->call->op) {
    case IRIS_OPS_MATMUL_ALL_REDUCE:
        return matmul_all_reduce(way);
    case IRIS_OPS_ALL_GATHER_MATMUL:
        return way->call->by_column ? gather_columns(way) : gather_rows(way);
    case IRIS_OPS_MATMUL_ALL_GATHER:
        return matmul_all_gather(way);
    default:
        return matmul_reduce_scatter(way);
    }
}

/* Joins the streams even after a failure, so that a capture can end. */
iris_status_t iris_i_ops_chunks(iris_t *iris, const struct iris_ops_call *call)
{
    struct iris_ops_way way = {.iris = iris, .call = call};
    iris_status_t status, joined;

    way.sent = calloc((size_t)call->plan.chunks, (size_t)call->members);
    status = way.sent == NULL
                 ? iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                               "%s: no memory for its chunks", call->name)
                 : iris_i_way_fork(call);
    status = status == IRIS_OK ? enqueue(&way) : status;
    if (status != IRIS_OK && !call->is_first) {
        status = iris_i_way_fail(&way, status);
    }
    free(way.sent);
    joined = iris_i_way_join(call);
    status = status == IRIS_OK ? joined : status;
    return status;
}
