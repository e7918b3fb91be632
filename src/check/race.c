/* SPDX-License-Identifier: MIT
 *
 * The race checker: its begin and end, and the host's calls.
 *
 * The outermost collective call of a group is a meeting: each member joins its
 * host's clock to the meeting's when it comes, and the meeting's to its own when
 * it leaves. Calls that are nested in it belong to it. New memory has no earlier
 * accesses; freed memory counts as written by each host.
 */
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <stdlib.h>

/* ---- Collective calls ---- */

static void begin_collective(struct iris_race *race,
                             const struct iris_host_event *event)
{
    race->allocates |= event->op == IRIS_HOST_ALLOC;
    (void)iris_i_order_enter(&race->host, event->group);
}

/* ---- Allocation and free ---- */

/* The first rank that reports new memory removes its earlier accesses, on all
 * heaps: all ranks have agreed on the allocation, and none has used it yet. */
static void clear_new(struct iris_race *race,
                      const struct iris_host_event *event)
{
    struct iris_order_meeting *meeting;
    struct iris_race_range range;

    if (event->status != IRIS_OK || race->host.call.number == 0 ||
        !iris_i_race_range_of(race, event->address, event->bytes, &range)) {
        return;
    }
    meeting = iris_i_order_meeting(&race->order, &race->host.call);
    if (meeting->cleared) {
        return;
    }
    meeting->cleared = true;
    for (int rank = 0; rank < race->heap->log->num_ranks; rank++) {
        range.rank = rank;
        iris_i_race_forget(&race->order, &range);
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
    if (race->host.depth != 0) {
        iris_i_race_forget(&race->order, &range);
    } else {
        iris_i_race_touch_by(race, &range, race->host.lane, site,
                             IRIS_RACE_IS_WRITE | IRIS_RACE_IS_FREE);
    }
}

static void end_collective(struct iris_race *race,
                           const struct iris_host_event *event, uint32_t site)
{
    (void)iris_i_order_leave(&race->host);
    if (event->op == IRIS_HOST_ALLOC) {
        race->allocates = false;
        clear_new(race, event);
    } else if (event->op == IRIS_HOST_FREE) {
        note_free(race, event, site);
    }
}

/* ---- Work on streams ---- */

/* The stream's work happens before the host's next operation. */
static void join_stream(struct iris_race *race,
                        const struct iris_host_event *event)
{
    struct iris_race_stream *stream = iris_i_race_stream(race, event->stream);

    if (stream != NULL && event->status == IRIS_OK) {
        iris_i_order_join(&race->order, iris_i_race_host_clock(race),
                          &stream->clock, 0);
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
        iris_i_race_enqueue(race, event);
    } else if (event->status != IRIS_OK) {
        iris_i_race_call_off(race, event);
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
            join_stream(race, event);
        }
        break;
    case IRIS_HOST_COLLECTIVE:
        iris_i_race_enqueue_collective(race, event, site);
        break;
    default:
        if (iris_i_order_is_collective(event) && event->after) {
            end_collective(race, event, site);
        } else if (iris_i_order_is_collective(event)) {
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
        site = iris_i_race_host_site(&race->order, &race->sites, event->op,
                                     &caller);
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
        status = iris_i_order_open(race->heap->world, log->rank, log->num_ranks,
                                   iris_i_heap_bytes(&race->heap->memory),
                                   &race->order);
    }
    if (status != IRIS_OK) {
        return status;
    }
    shared = race->order.shared;
    iris_i_order_lock(shared);
    race->host.order = &race->order;
    race->host.lane = iris_i_order_add_lane(&race->order, log->rank, 0, 0) - 1;
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
