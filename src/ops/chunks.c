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
#include "backend/backend.h"
#include "context/context.h"
#include "heap/heap.h"
#include "queue/kernels.h"
#include "queue/queue.h"

#include <stdio.h>
#include <stdlib.h>

#define SUM_LANES 512
#define SUM_BYTES 16 /* bytes that a lane of a GPU sums at a time */
/* Workgroups of a sum beside products, and on each processor of the last one. */
#define SUM_BESIDE 16
#define SUM_ALONE 2
#define CLOSE_LANES 64

_Static_assert(2 * ((IRIS_OPS_CHUNKS_MOST + 1) / 2) + 1 <= IRIS_OPS_WORDS_MOST,
               "a call of two members has a word for each chunk and sum");

/* The call and its state. Each of its streams first follows the call's own
 * stream, which follows all of them at the end, also after a failure, so that a
 * capture can end.
 *
 * Products alternate between two streams, so that one fills the processors that
 * the other's last workgroups leave. The transport stream sends to the other
 * members. It first waits until all members have begun the call, and so have
 * finished with their workspace's old contents and words. The call's own stream
 * waits for the other members' data, adds it, and fetches it. Signals and waits
 * are the streams' own where the device has them, since a kernel of one lane
 * would take a processor from a product or wait for the product's end.
 *
 * A single stream could execute the operations in the order of their
 * enqueueing: a member enqueues everything that it sends, for one chunk or for
 * all, before its waits for the others' data.
 *
 * A member's words (ops_args.h) are those of its chunks, of the sums of these
 * in matmul_all_reduce, and one that says that it has fetched everything. */
struct iris_ops_way {
    iris_t *iris;
    const struct iris_ops_call *call;
    unsigned products;   /* so far */
    int words;           /* that each member sets on each other one */
    int met;             /* the members' meeting is enqueued */
    unsigned char *sent; /* whether word w has been set on member m: element
                          * w * members + m */
};

_Static_assert(IRIS_OPS_CALL_FAILED == (int)IRIS_COMPARED_FAILED,
               "kernels report a failure by this number");

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
 * member that makes another call, and words that are not 0. */
static iris_status_t meet_members(struct iris_ops_way *way)
{
    struct iris_ccl_options options = make_options(way->call);
    struct iris_ops_words *words = way->call->words;
    size_t ranks = (size_t)iris_i_num_ranks(way->iris);
    size_t bytes = ranks * sizeof *words;
    /* A copy: the others may set the words before this rank's kernel ends. */
    iris_status_t status = iris_i_copy(iris_i_queue(way->iris), words + ranks,
                                       words, bytes, options.stream);

    options.all_reduce = IRIS_CCL_ONE_SHOT_PACKET;
    status = status == IRIS_OK
                 ? iris_all_reduce(way->iris, words + ranks, words + ranks,
                                   bytes / sizeof(uint32_t), IRIS_DTYPE_U32,
                                   IRIS_REDUCE_MAX, &options)
                 : status;
    way->met = status == IRIS_OK;
    return status;
}

/* For chunks, for sums of chunks, and for the end of fetching. */
static int count_words(const struct iris_ops_call *call)
{
    int chunks = call->plan.chunks;

    return call->op == IRIS_OPS_MATMUL_ALL_REDUCE   ? 2 * chunks + 1
           : call->op == IRIS_OPS_MATMUL_ALL_GATHER ? chunks + 1
                                                    : chunks;
}

/* Sets a word on the member, or says that the failure keeps it from coming. */
static iris_status_t signal_member(const struct iris_ops_way *way,
                                   int64_t member, int word,
                                   iris_status_t failed,
                                   struct iris_stream *stream)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_words *words = &call->words[iris_i_rank(way->iris)];
    const struct iris_transfer signal = {.call = call->name,
                                         .name = "workspace",
                                         .symmetric = &words->arrived[word],
                                         .bytes = sizeof words->arrived[word],
                                         .rank = call->group->ranks[member],
                                         .value = IRIS_OPS_ARRIVED +
                                                  (uint64_t) - (int)failed};
    iris_status_t status = iris_i_enqueue_word(
        iris_i_queue(way->iris), IRIS_HOST_SIGNAL, &signal, stream);

    if (status == IRIS_OK) {
        way->sent[word * call->members + member] = 1;
    }
    return status;
}

static iris_status_t signal_all(const struct iris_ops_way *way, int word,
                                struct iris_stream *stream)
{
    iris_status_t status = IRIS_OK;

    for (int64_t j = 1; j < way->call->members && status == IRIS_OK; j++) {
        status =
            signal_member(way, find_neighbour(way, j), word, IRIS_OK, stream);
    }
    return status;
}

