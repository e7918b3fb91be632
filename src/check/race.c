/* SPDX-License-Identifier: MIT
 *
 * The race checker: its begin and end, and the host's calls and work on streams.
 *
 * The outermost collective call of a group is a meeting (order.c). New memory
 * has no earlier accesses; freed memory counts as written by each host.
 *
 * A stream's clock has all work that has ended. Enqueued work keeps the clock
 * that the host had at the call, in a list, first in, first out. When work begins,
 * the stream's clock joins those of its item and of the items before it. The end
 * of a run joins the clocks of its lanes. All of it is under the common lock.
 */
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* ---- Streams ---- */

static struct iris_race_stream *find_stream_of(struct iris_race *race,
                                               const void *stream)
{
    struct iris_race_stream **streams;
    struct iris_race_stream *one;

    stream = stream == NULL ? race->default_stream : stream;
    for (uint32_t i = 0; i < race->num_streams; i++) {
        if (race->streams[i]->stream == stream) {
            return race->streams[i];
        }
    }
    streams =
        realloc(race->streams, (race->num_streams + 1) * sizeof *race->streams);
    one = calloc(1, sizeof *one);
    if (streams == NULL || one == NULL) {
        race->streams = streams == NULL ? race->streams : streams;
        race->order.shared->blind = true;
        free(one);
        return NULL;
    }
    race->streams = streams;
    one->stream = stream;
    streams[race->num_streams++] = one;
    one->number = race->num_streams;
    return one;
}

static void end_run(struct iris_race *race, struct iris_race_stream *stream)
{
    for (uint32_t i = 0; i < IRIS_RACE_WGS; i++) {
        uint32_t lane = stream->lanes[i];

        if (lane != 0 &&
            race->order.shared->lanes[lane - 1].run == stream->run) {
            iris_i_order_join(&race->order, &stream->clock,
                              &race->order.shared->lanes[lane - 1].clock, 0);
        }
    }
    stream->run = 0;
}

static const struct iris_race_buffers no_buffers;
static const struct iris_race_exchange no_exchange;
static const struct iris_race_caller nowhere;

static struct iris_order_clock *get_host_clock(const struct iris_race *race)
{
    return &race->order.shared->lanes[race->host.lane].clock;
}

/* ---- Accesses ---- */

static bool find_range(const struct iris_race *race, const void *address,
                       size_t bytes, struct iris_order_range *range_p)
{
    range_p->bytes = bytes;
    range_p->rank =
        iris_i_heap_owner(&race->heap->memory, address, &range_p->offset);
    return bytes != 0 && range_p->rank >= 0 &&
           bytes <= iris_i_heap_bytes(&race->heap->memory) - range_p->offset;
}

static void touch_range(struct iris_race *race,
                        const struct iris_order_range *range, uint32_t lane,
                        uint32_t site, unsigned kind)
{
    const struct iris_race_access access = {
        .clock = iris_i_order_now(&race->order, lane),
        .site = site,
        .lane = (uint16_t)lane,
        .kind = (uint8_t)kind,
    };
    struct iris_race_caught caught;

    caught.count = 0;
    if (!iris_i_heap_is_own(&race->heap->names, range->offset)) {
        iris_i_race_touch(race, range, &access, &caught);
        iris_i_race_note(race, &caught);
    }
}

static void touch_bytes(struct iris_race *race, const void *address,
                        size_t bytes, uint32_t lane, uint32_t site,
                        unsigned kind)
{
    struct iris_order_range range;

    if (find_range(race, address, bytes, &range)) {
        touch_range(race, &range, lane, site, kind);
    }
}

/* ---- Enqueued work ---- */

