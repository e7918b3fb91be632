/* SPDX-License-Identifier: MIT
 *
 * Operations in chunks of rows, on their own streams: the transfer of one chunk
 * overlaps with the product of another.
 *
 * Each stream of a call follows the call's own stream at the start, which
 * follows all of them at the end, also after a failure, so that a capture can
 * end. A member writes to another one only after the members' meeting, which
 * says that the other's workspace is free. A member enqueues everything that it
 * sends before it waits for the others' data.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>
#include <iris/device/kernels/ops_args.h>

#include "ops/kernels.h"
#include "backend/backend.h"
#include "context/context.h"
#include "heap/heap.h"
#include "queue/kernels.h"
#include "queue/queue.h"

#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------------
 * The building blocks of operations in chunks: their streams, and the transfer
 * of chunks between members.
 */

/* The call and its state. Each of its streams first follows the call's own
 * stream, which follows all of them at the end.
 *
 * Products alternate between two streams, so that one fills the processors that
 * the other's last workgroups leave. The transport stream copies to the other
 * members and signals each copy (ops_chunk.h). No member copies to another one
 * before that has begun the call, and so has finished with its workspace's old
 * contents. A single stream could execute the operations in the order of their
 * enqueueing: a member enqueues everything that it sends, for one chunk or for
 * all, before its waits for the others' data. */
struct iris_ops_way {
    iris_t *iris;
    const struct iris_ops_call *call;
    unsigned products;   /* so far */
    int met;             /* the members' meeting is enqueued */
    unsigned char *sent; /* whether chunk c has been sent to member m: element
                          * c * members + m */
};

_Static_assert(IRIS_OPS_CALL_FAILED == (int)IRIS_COMPARED_FAILED,
               "kernels report a failure by this number");

/* The stream of the next product. */
static struct iris_stream *next_products(struct iris_ops_way *way)
{
    return way->call->products[way->products++ % 2];
}

/* The call's other streams follow its own one. */
static iris_status_t fork_streams(const struct iris_ops_call *call)
{
    struct iris_stream *stream = call->options.stream;
    iris_status_t status = iris_i_queue_follow(call->transport, stream);

    for (int i = 0; i < 2 && status == IRIS_OK; i++) {
        status = iris_i_queue_follow(call->products[i], stream);
    }
    return status;
}

/* The call's own stream follows its other streams. */
static iris_status_t join_streams(const struct iris_ops_call *call)
{
    struct iris_stream *stream = call->options.stream;
    iris_status_t status = iris_i_queue_follow(stream, call->transport);

    for (int i = 0; i < 2 && status == IRIS_OK; i++) {
        status = iris_i_queue_follow(stream, call->products[i]);
    }
    return status;
}

/* The j-th member after this one, or with a negative j before it. */
static int64_t find_neighbour(const struct iris_ops_way *way, int64_t j)
{
    int64_t members = way->call->members;

    return (way->call->index + j + members) % members;
}

/* Whether copy engines may read or write rows in place. */
static int is_in_place(const struct iris_ops_way *way,
                       const iris_tensor_t *rows)
{
    return iris_tensor_is_contiguous(rows, IRIS_FORMAT_CONTIGUOUS) &&
           iris_i_heap_bytes_from(iris_i_heap(way->iris), rows->data) > 0;
}

/* Options of a collective on the transport stream. */
static struct iris_ccl_options make_options(const struct iris_ops_call *call)
{
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.stream = call->transport;
    options.group = call->options.group;
    return options;
}

/* Holds the transport stream until all members have begun the call. Detects a
 * member that makes another call. */
static iris_status_t meet_members(struct iris_ops_way *way)
{
    struct iris_ccl_options options = make_options(way->call);
    uint64_t *word = &way->call->words[iris_i_rank(way->iris)].hello;

    iris_status_t status;

    options.all_reduce = IRIS_CCL_ONE_SHOT_PACKET;
    status = iris_all_reduce(way->iris, word, word, 1, IRIS_DTYPE_U32,
                             IRIS_REDUCE_MAX, &options);
    way->met = status == IRIS_OK;
    return status;
}

