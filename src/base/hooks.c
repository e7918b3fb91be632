/* SPDX-License-Identifier: MIT
 *
 * The list of observers, and the calls of them. Each slot is written by one
 * compare-and-swap, so that kernels' threads read them without a lock.
 */
#include "config.h"

#include "base/base.h"

/* Ids of runs have this bit. */
#define FIRST_RUN (UINT64_C(1) << 52)

/* Adds `by` to the counts of observers' functions. They rise after the observer
 * is in its slot, and fall after it has left the slot. */
static void count_observers(struct iris_hooks *hooks,
                            const struct iris_observer *observer, unsigned by)
{
    atomic_fetch_add(&hooks->num_device, observer->device != NULL ? by : 0);
    atomic_fetch_add(&hooks->num_host, observer->host != NULL ? by : 0);
}

iris_status_t iris_i_hooks_add(struct iris_hooks *hooks,
                               const struct iris_observer *observer)
{
    for (unsigned i = 0; i < IRIS_MAX_OBSERVERS; i++) {
        const struct iris_observer *none = NULL;
        unsigned slots = i; /* only if no later slot was used yet */

        atomic_compare_exchange_strong(&hooks->num_slots, &slots, i + 1);
        if (atomic_compare_exchange_strong(&hooks->observers[i], &none,
                                           observer)) {
            count_observers(hooks, observer, 1);
            return IRIS_OK;
        }
    }
    return iris_i_fail(NULL, IRIS_ERR_LIMIT,
                       "a context has %d observers at most; remove one",
                       IRIS_MAX_OBSERVERS);
}

void iris_i_hooks_remove(struct iris_hooks *hooks,
                         const struct iris_observer *observer)
{
    for (size_t i = 0; i < IRIS_MAX_OBSERVERS; i++) {
        const struct iris_observer *seen = observer;

        if (atomic_compare_exchange_strong(&hooks->observers[i], &seen, NULL)) {
            count_observers(hooks, observer, -1u);
            return;
        }
    }
}

/* The first observer from slot *at_p on, which is then behind it; NULL: there are no
 * more. */
static const struct iris_observer *next_observer(struct iris_hooks *hooks,
                                                 unsigned *at_p)
{
    const struct iris_observer *observer = NULL;
    unsigned num_slots = atomic_load(&hooks->num_slots);

    while (observer == NULL && *at_p < num_slots) {
        observer = atomic_load(&hooks->observers[(*at_p)++]);
    }
    return observer;
}

iris_status_t iris_i_hooks_device(struct iris_hooks *hooks,
                                  const struct iris_cpu_event *event)
{
    const struct iris_observer *observer;
    iris_status_t status = IRIS_OK;

    for (unsigned at = 0; (observer = next_observer(hooks, &at)) != NULL;) {
        if (observer->device != NULL) {
            iris_status_t said = observer->device(observer->self, event);

            status = status == IRIS_OK ? said : status;
        }
    }
    return status;
}

bool iris_i_hooks_take_series(struct iris_hooks *hooks)
{
    const struct iris_observer *observer;

    for (unsigned at = 0; (observer = next_observer(hooks, &at)) != NULL;) {
        if (observer->device != NULL && !observer->takes_series) {
            return false;
        }
    }
    return true;
}

bool iris_i_hooks_turn(struct iris_hooks *hooks, const struct iris_cpu_wg *cpu,
                       enum iris_turn turn)
{
    const struct iris_observer *observer;
    bool has_say = false;

    for (unsigned at = 0; (observer = next_observer(hooks, &at)) != NULL;) {
        if (observer->turn != NULL) {
            observer->turn(observer->self, cpu, turn);
            has_say = true;
        }
    }
    return has_say;
}

static uint64_t next_id(struct iris_hooks *hooks,
                        const struct iris_host_event *event)
{
    return event->op == IRIS_HOST_KERNEL || event->op >= IRIS_HOST_RUN_COPY
               ? (atomic_fetch_add(&hooks->last_run, 1) + 1) | FIRST_RUN
               : atomic_fetch_add(&hooks->last_call, 1) + 1;
}

void iris_i_hooks_host(struct iris_hooks *hooks, struct iris_host_event *event)
{
    const struct iris_observer *observer;

    if (event->id == 0) {
        event->id = next_id(hooks, event);
    }
    for (unsigned at = 0; (observer = next_observer(hooks, &at)) != NULL;) {
        if (observer->host != NULL) {
            observer->host(observer->self, event);
        }
    }
}

/* ---- Texts for observers' messages ---- */

const char *iris_i_op_name(enum iris_op op)
{
    static const char *const names[] = {
        [IRIS_OP_LOAD] = "load",
        [IRIS_OP_STORE] = "store",
        [IRIS_OP_GET] = "get",
        [IRIS_OP_PUT] = "put",
        [IRIS_OP_COPY] = "copy",
        [IRIS_OP_ATOMIC_ADD] = "atomic add",
        [IRIS_OP_ATOMIC_SUB] = "atomic sub",
        [IRIS_OP_ATOMIC_CAS] = "atomic cas",
        [IRIS_OP_ATOMIC_XCHG] = "atomic xchg",
        [IRIS_OP_ATOMIC_XOR] = "atomic xor",
        [IRIS_OP_ATOMIC_AND] = "atomic and",
        [IRIS_OP_ATOMIC_OR] = "atomic or",
        [IRIS_OP_ATOMIC_MIN] = "atomic min",
        [IRIS_OP_ATOMIC_MAX] = "atomic max",
    };

    return (size_t)op < sizeof names / sizeof names[0] ? names[op]
           : op == IRIS_OP_FENCE                       ? "fence"
           : op == IRIS_OP_OWN                         ? "event"
           : op == IRIS_OP_WAIT                        ? "wait or test"
           : op == IRIS_OP_BARRIER                     ? "barrier"
           : op == IRIS_OP_COLLECTIVE                  ? "collective"
                                                       : "operation";
}

bool iris_i_is_translated(const struct iris_cpu_event *event)
{
    switch (event->op) {
    case IRIS_OP_GET:
        return !event->write;
    case IRIS_OP_PUT:
        return event->write;
    case IRIS_OP_WAIT:
    case IRIS_OP_FENCE:
    case IRIS_OP_BARRIER:
        return false;
    default:
        return event->op < IRIS_OP_OWN;
    }
}

iris_status_t iris_i_fail_access(const struct iris_cpu_event *event,
                                 iris_status_t status, const char *why)
{
    return iris_i_fail(NULL, status,
                       "rank %d: kernel %s, workgroup %u: %s of %zu bytes at "
                       "%p on rank %d: %s",
                       event->rank, event->kernel, event->workgroup,
                       iris_i_op_name(event->op), event->bytes, event->address,
                       event->target_rank, why);
}
