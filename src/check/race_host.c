/* SPDX-License-Identifier: MIT
 *
 * Calls of the host: their order, and their accesses.
 */
#include "config.h"

#include "check/internal.h"

/* ---- Collective calls ---- */

/* The host's earlier operations happen before the other members' later ones. */
static void come(struct iris_race *race)
{
    if (race->call.number != 0) {
        iris_i_race_join(&race->memory,
                         &iris_i_race_meeting(race, &race->call)->clock,
                         iris_i_race_host_clock(race), 0);
        iris_i_race_tick(&race->memory, race->host);
    }
}

static void leave(struct iris_race *race)
{
    if (race->call.number != 0) {
        iris_i_race_join(&race->memory, iris_i_race_host_clock(race),
                         &iris_i_race_meeting(race, &race->call)->clock, 0);
    }
}

/* Calls that all members make on the host. */
static bool is_collective(const struct iris_host_event *event)
{
    return event->op == IRIS_HOST_ALLOC || event->op == IRIS_HOST_FREE ||
           event->op == IRIS_HOST_BROADCAST ||
           event->op == IRIS_HOST_GROUP_CREATE ||
           (event->op == IRIS_HOST_BARRIER && event->stream == NULL);
}

static void begin_collective(struct iris_race *race,
                             const struct iris_host_event *event)
{
    race->allocates |= event->op == IRIS_HOST_ALLOC;
    if (race->depth++ != 0) {
        return;
    }
    race->call = iris_i_race_next_call(
        race, iris_i_race_group_of(race, event->group, false));
    come(race);
}

/* ---- Allocation and free ---- */

/* The first rank that reports new memory removes its earlier accesses, on all
 * heaps: all ranks have agreed on the allocation, and none has used it yet. */
static void note_new(struct iris_race *race,
                     const struct iris_host_event *event)
{
    struct iris_race_meeting *meeting;
    struct iris_race_range range;

    if (event->status != IRIS_OK || race->call.number == 0 ||
        !iris_i_race_range_of(race, event->address, event->bytes, &range)) {
        return;
    }
    meeting = iris_i_race_meeting(race, &race->call);
    if (meeting->cleared) {
        return;
    }
    meeting->cleared = true;
    for (int rank = 0; rank < race->heap->log->num_ranks; rank++) {
        range.rank = rank;
        iris_i_race_forget(&race->memory, &range);
    }
}

/* Freed memory counts as written by each rank's host, after all have agreed. A
 * deferred free needs no check: it happens when no stream uses the memory. */
static void note_free(struct iris_race *race,
                      const struct iris_host_event *event, uint32_t site)
{
    struct iris_race_range range;

    if (event->status != IRIS_OK ||
        !iris_i_race_range_of(race, event->address, race->free_bytes, &range)) {
        return;
    }
    if (race->depth != 0) {
        iris_i_race_forget(&race->memory, &range);
    } else {
        iris_i_race_touch_by(race, &range, race->host, site,
                             IRIS_RACE_IS_WRITE | IRIS_RACE_IS_FREE);
    }
}

static void end_collective(struct iris_race *race,
                           const struct iris_host_event *event, uint32_t site)
{
    race->depth--;
    if (race->depth == 0) {
        leave(race);
    }
    if (event->op == IRIS_HOST_ALLOC) {
        race->allocates = false;
        note_new(race, event);
    } else if (event->op == IRIS_HOST_FREE) {
        note_free(race, event, site);
    }
}

/* ---- Work on streams ---- */

/* The stream's work happens before the host's next operation. */
static void synchronized(struct iris_race *race,
                         const struct iris_host_event *event)
{
    struct iris_race_stream *stream = iris_i_race_stream(race, event->stream);

    if (stream != NULL && event->status == IRIS_OK) {
        iris_i_race_join(&race->memory, iris_i_race_host_clock(race),
                         &stream->clock, 0);
        if (race->depth != 0) {
            come(race);
        }
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
        iris_i_race_enqueue(race, event);
    } else if (event->status != IRIS_OK) {
        iris_i_race_call_off(race, event);
    }
}

static void observe(struct iris_race *race, const struct iris_host_event *event,
                    uint32_t site)
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
        iris_i_race_run_kernel(race, event);
        break;
    case IRIS_HOST_RUN_COPY:
    case IRIS_HOST_RUN_SET:
        iris_i_race_run_copy(race, event);
        break;
    case IRIS_HOST_RUN_MARK:
        iris_i_race_pass_mark(race, event);
        break;
    case IRIS_HOST_SYNCHRONIZE:
        if (event->after) {
            synchronized(race, event);
        }
        break;
    case IRIS_HOST_COLLECTIVE:
        iris_i_race_enqueue_collective(race, event, site);
        break;
    default:
        if (is_collective(event) && event->after) {
            end_collective(race, event, site);
        } else if (is_collective(event)) {
            begin_collective(race, event);
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

void iris_i_race_host(void *self, const struct iris_host_event *event)
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
    iris_i_race_lock(race->memory.shared);
    if (has_site(event)) {
        site = iris_i_race_host_site(&race->memory, &race->sites, event->op,
                                     &caller);
    }
    if (event->op == IRIS_HOST_FREE && !event->after) {
        race->free_bytes = bytes;
    }
    observe(race, event, site);
    iris_i_race_unlock(race->memory.shared);
    iris_i_race_print(race);
}