/* Launches one workgroup of a kernel of the library. */
static iris_status_t launch(const struct iris_ops_way *way,
                            const struct iris_kernel *kernel, unsigned lanes,
                            const void *args, struct iris_stream *stream)
{
    struct iris_launch_request request = {
        kernel, 1, lanes, args, kernel->args_bytes, true};

    return iris_i_launch(iris_i_queue(way->iris), &request, stream);
}

/* Signals a chunk on the member, or the failure because of which none comes. */
static iris_status_t signal_chunk(const struct iris_ops_way *way,
                                  int64_t member, int chunk,
                                  iris_status_t failed)
{
    const struct iris_ops_call *call = way->call;
    const struct iris_ops_signal_args args = {
        iris_i_queue_context(iris_i_queue(way->iris)),
        call->words,
        iris_i_rank(way->iris),
        call->group->ranks[member],
        (uint32_t)chunk,
        (uint32_t) - (int)failed};
    iris_status_t status =
        launch(way, iris_i_ops_signal_kernel, 1, &args, call->transport);

    if (status == IRIS_OK) {
        way->sent[chunk * call->members + member] = 1;
    }
    return status;
}

/* After a failure, ends the call on the other members, which wait for chunks of
 * this one or for the meeting. Returns `status`, with this thread's message. */
static iris_status_t fail_members(const struct iris_ops_way *way,
                                  iris_status_t status)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ccl_options options = make_options(call);
    char message[IRIS_MESSAGE_BYTES];

    if (!way->met) {
        return iris_i_ops_refuse(way->iris, &options, status);
    }
    if (call->op == IRIS_OPS_MATMUL_ALL_REDUCE) {
        return status; /* nobody waits any longer */
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    for (int c = 0; c < call->plan.chunks; c++) {
        for (int64_t m = 0; m < call->members; m++) {
            if (m != call->index && !way->sent[c * call->members + m]) {
                (void)signal_chunk(way, m, c, status);
            }
        }
    }
    return iris_i_fail_again(status, message);
}

static iris_status_t send_chunk(const struct iris_ops_way *way,
                                const iris_tensor_t *kept, const void *from,
                                int64_t member, int chunk)
{
    const struct iris_ops_call *call = way->call;
    const struct iris_transfer put = {.call = call->name,
                                      .name = "workspace",
                                      .symmetric = kept->data,
                                      .other = (void *)(uintptr_t)from,
                                      .bytes = (size_t)iris_tensor_numel(kept) *
                                               iris_dtype_size(kept->dtype),
                                      .rank = call->group->ranks[member]};
    iris_status_t status =
        iris_i_enqueue_transfer(iris_i_queue(way->iris), &put, call->transport);

    return status == IRIS_OK ? signal_chunk(way, member, chunk, IRIS_OK)
                             : status;
}

/* Copies contiguous rows to the place of `kept` on the member, or on each of
 * the others, and signals that. */
static iris_status_t send_to_all(const struct iris_ops_way *way,
                                 const iris_tensor_t *kept, const void *from,
                                 int chunk)
{
    iris_status_t status = IRIS_OK;

    for (int64_t j = 1; j < way->call->members && status == IRIS_OK; j++) {
        status = send_chunk(way, kept, from, find_neighbour(way, j), chunk);
    }
    return status;
}

static uint64_t what_of(const struct iris_ops_call *call)
{
    const struct iris_compared compared = {
        .op = IRIS_COMPARED_MATMUL_ALL_REDUCE + (int)call->op,
        .dtype = (int)call->b->dtype};

    return iris_i_compared_pack(&compared).what;
}