static void enqueue_work(struct iris_race *race,
                         const struct iris_host_event *event)
{
    struct iris_race_stream *stream = find_stream_of(race, event->stream);
    struct iris_race_work work = {.id = event->id,
                                  .op = event->op,
                                  .site = race->outer,
                                  .exchange = race->enqueuing};

    if (stream == NULL) {
        return;
    }
    if (event->op == IRIS_HOST_LAUNCH) {
        work.buffers = race->buffers;
        race->buffers = no_buffers;
    }
    if (stream->num_work == stream->capacity) {
        size_t capacity = stream->capacity * 2 + 16;
        struct iris_race_work *larger =
            realloc(stream->work, capacity * sizeof *larger);

        if (larger == NULL) {
            race->order.shared->blind = true;
            return;
        }
        stream->work = larger;
        stream->capacity = capacity;
    }
    iris_i_order_join(&race->order, &work.clock, get_host_clock(race), 0);
    iris_i_order_tick(&race->order, race->host.lane);
    stream->work[stream->num_work++] = work;
}

/* Removes the first `count` items of work from the list: the stream has passed
 * them. */
static void drop_work(struct iris_race *race, struct iris_race_stream *stream,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        iris_i_order_join(&race->order, &stream->clock, &stream->work[i].clock,
                          0);
        iris_i_order_free(&race->order, &stream->work[i].clock);
    }
    stream->num_work -= count;
    memmove(stream->work, stream->work + count,
            stream->num_work * sizeof *stream->work);
}

/* A failed call has enqueued no work. */
static void call_off_work(struct iris_race *race,
                          const struct iris_host_event *event)
{
    struct iris_race_stream *stream = find_stream_of(race, event->stream);

    for (size_t i = 0; stream != NULL && i < stream->num_work; i++) {
        if (stream->work[i].id == event->id) {
            iris_i_order_free(&race->order, &stream->work[i].clock);
            stream->num_work--;
            memmove(&stream->work[i], &stream->work[i + 1],
                    (stream->num_work - i) * sizeof *stream->work);
            return;
        }
    }
}

/* Finds the work that begins: a kernel's by its id, a copy or fill as the first
 * remaining one. The items before it were skipped, or belong to the same
 * call. */
static void begin_work(struct iris_race *race, struct iris_race_stream *stream,
                       enum iris_host_op op, uint64_t id)
{
    size_t i = 0;

    while (i < stream->num_work && (stream->work[i].op != op ||
                                    (id != 0 && stream->work[i].id != id))) {
        i++;
    }
    stream->exchange = no_exchange;
    stream->buffers = no_buffers;
    stream->site = 0;
    if (i < stream->num_work) {
        stream->site = stream->work[i].site;
        stream->exchange = stream->work[i].exchange;
        stream->buffers = stream->work[i].buffers;
        drop_work(race, stream, i + 1);
    }
}

/* The buffers of the collective that begins: it may access them as long as it
 * runs. */
static void touch_buffers(struct iris_race *race,
                          struct iris_race_stream *stream)
{
    const struct iris_race_buffers *buffers = &stream->buffers;
    uint32_t lane;

    if (buffers->in_bytes + buffers->out_bytes == 0) {
        return;
    }
    lane = iris_i_race_lane(race, stream, stream->run, 0);
    if (lane == 0) {
        return;
    }
    touch_bytes(race, buffers->in, buffers->in_bytes, lane - 1, buffers->site,
                0);
    touch_bytes(race, buffers->out, buffers->out_bytes, lane - 1, buffers->site,
                IRIS_RACE_IS_WRITE);
}

/* The run of a kernel. A collective's kernel does not begin after any work of
 * other members. It ends after the begin of the members whose data it has
 * received. */
static void run_kernel(struct iris_race *race,
                       const struct iris_host_event *event)
{
    struct iris_race_stream *stream = find_stream_of(race, event->stream);

    if (stream == NULL) {
        return;
    }
    if (!event->after) {
        begin_work(race, stream, IRIS_HOST_LAUNCH, event->value);
        stream->run = event->id;
        stream->shares_lanes = event->grid > IRIS_RACE_WGS;
        touch_buffers(race, stream);
    } else {
        end_run(race, stream);
    }
    if (!event->after && stream->exchange.tells.number != 0) {
        iris_i_order_join(
            &race->order,
            &iris_i_order_meeting(&race->order, &stream->exchange.tells)->clock,
            &stream->clock, 0);
    } else if (event->after && stream->exchange.hears.number != 0) {
        iris_i_order_join(
            &race->order, &stream->clock,
            &iris_i_order_meeting(&race->order, &stream->exchange.hears)->clock,
            0);
    }
}

