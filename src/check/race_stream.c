/* SPDX-License-Identifier: MIT
 *
 * Work on streams: its order, and its accesses.
 *
 * Workgroups of a stream with the same number are one lane, in all launches: the
 * stream orders them. A stream's clock has all work that has ended. Enqueued work
 * keeps the clock that the host had at the call, in a list, first in, first out.
 * When work begins, the stream's clock joins those of its item and of the items
 * before it. A lane begins its part of a run with the stream's clock, and the end
 * of the run joins the clocks of its lanes. All of it is under the common lock.
 */
#include "config.h"

#include "check/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Lanes ---- */

struct iris_race_stream *iris_i_race_stream(struct iris_race *race,
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

struct iris_race_stream *iris_i_race_stream_of(const struct iris_race *race,
                                               uint64_t run)
{
    for (uint32_t i = 0; i < race->num_streams; i++) {
        if (race->streams[i]->run == run) {
            return race->streams[i];
        }
    }
    return NULL;
}

uint32_t iris_i_race_lane(struct iris_race *race,
                          struct iris_race_stream *stream, uint64_t run,
                          uint32_t workgroup)
{
    uint32_t *lane_p1 = &stream->lanes[workgroup % IRIS_RACE_WGS];
    struct iris_order_lane *lane;

    if (*lane_p1 == 0) {
        *lane_p1 = iris_i_order_add_lane(&race->order, race->heap->log->rank,
                                         stream->number, workgroup);
    }
    if (*lane_p1 == 0) {
        return 0;
    }
    lane = &race->order.shared->lanes[*lane_p1 - 1];
    if (lane->run != run) {
        lane->run = run;
        iris_i_order_begin(&race->order, *lane_p1 - 1, &stream->clock);
    }
    return *lane_p1;
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

/* ---- Streams ---- */

static const struct iris_race_buffers no_buffers;
static const struct iris_race_exchange no_exchange;
static const struct iris_race_caller nowhere;

struct iris_order_clock *iris_i_race_host_clock(const struct iris_race *race)
{
    return &race->order.shared->lanes[race->host.lane].clock;
}

/* ---- Accesses ---- */

bool iris_i_race_range_of(const struct iris_race *race, const void *address,
                          size_t bytes, struct iris_race_range *range_p)
{
    range_p->bytes = bytes;
    range_p->rank =
        iris_i_heap_owner(&race->heap->memory, address, &range_p->offset);
    return bytes != 0 && range_p->rank >= 0 &&
           bytes <= iris_i_heap_bytes(&race->heap->memory) - range_p->offset;
}

void iris_i_race_touch_by(struct iris_race *race,
                          const struct iris_race_range *range, uint32_t lane,
                          uint32_t site, unsigned kind)
{
    const struct iris_race_access access = {
        .clock = iris_i_order_now(&race->order, lane),
        .site = site,
        .lane = (uint16_t)lane,
        .kind = (uint8_t)kind,
    };

    if (!iris_i_heap_is_own(&race->heap->names, range->offset)) {
        iris_i_race_touch(&race->order, range, &access, iris_i_race_note, race);
    }
}

/* ---- Enqueued work ---- */

void iris_i_race_enqueue(struct iris_race *race,
                         const struct iris_host_event *event)
{
    struct iris_race_stream *stream = iris_i_race_stream(race, event->stream);
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
    iris_i_order_join(&race->order, &work.clock, iris_i_race_host_clock(race),
                      0);
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
void iris_i_race_call_off(struct iris_race *race,
                          const struct iris_host_event *event)
{
    struct iris_race_stream *stream = iris_i_race_stream(race, event->stream);

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
    struct iris_race_range range;
    uint32_t lane;

    if (buffers->in_bytes + buffers->out_bytes == 0) {
        return;
    }
    lane = iris_i_race_lane(race, stream, stream->run, 0);
    if (lane == 0) {
        return;
    }
    if (iris_i_race_range_of(race, buffers->in, buffers->in_bytes, &range)) {
        iris_i_race_touch_by(race, &range, lane - 1, buffers->site, 0);
    }
    if (iris_i_race_range_of(race, buffers->out, buffers->out_bytes, &range)) {
        iris_i_race_touch_by(race, &range, lane - 1, buffers->site,
                             IRIS_RACE_IS_WRITE);
    }
}

/* The run of a kernel. A collective's kernel does not begin after any work of
 * other members. It ends after the begin of the members whose data it has
 * received. */
void iris_i_race_run_kernel(struct iris_race *race,
                            const struct iris_host_event *event)
{
    struct iris_race_stream *stream = iris_i_race_stream(race, event->stream);

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
        struct iris_race_range range;

        if (from != NULL &&
            iris_i_race_range_of(race, from + i * event->source_pitch,
                                 event->bytes, &range)) {
            iris_i_race_touch_by(race, &range, lane, site, 0);
        }
        if (iris_i_race_range_of(race, to + i * event->pitch, event->bytes,
                                 &range)) {
            iris_i_race_touch_by(race, &range, lane, site, IRIS_RACE_IS_WRITE);
        }
    } while (++i < event->count);
}

/* The run of a copy or fill, in the lane of workgroup 0. */
void iris_i_race_run_copy(struct iris_race *race,
                          const struct iris_host_event *event)
{
    struct iris_race_stream *stream = iris_i_race_stream(race, event->stream);
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
        stream->site =
            iris_i_race_host_site(&race->order, &race->sites, op, &nowhere);
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
void iris_i_race_pass_mark(struct iris_race *race,
                           const struct iris_host_event *event)
{
    struct iris_race_stream *stream = iris_i_race_stream(race, event->stream);
    struct iris_race_stream *follower = iris_i_race_stream(race, event->source);

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
void iris_i_race_enqueue_collective(struct iris_race *race,
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