static iris_status_t await_chunk(const struct iris_ops_way *way, int64_t member,
                                 int chunk, struct iris_stream *stream)
{
    const struct iris_ops_wait_args args = {
        .context = iris_i_queue_context(iris_i_queue(way->iris)),
        .words = way->call->words,
        .chunk = (uint32_t)chunk,
        .count = 1,
        .what = what_of(way->call),
        .ranks = {way->call->group->ranks[member]}};

    return launch(way, iris_i_ops_wait_kernel, 1, &args, stream);
}

/* Holds the stream until the chunk of that member, or of all others, has
 * arrived. Members without columns send none. */
static iris_status_t await_all(const struct iris_ops_way *way, int chunk,
                               struct iris_stream *stream)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_wait_args args = {
        .context = iris_i_queue_context(iris_i_queue(way->iris)),
        .words = call->words,
        .what = what_of(call),
        .chunk = (uint32_t)chunk};
    iris_status_t status = IRIS_OK;

    for (int64_t j = 1; j < call->members && status == IRIS_OK; j++) {
        int64_t member = find_neighbour(way, -j);

        if (!call->by_column ||
            iris_i_ops_share(call, call->k, member).rows > 0) {
            args.ranks[args.count++] = call->group->ranks[member];
        }
        if (args.count == IRIS_OPS_RANKS_MOST ||
            (j == call->members - 1 && args.count > 0)) {
            status =
                launch(way, iris_i_ops_wait_kernel, args.count, &args, stream);
            args.count = 0;
        }
    }
    return status;
}

/* ---------------------------------------------------------------------------
 * Operations in chunks of rows, on their own streams: the transfer of one chunk
 * overlaps with the product of another.
 */

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
static iris_status_t multiply_rows(const struct iris_ops_way *way,
                                   iris_tensor_t a, iris_tensor_t out,
                                   int64_t begin, struct iris_stream *stream)
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
        int64_t member = find_neighbour(way, -1 - i % others);
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
    int direct = is_in_place(way, &out);
    const iris_tensor_t *to = direct ? &out : &kept;
    struct iris_stream *products = next_products(way);
    iris_status_t status;

    if (rows.rows == 0) {
        return skip(way);
    }
    status = multiply_rows(way, iris_i_ops_part(call->a, 0, at), *to, at.begin,
                           products);
    if (status == IRIS_OK) {
        status = iris_i_queue_follow(call->transport, products);
    }
    if (status == IRIS_OK) {
        status = send_to_all(way, &kept, to->data, chunk);
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
        rows.rows == 0 ? IRIS_OK : await_chunk(way, member, chunk, stream);

    return status == IRIS_OK
               ? iris_i_ops_copy(
                     way->iris, iris_i_ops_part(call->out, 0, rows),
                     iris_i_ops_kept(call, rows.begin, rows.rows, call->n),
                     stream)
               : status;
}

static iris_status_t gather_products(struct iris_ops_way *way)
{
    iris_status_t status = meet_members(way);

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
    int direct = is_in_place(way, &a);
    struct iris_stream *products = next_products(way);
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
        status = send_to_all(way, &kept, direct ? a.data : kept.data, chunk);
    }
    return status == IRIS_OK
               ? multiply_rows(way, kept, iris_i_ops_part(call->out, 0, rows),
                               rows.begin, products)
               : status;
}

/* Multiplies other members' rows after their arrival. */
static iris_status_t take_rows(struct iris_ops_way *way, int64_t member,
                               int chunk, struct iris_ops_share rows)
{
    const struct iris_ops_call *call = way->call;
    struct iris_stream *products = next_products(way);
    iris_status_t status;

    if (rows.rows == 0) {
        return skip(way);
    }
    status = await_chunk(way, member, chunk, products);
    return status == IRIS_OK
               ? multiply_rows(
                     way, iris_i_ops_kept(call, rows.begin, rows.rows, call->k),
                     iris_i_ops_part(call->out, 0, rows), rows.begin, products)
               : status;
}