/* The accesses of a copy or fill. */
static void touch_rows(struct iris_race *race,
                       const struct iris_host_event *event, uint32_t lane,
                       uint32_t site)
{
    size_t i = 0;

    do {
        const char *from = event->source, *to = event->address;

        if (from != NULL) {
            touch_bytes(race, from + i * event->source_pitch, event->bytes,
                        lane, site, 0);
        }
        touch_bytes(race, to + i * event->pitch, event->bytes, lane, site,
                    IRIS_RACE_IS_WRITE);
    } while (++i < event->count);
}

/* The run of a copy or fill, in the lane of workgroup 0. */
static void run_copy(struct iris_race *race,
                     const struct iris_host_event *event)
{
    struct iris_race_stream *stream = find_stream_of(race, event->stream);
    enum iris_host_op op =
        event->op == IRIS_HOST_RUN_COPY ? IRIS_HOST_COPY : IRIS_HOST_SET;
    uint32_t lane;

    if (stream == NULL || event->after) {
        if (stream != NULL) {
            end_run(race, stream);
        }
        return;
    }
    begin_work(race, stream, op, 0);
    if (stream->site == 0 && race->allocates) {
        return; /* the bytes still count as those of the memory before */
    }
    if (stream->site == 0) { /* a graph's */
        stream->site = iris_i_race_host_site(race, op, &nowhere);
    }
    stream->run = event->id;
    lane = iris_i_race_lane(race, stream, event->id, 0);
    if (lane == 0) {
        return;
    }
    touch_rows(race, event, lane - 1, stream->site);
}

/* The stream's work so far happens before the next work of a stream that
 * follows it. */
static void pass_mark(struct iris_race *race,
                      const struct iris_host_event *event)
{
    struct iris_race_stream *stream = find_stream_of(race, event->stream);
    struct iris_race_stream *follower = find_stream_of(race, event->source);

    if (stream != NULL && follower != NULL) {
        iris_i_order_join(&race->order, &follower->clock, &stream->clock, 0);
    }
}

/* The meetings of a collective's members. A message has two members. */
static struct iris_race_exchange
find_exchange(struct iris_race *race, const struct iris_host_event *event)
{
    struct iris_race_exchange exchange = {.is_one = true};
    struct iris_order_call call;

    if (event->target_rank < 0) {
        call = iris_i_order_next_call(&race->host, event->group, 1);
        exchange.tells = event->tells ? call : no_exchange.tells;
        exchange.hears = event->hears ? call : no_exchange.hears;
        return exchange;
    }
    if (event->tells) {
        exchange.tells = iris_i_order_next_call(
            &race->host, event->group,
            iris_i_order_pair(event->rank, event->target_rank));
    }
    if (event->hears) {
        exchange.hears = iris_i_order_next_call(
            &race->host, event->group,
            iris_i_order_pair(event->source_rank, event->rank));
    }
    return exchange;
}

/* A collective on a stream: the work enqueued until its end is part of it. */
static void enqueue_collective(struct iris_race *race,
                               const struct iris_host_event *event,
                               uint32_t site)
{
    race->enqueuing = no_exchange;
    race->buffers = no_buffers;
    if (!event->after) {
        race->enqueuing = find_exchange(race, event);
        race->buffers = (struct iris_race_buffers){
            event->source, event->in_bytes, event->address, event->out_bytes,
            site,
        };
    }
}

/* ---- Allocation and free ---- */

/* The first rank that reports new memory removes its earlier accesses, on all
 * heaps: all ranks have agreed on the allocation, and none has used it yet. */
