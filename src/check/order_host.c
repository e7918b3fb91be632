/* SPDX-License-Identifier: MIT
 *
 * The order by hosts: their collective calls, and their streams.
 *
 * The outermost collective call of a group is a meeting, which orders the members'
 * hosts. A stream's clock has all work that has ended. Enqueued work keeps the
 * clock that the host had at the call, in a list, first in, first out. When work
 * begins, the stream's clock joins those of its item and of the items before it.
 * The end of a run joins the clocks of its lanes. The caller holds its lock: the
 * common one, or the schedule's.
 */
#include "config.h"

#include "check/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Collective calls ---- */

static bool is_collective(const struct iris_host_event *event)
{
    return event->op == IRIS_HOST_ALLOC || event->op == IRIS_HOST_FREE ||
           event->op == IRIS_HOST_BROADCAST ||
           event->op == IRIS_HOST_GROUP_CREATE ||
           (event->op == IRIS_HOST_BARRIER && event->stream == NULL);
}

/* The number of the group, which all members find by this key (not 0).
 * IRIS_ORDER_GROUPS: there are too many. */
static uint32_t find_group(struct iris_order_shared *shared, uint64_t key)
{
    uint32_t i = 0;

    while (i < IRIS_ORDER_GROUPS && shared->groups[i].key != key &&
           shared->groups[i].key != 0) {
        i++;
    }
    if (i == IRIS_ORDER_GROUPS) {
        shared->blind = true;
    } else {
        shared->groups[i].key = key;
    }
    return i;
}

/* This rank's next call of the group; NULL: of all ranks. kind 0: on the host; 1:
 * on streams; pair_ranks(): messages from one member to another. */
static struct iris_order_call number_call(struct iris_order_host *host,
                                          const void *group, uint64_t kind)
{
    struct iris_order_call call = {0, 0};
    uint64_t members = group == NULL ? 1 : host->group_key(group);
    uint32_t number = find_group(host->order->shared, 2 * members + kind);

    if (number < IRIS_ORDER_GROUPS) {
        call.group = number;
        call.number = ++host->calls[number];
    }
    return call;
}