static iris_status_t gather_row_chunks(struct iris_ops_way *way)
{
    iris_status_t status = meet_members(way);

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
    return status == IRIS_OK ? send_to_all(way, &kept, kept.data, chunk)
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
    iris_status_t status = await_all(way, chunk, products);

    for (int64_t i = 0; i < call->members && status == IRIS_OK; i++) {
        iris_tensor_t columns = iris_i_ops_kept_columns(call, i);

        status = iris_i_ops_copy(
            way->iris,
            iris_i_ops_part(&whole, 1, iris_i_ops_share(call, call->k, i)),
            iris_i_ops_part(&columns, 0, rows), products);
    }
    return status == IRIS_OK
               ? multiply_rows(way, whole, iris_i_ops_part(call->out, 0, rows),
                               rows.begin, products)
               : status;
}

static iris_status_t gather_column_chunks(struct iris_ops_way *way)
{
    int chunks = way->call->plan.chunks;
    iris_status_t status = meet_members(way);

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
    struct iris_stream *products = next_products(way);
    iris_status_t status;

    if (rows.rows == 0) {
        return skip(way);
    }
    status = multiply_rows(way, iris_i_ops_part(call->a, 0, rows), to,
                           rows.begin, products);
    if (status != IRIS_OK || member == call->index) {
        return status == IRIS_OK
                   ? iris_i_queue_follow(call->options.stream, products)
                   : status;
    }
    status = iris_i_queue_follow(call->transport, products);
    return status == IRIS_OK ? send_chunk(way, &there, to.data, member, chunk)
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
    status = await_all(way, chunk, call->options.stream);
    return status == IRIS_OK ? iris_i_launch(iris_i_queue(way->iris), &request,
                                             call->options.stream)
                             : status;
}

static iris_status_t scatter_products(struct iris_ops_way *way)
{
    const struct iris_ops_call *call = way->call;
    iris_status_t status = meet_members(way);

    for (int c = 0; c < call->plan.chunks && status == IRIS_OK; c++) {
        for (int64_t j = 1; j <= call->members && status == IRIS_OK; j++) {
            status = scatter_product(way, find_neighbour(way, j), c);
        }
        status = status == IRIS_OK ? sum_up(way, c) : status;
    }
    return status;
}

static iris_status_t reduce_by_chunks(struct iris_ops_way *way)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ccl_options options = make_options(call);
    struct iris_ops_share all = {0, call->m};
    iris_status_t status = IRIS_OK;

    options.num_cus = call->plan.workgroups;
    for (int c = 0; c < call->plan.chunks && status == IRIS_OK; c++) {
        struct iris_ops_share rows = chunk_of(way, all, c);
        struct iris_ops_sums sums = iris_i_ops_sums(call, rows);
        struct iris_stream *products = next_products(way);

        way->met = 0; /* the members wait for each other in each chunk */
        status = multiply_rows(way, iris_i_ops_part(call->a, 0, rows),
                               sums.products, rows.begin, products);
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

static iris_status_t enqueue_chunks(struct iris_ops_way *way)
{
    switch (way->call->op) {
    case IRIS_OPS_MATMUL_ALL_REDUCE:
        return reduce_by_chunks(way);
    case IRIS_OPS_ALL_GATHER_MATMUL:
        return way->call->by_column ? gather_column_chunks(way)
                                    : gather_row_chunks(way);
    case IRIS_OPS_MATMUL_ALL_GATHER:
        return gather_products(way);
    default:
        return scatter_products(way);
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
                 : fork_streams(call);
    status = status == IRIS_OK ? enqueue_chunks(&way) : status;
    if (status != IRIS_OK && !call->is_first) {
        status = fail_members(&way, status);
    }
    free(way.sent);
    joined = join_streams(call);
    status = status == IRIS_OK ? joined : status;
    return status;
}
