/* SPDX-License-Identifier: MIT
 *
 * The building blocks of operations in chunks: their streams, and the transfer
 * of chunks between members.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>

#include "backend/backend.h"
#include "context/context.h"
#include "heap/heap.h"
#include "ops/kernels.h"
#include "queue/kernels.h"
#include "queue/queue.h"

#include <stdio.h>

_Static_assert(IRIS_OPS_CALL_FAILED == (int)IRIS_COMPARED_FAILED,
               "kernels report a failure by this number");

struct iris_stream *iris_i_way_products(struct iris_ops_way *way)
{
    return way->call->products[way->products++ % 2];
}

iris_status_t iris_i_way_fork(const struct iris_ops_call *call)
{
    struct iris_stream *stream = call->options.stream;
    iris_status_t status = iris_i_queue_follow(call->transport, stream);

    for (int i = 0; i < 2 && status == IRIS_OK; i++) {
        status = iris_i_queue_follow(call->products[i], stream);
    }
    return status;
}

iris_status_t iris_i_way_join(const struct iris_ops_call *call)
{
    struct iris_stream *stream = call->options.stream;
    iris_status_t status = iris_i_queue_follow(stream, call->transport);

    for (int i = 0; i < 2 && status == IRIS_OK; i++) {
        status = iris_i_queue_follow(stream, call->products[i]);
    }
    return status;
}

int64_t iris_i_way_neighbour(const struct iris_ops_way *way, int64_t j)
{
    int64_t members = way->call->members;

    return (way->call->index + j + members) % members;
}

int iris_i_way_is_direct(const struct iris_ops_way *way,
                         const iris_tensor_t *rows)
{
    return iris_tensor_is_contiguous(rows, IRIS_FORMAT_CONTIGUOUS) &&
           iris_i_heap_bytes_from(iris_i_heap(way->iris), rows->data) > 0;
}

struct iris_ccl_options iris_i_way_options(const struct iris_ops_call *call)
{
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.stream = call->transport;
    options.group = call->options.group;
    return options;
}

iris_status_t iris_i_way_meet(struct iris_ops_way *way)
{
    struct iris_ccl_options options = iris_i_way_options(way->call);
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

iris_status_t iris_i_way_fail(const struct iris_ops_way *way,
                              iris_status_t status)
{
    const struct iris_ops_call *call = way->call;
    struct iris_ccl_options options = iris_i_way_options(call);
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

iris_status_t iris_i_way_send(const struct iris_ops_way *way,
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

iris_status_t iris_i_way_send_to_all(const struct iris_ops_way *way,
                                     const iris_tensor_t *kept,
                                     const void *from, int chunk)
{
    iris_status_t status = IRIS_OK;

    for (int64_t j = 1; j < way->call->members && status == IRIS_OK; j++) {
        status = iris_i_way_send(way, kept, from, iris_i_way_neighbour(way, j),
                                 chunk);
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

iris_status_t iris_i_way_await(const struct iris_ops_way *way, int64_t member,
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

iris_status_t iris_i_way_await_all(const struct iris_ops_way *way, int chunk,
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
        int64_t member = iris_i_way_neighbour(way, -j);

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
