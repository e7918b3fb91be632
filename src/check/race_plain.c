/* SPDX-License-Identifier: MIT
 *
 * Accesses of programs compiled by `iriscc --check`. A process may have several
 * ranks, each with a checker. An access in a kernel belongs to the kernel's
 * rank, any other to the rank for which the thread makes calls.
 */
#include "config.h"

#include "check/internal.h"

#include <iris/device/watch/cpu.h>

#include "backend/backend.h"

#define MAX_CHECKERS 256

/* Needs no lock: a checker is added before its rank's program runs, and removed
 * after it has ended. */
static _Atomic(struct iris_race *) checkers[MAX_CHECKERS];

static struct iris_cpu_range checked;

/* The checker of the thread's latest call of Iris; it may no longer exist. */
static _Thread_local struct iris_race *own;

static _Thread_local uint64_t num_atomics; /* number of the thread's atomics */

static void include(uintptr_t low, uintptr_t high)
{
    _Atomic uintptr_t *low_p = (_Atomic uintptr_t *)&checked.low;
    _Atomic uintptr_t *high_p = (_Atomic uintptr_t *)&checked.high;
    uintptr_t now = atomic_load(low_p);

    while ((now == 0 || low < now) &&
           !atomic_compare_exchange_weak(low_p, &now, low)) {
    }
    now = atomic_load(high_p);
    while (high > now && !atomic_compare_exchange_weak(high_p, &now, high)) {
    }
}

void iris_i_race_plain_begin(struct iris_race *race)
{
    const struct iris_heap_memory *memory = &race->heap->memory;

    for (unsigned i = 0; i < MAX_CHECKERS; i++) {
        struct iris_race *none = NULL;

        if (atomic_compare_exchange_strong(&checkers[i], &none, race)) {
            break;
        }
    }
    for (int rank = 0; rank < race->heap->log->num_ranks; rank++) {
        uintptr_t base = (uintptr_t)memory->bases[rank];

        if (base != 0) {
            include(base, base + iris_i_heap_bytes(memory));
        }
    }
    own = race;
}

void iris_i_race_plain_end(struct iris_race *race)
{
    for (unsigned i = 0; i < MAX_CHECKERS; i++) {
        struct iris_race *same = race;

        (void)atomic_compare_exchange_strong(&checkers[i], &same, NULL);
    }
}

void iris_i_race_plain_host(struct iris_race *race)
{
    own = race;
}

/* The checker of a kernel's rank or, outside kernels, of the thread. If there
 * is only one checker, it also covers threads that have not called Iris. */
static struct iris_race *find_checker(const struct iris_cpu_wg *cpu)
{
    struct iris_race *one = NULL;
    unsigned count = 0;

    for (unsigned i = 0; i < MAX_CHECKERS; i++) {
        struct iris_race *race = atomic_load(&checkers[i]);

        if (race == NULL) {
            continue;
        }
        if (cpu != NULL ? race->heap->log->rank == cpu->rank : race == own) {
            return race;
        }
        one = race;
        count++;
    }
    return cpu == NULL && count == 1 ? one : NULL;
}

/* Whether the workgroup is inside an operation of the device API, whose own
 * hooks report it: its latest operation has not ended. */
static bool is_in_operation(const struct iris_cpu_wg *cpu)
{
    for (int i = 0; i < 2; i++) {
        const struct iris_cpu_event *event = &cpu->events[i];

        if (event->id != 0 && event->id == cpu->num_ops && !event->after &&
            (event->op < IRIS_OP_OWN || event->op == IRIS_OP_WAIT)) {
            return true;
        }
    }
    return false;
}

const struct iris_cpu_range *iris_cpu_checked(void)
{
    return &checked;
}

/* Sets the owner of the heap as an operation of the device API does; false: the
 * address is on no heap. */
static bool place(const struct iris_race *race, struct iris_cpu_event *event)
{
    const struct iris_heap_memory *memory = &race->heap->memory;
    int rank = race->heap->log->rank;
    size_t offset;

    event->rank = event->target_rank = rank;
    if (event->op == IRIS_OP_FENCE) {
        return true;
    }
    event->target_rank = iris_i_heap_owner(memory, event->address, &offset);
    event->address = (const char *)memory->bases[rank] + offset;
    return event->target_rank >= 0;
}

void iris_cpu_plain(const struct iris_cpu_event *access)
{
    struct iris_cpu_wg *cpu = iris_cpu_self();
    struct iris_race *race = find_checker(cpu);
    struct iris_cpu_event event = *access;

    if (race == NULL || (cpu != NULL && is_in_operation(cpu)) ||
        !place(race, &event)) {
        return;
    }
    if (event.atomic) { /* counts down: ids of hooks count up */
        num_atomics += !event.after;
        event.id = UINT64_MAX - num_atomics;
    }
    event.kernel = "";
    if (cpu == NULL) {
        iris_i_race_of_host(race, &event);
    } else {
        event.kernel = cpu->kernel;
        event.workgroup = cpu->workgroup;
        event.launch = cpu->launch;
        if (!iris_d_is_plain(&event)) {
            iris_i_cpu_series_tell(cpu, race->heap->hooks);
        }
        (void)iris_i_race_device(race, &event);
    }
}