/* After a failure, ends the call on the other members, which wait for this one
 * or for the meeting. Returns `status`, with this thread's message. */
static iris_status_t fail_members(const struct iris_ops_way *way,
                                  iris_status_t status)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ccl_options options = make_options(call);
    char message[IRIS_MESSAGE_BYTES];

    if (!way->met) {
        return iris_i_ops_refuse(way->iris, &options, status);
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    for (int w = 0; w < way->words; w++) {
        for (int64_t m = 0; m < call->members; m++) {
            /* Its own, too. The next call's meeting finds them, if the others
             * go on to send. */
            if (!way->sent[w * call->members + m]) {
                (void)signal_member(way, m, w, status, call->transport);
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

    return status == IRIS_OK
               ? signal_member(way, member, chunk, IRIS_OK, call->transport)
               : status;
}

/* Copies contiguous rows to the place of `kept` on each of the others, and
 * signals that. */
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

/* Holds the stream until the member has set the word. A failure is found at the
 * end. */
static iris_status_t await_member(const struct iris_ops_way *way,
                                  int64_t member, int word,
                                  struct iris_stream *stream)
{
    const struct iris_ops_call *call = way->call;
    int rank = call->group->ranks[member];
    const struct iris_transfer wait = {.call = call->name,
                                       .name = "workspace",
                                       .symmetric =
                                           &call->words[rank].arrived[word],
                                       .bytes = sizeof(uint64_t),
                                       .rank = iris_i_rank(way->iris),
                                       .value = IRIS_OPS_ARRIVED,
                                       .cmp = IRIS_CMP_GE};

    return iris_i_enqueue_word(iris_i_queue(way->iris), IRIS_HOST_WAIT, &wait,
                               stream);
}

/* Holds the stream until all others have set the word. Members without columns
 * send none. */
static iris_status_t await_all(const struct iris_ops_way *way, int word,
                               struct iris_stream *stream)
{
    const struct iris_ops_call *call = way->call;
    iris_status_t status = IRIS_OK;

    for (int64_t j = 1; j < call->members && status == IRIS_OK; j++) {
        int64_t member = find_neighbour(way, -j);

        if (!call->by_column ||
            iris_i_ops_share(call, call->k, member).rows > 0) {
            status = await_member(way, member, word, stream);
        }
    }
    return status;
}

/* Copies rows of the workspace of that member, which has set the word, to their
 * place in `out`. */
static iris_status_t fetch_rows(const struct iris_ops_way *way, int64_t member,
                                int word, const iris_tensor_t *kept,
                                iris_tensor_t out)
{
    const struct iris_ops_call *call = way->call;
    uint32_t rows = (uint32_t)kept->shape[0], columns = (uint32_t)call->n;
    uint32_t size = (uint32_t)iris_dtype_size(kept->dtype);
    const iris_tile_t dst =
        iris_tile(out.data, rows, columns, out.strides[0], size);
    const iris_tile_t src = iris_tile(kept->data, rows, columns, call->n, size);
    const struct iris_tile_transfer get = {
        call->name, &dst, &src, 1, call->group->ranks[member], 1};
    struct iris_stream *stream = call->options.stream;
    iris_status_t status = await_member(way, member, word, stream);

    return status == IRIS_OK
               ? iris_i_enqueue_tiles(iris_i_queue(way->iris), &get, stream)
               : status;
}

/* The others may write to their workspaces after that, which this member has
 * read; and it to its own. */
static iris_status_t finish_fetching(const struct iris_ops_way *way)
{
    struct iris_stream *stream = way->call->options.stream;
    iris_status_t status = signal_all(way, way->words - 1, stream);

    return status == IRIS_OK ? await_all(way, way->words - 1, stream) : status;
}

/* Clears the call's words, when all of them have come. */
static iris_status_t clear_words(const struct iris_ops_way *way)
{
    const struct iris_ops_call *call = way->call;
    const struct iris_compared compared = {
        .op = IRIS_COMPARED_MATMUL_ALL_REDUCE + (int)call->op,
        .dtype = (int)call->b->dtype};
    const struct iris_ops_close_args args = {
        .context = iris_i_queue_context(iris_i_queue(way->iris)),
        .words = call->words,
        .ranks = (uint64_t)iris_i_num_ranks(way->iris),
        .what = iris_i_compared_pack(&compared).what};
    struct iris_launch_request request = {
        iris_i_ops_close_kernel, 1, CLOSE_LANES, &args, sizeof args, true};

    return iris_i_launch(iris_i_queue(way->iris), &request,
                         call->options.stream);
}

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
static struct iris_ops_share shift_rows(struct iris_ops_share rows,
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
static iris_status_t skip_product(const struct iris_ops_way *way)
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

/* The place where a member keeps its product of these rows of its share. */
static iris_tensor_t keep_product(const struct iris_ops_way *way,
                                  struct iris_ops_share at)
{
    return iris_i_ops_kept(way->call, at.begin, at.rows, way->call->n);
}

/* Computes a chunk's product, and tells the others. */
static iris_status_t gather_product(struct iris_ops_way *way, int chunk)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share share = share_of(way, call->index);
    struct iris_ops_share at = shift_rows(chunk_of(way, share, chunk), share);
    struct iris_stream *products = next_products(way);
    iris_status_t status;

    if (at.rows == 0) {
        return skip_product(way);
    }
    status = multiply_rows(way, iris_i_ops_part(call->a, 0, at),
                           keep_product(way, at), at.begin, products);
    if (status == IRIS_OK) {
        status = iris_i_queue_follow(call->transport, products);
    }
    return status == IRIS_OK ? signal_all(way, chunk, call->transport) : status;
}

/* Fetches another member's product of these rows. */
static iris_status_t take_product(struct iris_ops_way *way, int64_t member,
                                  int chunk, struct iris_ops_share rows)
{
    iris_tensor_t kept =
        keep_product(way, shift_rows(rows, share_of(way, member)));

    return rows.rows == 0
               ? IRIS_OK
               : fetch_rows(way, member, chunk, &kept,
                            iris_i_ops_part(way->call->out, 0, rows));
}

static iris_status_t gather_products(struct iris_ops_way *way)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share share = share_of(way, call->index);
    iris_status_t status = meet_members(way);

    for (int c = 0; c < call->plan.chunks && status == IRIS_OK; c++) {
        status = gather_product(way, c);
    }
    if (status == IRIS_OK) {
        status = iris_i_ops_copy(
            way->iris, iris_i_ops_part(call->out, 0, share),
            keep_product(way, shift_rows(share, share)), call->transport);
    }
    status = status == IRIS_OK ? take_all(way, take_product) : status;
    return status == IRIS_OK ? finish_fetching(way) : status;
}

/* Sends a chunk of `a`, and multiplies it. */
static iris_status_t multiply_own(struct iris_ops_way *way, int chunk)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share share = share_of(way, call->index);
    struct iris_ops_share rows = chunk_of(way, share, chunk);
    iris_tensor_t a = iris_i_ops_part(call->a, 0, shift_rows(rows, share));
    iris_tensor_t kept = iris_i_ops_kept(call, rows.begin, rows.rows, call->k);
    /* The product has the strides and the alignment of the other members'. */
    int direct =
        is_in_place(way, &a) &&
        ((uintptr_t)a.data ^ (uintptr_t)kept.data) % IRIS_BLAS_ALIGNMENT == 0;
    struct iris_stream *products = next_products(way);
    iris_status_t status = IRIS_OK;

    if (rows.rows == 0) {
        return skip_product(way);
    }
    if (!direct) {
        status = iris_i_ops_copy(way->iris, kept, a, products);
        if (status == IRIS_OK) {
            status = iris_i_queue_follow(call->transport, products);
        }
    }
    if (status == IRIS_OK) {
        status = send_to_all(way, &kept, direct ? a.data : kept.data, chunk);
    }
    return status == IRIS_OK
               ? multiply_rows(way, direct ? a : kept,
                               iris_i_ops_part(call->out, 0, rows), rows.begin,
                               products)
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
        return skip_product(way);
    }
    status = await_member(way, member, chunk, products);
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
static iris_tensor_t find_slot(const struct iris_ops_way *way, int64_t i,
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
    iris_tensor_t there = find_slot(way, call->index, shift_rows(rows, share));
    iris_tensor_t to =
        member == call->index ? there : find_slot(way, call->members, rows);
    struct iris_stream *products = next_products(way);
    iris_status_t status;

    if (rows.rows == 0) {
        return skip_product(way);
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
static iris_status_t sum_up(const struct iris_ops_way *way, int chunk,
                            struct iris_ops_share at, iris_tensor_t out)
{
    const struct iris_ops_call *call = way->call;
    size_t size = iris_dtype_size(call->b->dtype);
    int dense = at.rows == 1 || out.strides[0] == call->n;
    struct iris_ops_sum_args args = {
        .in = find_slot(way, 0, at).data,
        .out = out.data,
        .pitch = (uint64_t)(iris_i_ops_most(call, call->m) * call->n) * size,
        .members = (uint64_t)call->members,
        .rows = dense ? 1 : (uint64_t)at.rows,
        .columns = (uint64_t)(dense ? at.rows * call->n : call->n),
        .out_row = out.strides[0]};
    uint64_t bytes = (uint64_t)(at.rows * call->n) * size;
    uint64_t worth = bytes / (SUM_LANES * SUM_BYTES) + 1;
    uint64_t most =
        chunk < call->plan.chunks - 1
            ? SUM_BESIDE
            : SUM_ALONE * (uint64_t)iris_i_device(way->iris)->num_cus;
    struct iris_launch_request request = {
        iris_i_ops_sum_kernel(call->b->dtype),
        (unsigned)(worth < most ? worth : most),
        SUM_LANES,
        &args,
        sizeof args,
        true};
    iris_status_t status = await_all(way, chunk, call->options.stream);

    return status == IRIS_OK ? iris_i_launch(iris_i_queue(way->iris), &request,
                                             call->options.stream)
                             : status;
}

/* Multiplies a chunk of every share, the next member's first, this member's
 * last, and sends them there. */
static iris_status_t scatter_chunk(struct iris_ops_way *way, int chunk)
{
    iris_status_t status = IRIS_OK;

    for (int64_t j = 1; j <= way->call->members && status == IRIS_OK; j++) {
        status = scatter_product(way, find_neighbour(way, j), chunk);
    }
    return status;
}

static iris_status_t scatter_products(struct iris_ops_way *way)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share share = share_of(way, call->index);
    iris_status_t status = meet_members(way);

    for (int c = 0; c < call->plan.chunks && status == IRIS_OK; c++) {
        struct iris_ops_share at = shift_rows(chunk_of(way, share, c), share);

        status = scatter_chunk(way, c);
        if (status == IRIS_OK && at.rows > 0) {
            status = sum_up(way, c, at, iris_i_ops_part(call->out, 0, at));
        }
    }
    return status;
}

/* Sums a chunk of this member's share in its own slot, from which the others
 * fetch it. */
static iris_status_t share_sums(struct iris_ops_way *way, int chunk)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ops_share share = share_of(way, call->index);
    struct iris_ops_share rows = chunk_of(way, share, chunk);
    iris_tensor_t sums = find_slot(way, call->index, shift_rows(rows, share));
    struct iris_stream *stream = call->options.stream;
    iris_status_t status;

    if (rows.rows == 0) {
        return IRIS_OK;
    }
    status = sum_up(way, chunk, shift_rows(rows, share), sums);
    if (status == IRIS_OK) {
        status = signal_all(way, call->plan.chunks + chunk, stream);
    }
    if (status == IRIS_OK) {
        status = iris_i_queue_follow(call->transport, stream);
    }
    return status == IRIS_OK
               ? iris_i_ops_copy(way->iris, iris_i_ops_part(call->out, 0, rows),
                                 sums, call->transport)
               : status;
}

/* Fetches a chunk's sums from the other members. */
static iris_status_t fetch_sums(struct iris_ops_way *way, int chunk)
{
    const struct iris_ops_call *call = way->call;
    iris_status_t status = IRIS_OK;

    for (int64_t j = 1; j < call->members && status == IRIS_OK; j++) {
        int64_t member = find_neighbour(way, -j);
        struct iris_ops_share share = share_of(way, member);
        struct iris_ops_share rows = chunk_of(way, share, chunk);
        iris_tensor_t sums = find_slot(way, member, shift_rows(rows, share));

        if (rows.rows > 0) {
            status = fetch_rows(way, member, call->plan.chunks + chunk, &sums,
                                iris_i_ops_part(call->out, 0, rows));
        }
    }
    return status;
}

static iris_status_t reduce_products(struct iris_ops_way *way)
{
    int chunks = way->call->plan.chunks;
    iris_status_t status = meet_members(way);

    for (int c = 0; c < chunks && status == IRIS_OK; c++) {
        status = scatter_chunk(way, c);
        status = status == IRIS_OK ? share_sums(way, c) : status;
        status = status == IRIS_OK ? fetch_sums(way, c) : status;
    }
    return status == IRIS_OK ? finish_fetching(way) : status;
}

static iris_status_t enqueue_chunks(struct iris_ops_way *way)
{
    switch (way->call->op) {
    case IRIS_OPS_MATMUL_ALL_REDUCE:
        return reduce_products(way);
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
    struct iris_ops_way way = {
        .iris = iris, .call = call, .words = count_words(call)};
    iris_status_t status, joined;

    way.sent = calloc((size_t)way.words, (size_t)call->members);
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
    return status == IRIS_OK ? clear_words(&way) : status;
}