static void clear_new(struct iris_race *race,
                      const struct iris_host_event *event)
{
    struct iris_order_meeting *meeting;
    struct iris_order_range range;

    if (event->status != IRIS_OK || race->host.call.number == 0 ||
        !find_range(race, event->address, event->bytes, &range)) {
        return;
    }
    meeting = iris_i_order_meeting(&race->order, &race->host.call);
    if (meeting->cleared) {
        return;
    }
    meeting->cleared = true;
    for (int rank = 0; rank < race->heap->log->num_ranks; rank++) {
        range.rank = rank;
        iris_i_race_forget(race, &range);
    }
}

/* Freed memory counts as written by each rank's host, after all have agreed. A
 * deferred free needs no check: it happens when no stream uses the memory. */
static void note_free(struct iris_race *race,
                      const struct iris_host_event *event, uint32_t site)
{
    struct iris_order_range range;

    if (event->status != IRIS_OK ||
        !find_range(race, event->address, race->free_bytes, &range)) {
        return;
    }
    if (race->host.depth != 0) {
        iris_i_race_forget(race, &range);
    } else {
        touch_range(race, &range, race->host.lane, site,
                    IRIS_RACE_IS_WRITE | IRIS_RACE_IS_FREE);
    }
}

/* ---- Calls ---- */

/* The stream's work happens before the host's next operation. */
static void join_stream(struct iris_race *race,
                        const struct iris_host_event *event)
{
    struct iris_race_stream *stream = find_stream_of(race, event->stream);

    if (stream != NULL && event->status == IRIS_OK) {
        iris_i_order_join(&race->order, get_host_clock(race), &stream->clock,
                          0);
        iris_i_order_come(&race->host);
    }
}

/* Copies, fills, signals and waits may launch kernels, which belong to the
 * call. */
static void enqueue_call(struct iris_race *race,
                         const struct iris_host_event *event, uint32_t site)
{
    if (event->op != IRIS_HOST_LAUNCH) {
        race->outer = event->after ? 0 : site;
    }
    if (event->op == IRIS_HOST_SIGNAL || event->op == IRIS_HOST_WAIT) {
        return;
    }
    if (!event->after) {
        enqueue_work(race, event);
    } else if (event->status != IRIS_OK) {
        call_off_work(race, event);
    }
}

static void observe_call(struct iris_race *race,
                         const struct iris_host_event *event, uint32_t site)
{
    switch (event->op) {
    case IRIS_HOST_LAUNCH:
    case IRIS_HOST_COPY:
    case IRIS_HOST_SET:
    case IRIS_HOST_SIGNAL:
    case IRIS_HOST_WAIT:
        enqueue_call(race, event, site);
        break;
    case IRIS_HOST_KERNEL:
        run_kernel(race, event);
        break;
    case IRIS_HOST_RUN_COPY:
    case IRIS_HOST_RUN_SET:
        run_copy(race, event);
        break;
    case IRIS_HOST_RUN_MARK:
        pass_mark(race, event);
        break;
    case IRIS_HOST_SYNCHRONIZE:
        if (event->after) {
            join_stream(race, event);
        }
        break;
    case IRIS_HOST_COLLECTIVE:
        enqueue_collective(race, event, site);
        break;
    default:
        if (iris_i_order_is_collective(event) && !event->after) {
            race->allocates |= event->op == IRIS_HOST_ALLOC;
            (void)iris_i_order_enter(&race->host, event->group);
        } else if (iris_i_order_is_collective(event)) {
            (void)iris_i_order_leave(&race->host);
        }
        if (event->op == IRIS_HOST_ALLOC && event->after) {
            race->allocates = false;
            clear_new(race, event);
        } else if (event->op == IRIS_HOST_FREE && event->after) {
            note_free(race, event, site);
        }
        break;
    }
}

/* Calls that access memory, or launch kernels that do. */
static bool has_site(const struct iris_host_event *event)
{
    return event->op == IRIS_HOST_FREE
               ? event->after
               : !event->after && (event->op == IRIS_HOST_COPY ||
                                   event->op == IRIS_HOST_SET ||
                                   event->op == IRIS_HOST_SIGNAL ||
                                   event->op == IRIS_HOST_WAIT ||
                                   event->op == IRIS_HOST_COLLECTIVE);
}