static uint64_t pair_ranks(int from, int to)
{
    uint64_t pair = (uint64_t)(uint32_t)from << 32 | (uint32_t)to;

    return (pair + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

struct iris_order_meeting *
iris_i_order_meeting(struct iris_order *order,
                     const struct iris_order_call *call)
{
    struct iris_order_group *group = &order->shared->groups[call->group];
    struct iris_order_meeting *meeting =
        &group->meetings[call->number % IRIS_ORDER_MEETINGS];

    if (meeting->number < call->number) {
        iris_i_order_free(order, &meeting->clock);
        meeting->number = call->number;
        meeting->cleared = false;
    }
    return meeting;
}

static struct iris_order_clock *
get_host_clock(const struct iris_order_host *host)
{
    return &host->order->shared->lanes[host->lane].clock;
}

/* In a collective call: the host's operations so far happen before the other
 * members' later ones. */
static void come_to_call(struct iris_order_host *host)
{
    if (host->depth != 0 && host->call.number != 0) {
        iris_i_order_join(
            host->order, &iris_i_order_meeting(host->order, &host->call)->clock,
            get_host_clock(host), 0);
        iris_i_order_tick(host->order, host->lane);
    }
}

static void pass_call(struct iris_order_host *host,
                      const struct iris_host_event *event)
{
    if (!event->after && host->depth++ == 0) {
        host->call = number_call(host, event->group, 0);
        come_to_call(host);
    } else if (event->after && --host->depth == 0 && host->call.number != 0) {
        iris_i_order_join(
            host->order, get_host_clock(host),
            &iris_i_order_meeting(host->order, &host->call)->clock, 0);
    }
}

/* ---- Streams ---- */

static struct iris_order_stream *find_order_stream(struct iris_order_host *host,
                                                   const void *stream)
{
    struct iris_order_stream *one;

    stream = stream == NULL ? host->default_stream : stream;
    for (uint32_t i = 0; i < host->num_streams; i++) {
        if (host->streams[i]->stream == stream) {
            return host->streams[i];
        }
    }
    one =
        iris_i_reserve(&host->streams, host->num_streams, sizeof *host->streams)
            ? calloc(1, sizeof *one)
            : NULL;
    if (one == NULL) {
        host->order->shared->blind = true;
        return NULL;
    }
    one->stream = stream;
    host->streams[host->num_streams++] = one;
    one->number = host->num_streams;
    return one;
}

struct iris_order_stream *
iris_i_order_find_run(const struct iris_order_host *host, uint64_t run)
{
    for (uint32_t i = 0; i < host->num_streams; i++) {
        if (host->streams[i]->run == run) {
            return host->streams[i];
        }
    }
    return NULL;
}

uint32_t iris_i_order_lane(struct iris_order_host *host,
                           struct iris_order_stream *stream, uint64_t run,
                           uint32_t workgroup)
{
    uint32_t *lane_p1 = &stream->lanes[workgroup % IRIS_ORDER_WGS];
    struct iris_order_lane *lanes = host->order->shared->lanes;

    if (*lane_p1 == 0) {
        *lane_p1 = iris_i_order_add_lane(host->order, lanes[host->lane].rank,
                                         stream->number);
    }
    if (*lane_p1 != 0 && lanes[*lane_p1 - 1].run != run) {
        lanes[*lane_p1 - 1].run = run;
        iris_i_order_begin(host->order, *lane_p1 - 1, &stream->clock);
    }
    return *lane_p1;
}

static void join_parts_of_run(struct iris_order_host *host,
                              struct iris_order_stream *stream, uint32_t lane)
{
    const struct iris_order_lane *lanes = host->order->shared->lanes;

    for (unsigned i = 0; i < IRIS_CPU_PARTS - 1; i++) {
        uint32_t part = lanes[lane].parts[i];

        if (part != 0 && lanes[part - 1].run == stream->run) {
            iris_i_order_join(host->order, &stream->clock,
                              &lanes[part - 1].clock, 0);
        }
    }
}

static void end_stream_run(struct iris_order_host *host,
                           struct iris_order_stream *stream)
{
    struct iris_order_lane *lanes = host->order->shared->lanes;

    for (uint32_t i = 0; i < IRIS_ORDER_WGS; i++) {
        uint32_t lane = stream->lanes[i];

        if (lane != 0 && lanes[lane - 1].run == stream->run) {
            iris_i_order_join(host->order, &stream->clock,
                              &lanes[lane - 1].clock, 0);
            join_parts_of_run(host, stream, lane - 1);
        }
    }
    stream->run = 0;
}

/* ---- Enqueued work ---- */

static void enqueue_work(struct iris_order_host *host,
                         struct iris_order_stream *stream,
                         const struct iris_host_event *event)
{
    struct iris_order_work *work =
        iris_i_grow(&stream->work, &stream->num_work, sizeof *work);

    if (work == NULL) {
        host->order->shared->blind = true;
    } else {
        work->id = event->id;
        work->op = event->op;
        work->site = host->outer;
        work->exchange = host->enqueuing;
        iris_i_order_join(host->order, &work->clock, get_host_clock(host), 0);
        iris_i_order_tick(host->order, host->lane);
    }
    if (event->op == IRIS_HOST_LAUNCH) {
        if (work != NULL) {
            work->buffers = host->buffers;
        }
        memset(&host->buffers, 0, sizeof host->buffers);
    }
}

static void remove_work(struct iris_order_host *host,
                        struct iris_order_stream *stream, size_t first,
                        size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        iris_i_order_free(host->order, &stream->work[i].clock);
    }
    stream->num_work -= count;
    memmove(stream->work + first, stream->work + first + count,
            (stream->num_work - first) * sizeof *stream->work);
}

/* Finds the work that begins: a kernel's by its id, a copy or fill as the first
 * remaining one. The items before it were skipped, or belong to the same
 * call. */
static void begin_work(struct iris_order_host *host,
                       struct iris_order_stream *stream, enum iris_host_op op,
                       uint64_t id)
{
    size_t count = 0;

    while (count < stream->num_work &&
           (stream->work[count].op != op ||
            (id != 0 && stream->work[count].id != id))) {
        count++;
    }
    memset(&stream->now, 0, sizeof stream->now);
    if (count == stream->num_work) {
        return;
    }
    stream->now = stream->work[count++];
    for (size_t i = 0; i < count; i++) {
        iris_i_order_join(host->order, &stream->clock, &stream->work[i].clock,
                          0);
    }
    remove_work(host, stream, 0, count);
}

/* Copies, fills, signals and waits may launch kernels, which belong to the call.
 * A failed call has enqueued no work. */
static void enqueue_call(struct iris_order_host *host,
                         struct iris_order_stream *stream,
                         const struct iris_host_event *event, uint32_t site)
{
    size_t i = 0;

    if (event->op != IRIS_HOST_LAUNCH) {
        host->outer = event->after ? 0 : site;
    }
    if (event->op == IRIS_HOST_SIGNAL || event->op == IRIS_HOST_WAIT) {
        return;
    }
    if (!event->after) {
        enqueue_work(host, stream, event);
    } else if (event->status != IRIS_OK) {
        while (i < stream->num_work && stream->work[i].id != event->id) {
            i++;
        }
        if (i < stream->num_work) {
            remove_work(host, stream, i, 1);
        }
    }
}

/* The run of a kernel, a copy or a fill. A collective's kernel does not begin
 * after any work of other members. It ends after the begin of the members whose
 * data it has received. */
static void pass_run(struct iris_order_host *host,
                     struct iris_order_stream *stream,
                     const struct iris_host_event *event)
{
    bool is_kernel = event->op == IRIS_HOST_KERNEL;
    const struct iris_order_exchange *exchange = &stream->now.exchange;

    if (event->after) {
        end_stream_run(host, stream);
        if (is_kernel && exchange->hears.number != 0) {
            iris_i_order_join(
                host->order, &stream->clock,
                &iris_i_order_meeting(host->order, &exchange->hears)->clock, 0);
        }
        return;
    }
    begin_work(host, stream,
               is_kernel                         ? IRIS_HOST_LAUNCH
               : event->op == IRIS_HOST_RUN_COPY ? IRIS_HOST_COPY
                                                 : IRIS_HOST_SET,
               is_kernel ? event->value : 0);
    stream->run = event->id;
    stream->shares_lanes = is_kernel && event->grid > IRIS_ORDER_WGS;
    if (is_kernel && exchange->tells.number != 0) {
        iris_i_order_join(
            host->order,
            &iris_i_order_meeting(host->order, &exchange->tells)->clock,
            &stream->clock, 0);
    }
}

/* A collective on a stream: the work enqueued until its end is part of it. A
 * message has two members. */
static void enqueue_collective(struct iris_order_host *host,
                               const struct iris_host_event *event,
                               uint32_t site)
{
    bool is_message = event->target_rank >= 0;
    struct iris_order_exchange exchange = {.is_one = !event->after};

    memset(&host->buffers, 0, sizeof host->buffers);
    if (!event->after) {
        host->buffers = (struct iris_order_buffers){
            event->source, event->in_bytes, event->address, event->out_bytes,
            site,
        };
    }
    if (!event->after && !is_message) {
        struct iris_order_call call = number_call(host, event->group, 1);

        exchange.tells = event->tells ? call : exchange.tells;
        exchange.hears = event->hears ? call : exchange.hears;
    } else if (!event->after) {
        if (event->tells) {
            exchange.tells =
                number_call(host, event->group,
                            pair_ranks(event->rank, event->target_rank));
        }
        if (event->hears) {
            exchange.hears =
                number_call(host, event->group,
                            pair_ranks(event->source_rank, event->rank));
        }
    }
    host->enqueuing = exchange;
}

/* ---- Events ---- */

struct iris_order_stream *
iris_i_order_observe(struct iris_order_host *host,
                     const struct iris_host_event *event, uint32_t site)
{
    struct iris_order_stream *stream, *follower;

    if (event->op == IRIS_HOST_COLLECTIVE) {
        enqueue_collective(host, event, site);
        return NULL;
    }
    if (is_collective(event)) {
        pass_call(host, event);
        return NULL;
    }
    stream = find_order_stream(host, event->stream);
    if (stream == NULL) {
        return NULL;
    }
    switch (event->op) {
    case IRIS_HOST_LAUNCH:
    case IRIS_HOST_COPY:
    case IRIS_HOST_SET:
    case IRIS_HOST_SIGNAL:
    case IRIS_HOST_WAIT:
        enqueue_call(host, stream, event, site);
        return NULL;
    case IRIS_HOST_KERNEL:
    case IRIS_HOST_RUN_COPY:
    case IRIS_HOST_RUN_SET:
        pass_run(host, stream, event);
        return event->after ? NULL : stream;
    case IRIS_HOST_RUN_MARK: /* the work so far is before the follower's next */
        follower = find_order_stream(host, event->source);
        if (follower != NULL) {
            iris_i_order_join(host->order, &follower->clock, &stream->clock, 0);
        }
        return NULL;
    case IRIS_HOST_SYNCHRONIZE:
        if (event->after && event->status == IRIS_OK) {
            iris_i_order_join(host->order, get_host_clock(host), &stream->clock,
                              0);
            come_to_call(host);
        }
        return NULL;
    default:
        return NULL;
    }
}

void iris_i_order_open_host(struct iris_order_host *host,
                            struct iris_order *order,
                            const struct iris_check_params *params)
{
    host->order = order;
    host->group_key = params->group_key;
    host->default_stream = params->default_stream;
    host->lane = iris_i_order_add_lane(order, params->heap->log->rank, 0) - 1;
}

void iris_i_order_close_host(struct iris_order_host *host)
{
    for (uint32_t i = 0; i < host->num_streams; i++) {
        free(host->streams[i]->work);
        free(host->streams[i]);
    }
    free(host->streams);
}
