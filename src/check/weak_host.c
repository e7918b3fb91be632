/* SPDX-License-Identifier: MIT
 *
 * Operations of hosts, for the weak mode: the order that calls make, and the
 * kernels that they add.
 */
#include "config.h"

#include "check/internal.h"

/* Calls that all members make on the host. */
static bool is_collective(const struct iris_host_event *event)
{
    return event->op == IRIS_HOST_ALLOC || event->op == IRIS_HOST_FREE ||
           event->op == IRIS_HOST_BROADCAST ||
           event->op == IRIS_HOST_GROUP_CREATE ||
           (event->op == IRIS_HOST_BARRIER && event->stream == NULL);
}

static void come(struct iris_weak *weak, const struct iris_host_event *event)
{
    const void *group = event->group;
    uint64_t key = group == NULL ? 1 : weak->params.group_key(group);
    unsigned i = 0;

    if (weak->depth++ != 0) {
        return;
    }
    while (i < IRIS_WEAK_GROUPS - 1 && weak->groups[i].key != key &&
           weak->groups[i].key != 0) {
        i++;
    }
    weak->groups[i].key = key;
    weak->group = key;
    weak->number = ++weak->groups[i].calls;
    iris_i_weak_come(weak->machine->model, event->rank, key, weak->number);
    if (group == NULL ||
        weak->params.group_size(group) == weak->params.heap->log->num_ranks) {
        iris_i_weak_host_meets(weak->machine->schedule, event->rank,
                               ++weak->meets);
    }
}

static void leave(struct iris_weak *weak, const struct iris_host_event *event)
{
    if (--weak->depth == 0) {
        iris_i_weak_leave(weak->machine->model, event->rank, weak->group,
                          weak->number);
        iris_i_weak_host_meets(weak->machine->schedule, event->rank, 0);
    }
}

/* A wait for a stream has ended. In a collective call, the other members learn
 * of its work. */
static void synchronized(struct iris_weak *weak,
                         const struct iris_host_event *event)
{
    if (weak->depth != 0) {
        iris_i_weak_come(weak->machine->model, event->rank, weak->group,
                         weak->number);
    }
}

static void observe(struct iris_weak *weak, const struct iris_host_event *event)
{
    struct iris_weak_schedule *schedule = weak->machine->schedule;
    const void *stream =
        event->stream == NULL ? weak->params.default_stream : event->stream;

    const struct iris_weak_run run = {event->id, event->grid,
                                      event->value == 0};

    switch (event->op) {
    case IRIS_HOST_LAUNCH:
        if (!event->after || event->status != IRIS_OK) {
            iris_i_weak_enqueued(schedule, event->rank, stream,
                                 event->after ? -1 : 1);
        }
        break;
    case IRIS_HOST_KERNEL:
        if (event->after) {
            iris_i_weak_run_ends(schedule, event->rank, event->id);
        } else {
            iris_i_weak_run_begins(schedule, event->rank, stream, &run);
        }
        break;
    case IRIS_HOST_SYNCHRONIZE:
        iris_i_weak_host_waits(schedule, event->rank,
                               event->after ? NULL : stream);
        if (event->after) {
            synchronized(weak, event);
        }
        break;
    default:
        if (is_collective(event)) {
            (event->after ? leave : come)(weak, event);
        }
        break;
    }
}

void iris_i_weak_host(void *arg, const struct iris_host_event *event)
{
    struct iris_weak *weak = arg;

    iris_i_weak_lock(weak->machine->schedule);
    observe(weak, event);
    iris_i_weak_unlock(weak->machine->schedule);
}