static void observe_host_event(void *self, const struct iris_host_event *event)
{
    struct iris_race *race = self;
    const struct iris_heap *heap = race->heap;
    struct iris_race_caller caller;
    size_t start = 0, bytes = 0;
    uint32_t site = 0;

    if (event->op != IRIS_HOST_KERNEL && event->op < IRIS_HOST_RUN_COPY) {
        iris_i_race_plain_host(race);
    }
    if (event->op == IRIS_HOST_FREE && !event->after &&
        iris_i_heap_offset(&heap->memory, event->address) <
            iris_i_heap_bytes(&heap->memory)) {
        (void)iris_i_heap_find(
            &heap->names, iris_i_heap_offset(&heap->memory, event->address),
            &start, &bytes);
    }
    if (has_site(event)) {
        iris_i_race_caller(&caller);
    }
    iris_i_order_lock(race->order.shared);
    if (has_site(event)) {
        site = iris_i_race_host_site(race, event->op, &caller);
    }
    if (event->op == IRIS_HOST_FREE && !event->after) {
        race->free_bytes = bytes;
    }
    observe_call(race, event, site);
    iris_i_order_unlock(race->order.shared);
    iris_i_race_print(race);
}

static const struct iris_call_type open_call = {.name = "iris_init"};

static _Atomic uint64_t num_checkers; /* so far */

static iris_status_t start_checker(struct iris_race *race)
{
    const struct iris_log *log = race->heap->log;
    struct iris_call call = {.type = &open_call};
    struct iris_order_shared *shared;
    iris_status_t status;

    call.status = iris_i_race_suppressions_open(log, race->suppressions_path,
                                                &race->suppressions);
    status = iris_i_agree(race->heap->world, &call);
    if (status == IRIS_OK) {
        size_t own = (sizeof *race->shared + 4095) & ~(size_t)4095, bytes;

        race->num_words =
            (iris_i_heap_bytes(&race->heap->memory) + 4095) / 4096 * 512;
        bytes = own + (size_t)log->num_ranks * race->num_words *
                          IRIS_RACE_CELLS * sizeof *race->shadow;
        status = iris_i_order_open(race->heap->world, log->rank, bytes,
                                   &race->order);
        race->shared = race->order.more;
        race->shadow = (void *)((char *)race->order.more + own);
    }
    if (status != IRIS_OK) {
        return status;
    }
    shared = race->order.shared;
    iris_i_order_lock(shared);
    race->host.order = &race->order;
    race->host.lane = iris_i_order_add_lane(&race->order, log->rank, 0) - 1;
    iris_i_order_unlock(shared);
    race->observer.device = iris_i_race_device;
    race->observer.takes_series = true;
    race->observer.host = observe_host_event;
    race->observer.self = race;
    status = iris_i_hooks_add(race->heap->hooks, &race->observer);
    if (status == IRIS_OK) {
        iris_i_race_plain_begin(race);
    }
    return status;
}

iris_status_t iris_i_race_create(const struct iris_race_params *params,
                                 struct iris_race **race_p)
{
    struct iris_race *race = calloc(1, sizeof *race);

    if (race == NULL) {
        return iris_i_fail(params->heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory to look for races");
    }
    race->serial = atomic_fetch_add(&num_checkers, 1) + 1;
    race->heap = params->heap;
    race->default_stream = params->default_stream;
    race->host.group_key = params->group_key;
    race->prefix = params->prefix;
    race->suppressions_path = params->suppressions;
    *race_p = race;
    return start_checker(race);
}

void iris_i_race_destroy(struct iris_race *race)
{
    if (race == NULL) {
        return;
    }
    iris_i_race_plain_end(race);
    iris_i_hooks_remove(race->heap->hooks, &race->observer);
    for (uint32_t i = 0; i < race->num_streams; i++) {
        free(race->streams[i]->work);
        free(race->streams[i]);
    }
    free(race->streams);
    iris_i_race_suppressions_close(&race->suppressions);
    iris_i_order_close(&race->order);
    free(race);
}
