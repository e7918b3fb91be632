/* SPDX-License-Identifier: MIT
 *
 * The threads of a host: their lanes, and the order between them.
 *
 * The thread that makes the checker has the host's first lane. A thread whose
 * begin the program's interposed calls have told (race_calls.c) gets a lane of its
 * own. Locks, barriers and the like are keys: a release joins the thread's clock
 * into the key's, an acquire takes it from there.
 *
 * No order may be missed, or a correct program would be reported. So all threads
 * of a rank count as one, and their operations so far are in order, as soon as
 * - a thread of unknown begin accesses memory or calls Iris,
 * - a table is full, or a call is made whose order is not known.
 */
#include "config.h"

#include "check/internal.h"

#include <iris/device/watch/cpu.h>

#include <stdlib.h>
#include <unistd.h>

#define MAX_CHECKERS 256

/* Lanes that are used before those of ended threads are used again. */
#define FRESH_LANES 32

/* A thread of the program that uses a checker holds the lock for reading, since it
 * may outlive its rank. Kernels do not. */
static _Atomic(struct iris_race *) checkers[MAX_CHECKERS];
static pthread_rwlock_t checkers_lock = PTHREAD_RWLOCK_INITIALIZER;

static void replace_checker(struct iris_race *old, struct iris_race *new)
{
    unsigned i = 0;

    pthread_rwlock_wrlock(&checkers_lock);
    while (i < MAX_CHECKERS && checkers[i] != old) {
        i++;
    }
    if (i < MAX_CHECKERS) {
        checkers[i] = new;
    }
    pthread_rwlock_unlock(&checkers_lock);
}

static _Thread_local struct iris_cpu_thread self;

struct iris_cpu_thread *iris_cpu_thread(void)
{
    return &self;
}

/* The range of heaps, and that of memory on no heap. */
static struct iris_cpu_range checked[2];

static atomic_bool is_watched; /* the program tells its ordinary accesses */

const struct iris_cpu_range *iris_cpu_checked(void)
{
    atomic_store(&is_watched, true);
    return checked;
}

bool iris_i_race_is_watched(void)
{
    return atomic_load(&is_watched);
}

void iris_i_race_watch_range(unsigned i, uintptr_t low, uintptr_t high)
{
    struct iris_cpu_range *range = &checked[i];
    _Atomic uintptr_t *low_p = (_Atomic uintptr_t *)&range->low;
    _Atomic uintptr_t *high_p = (_Atomic uintptr_t *)&range->high;
    uintptr_t now = atomic_load(low_p);

    while ((now == 0 || low < now) &&
           !atomic_compare_exchange_weak(low_p, &now, low)) {
    }
    now = atomic_load(high_p);
    while (high > now && !atomic_compare_exchange_weak(high_p, &now, high)) {
    }
}

void iris_i_race_watch_heaps(const struct iris_heap *heap)
{
    const struct iris_heap_memory *memory = &heap->memory;

    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        uintptr_t base = (uintptr_t)memory->bases[rank];

        if (base != 0) {
            iris_i_race_watch_range(0, base, base + iris_i_heap_bytes(memory));
        }
    }
}

/* Sets the owner of the heap as an operation of the device API does; false: the
 * address is on no heap. */
bool iris_i_race_place(const struct iris_heap *heap,
                       struct iris_cpu_event *event)
{
    const struct iris_heap_memory *memory = &heap->memory;
    int rank = heap->log->rank;
    size_t offset;

    event->rank = event->target_rank = rank;
    if (event->op == IRIS_OP_FENCE) {
        return true;
    }
    event->target_rank = iris_i_heap_owner(memory, event->address, &offset);
    if (event->target_rank < 0) {
        return false;
    }
    event->address = (const char *)memory->bases[rank] + offset;
    return true;
}

void iris_i_race_watch_process(struct iris_race *race)
{
    race->threads.first = race->host.lane;
    self.checker = race;
    self.serial = race->serial;
    self.lane = race->host.lane;
    self.number = 0;
    replace_checker(NULL, race);
}

void iris_i_race_leave_process(struct iris_race *race)
{
    replace_checker(race, NULL);
}

void iris_i_race_bind_thread(struct iris_race *race)
{
    self.checker = race;
}

IRIS_UNCHECKED void iris_i_race_leave_checker(void)
{
    pthread_rwlock_unlock(&checkers_lock);
}

struct iris_race *iris_i_race_of_kernel(const struct iris_cpu_wg *cpu)
{
    for (unsigned i = 0; i < MAX_CHECKERS; i++) {
        struct iris_race *race = atomic_load(&checkers[i]);

        if (race != NULL && race->heap->log->rank == cpu->rank) {
            return race;
        }
    }
    return NULL;
}

/* Not checked: it returns with the lock if it finds a checker. */
IRIS_UNCHECKED struct iris_race *iris_i_race_use_checker(bool any)
{
    struct iris_race *one = NULL;
    unsigned count = 0;

    pthread_rwlock_rdlock(&checkers_lock);
    for (unsigned i = 0; i < MAX_CHECKERS; i++) {
        struct iris_race *race = checkers[i];

        if (race != NULL && race == self.checker) {
            return race;
        }
        one = race == NULL ? one : race;
        count += race != NULL;
    }
    if (count == 1 || (any && count != 0)) {
        return one;
    }
    iris_i_race_leave_checker();
    return NULL;
}

/* ---- Lanes; under the common lock ---- */

/* Joins the clocks of all threads of the rank into one. */
static void join_threads(struct iris_race *race, struct iris_order_clock *to)
{
    struct iris_order_shared *shared = race->order.shared;
    uint32_t num_lanes = atomic_load(&shared->num_lanes);
    int rank = race->heap->log->rank;

    for (uint32_t i = 0; i < num_lanes; i++) {
        struct iris_order_lane *lane = &shared->lanes[i];

        if (lane->rank == rank && lane->stream == 0 && &lane->clock != to) {
            iris_i_order_join(&race->order, to, &lane->clock, 0);
            iris_i_order_tick(&race->order, i);
        }
    }
}

void iris_i_race_merge(struct iris_race *race)
{
    if (!race->threads.are_one) {
        race->threads.are_one = true;
        join_threads(race,
                     &race->order.shared->lanes[race->threads.first].clock);
    }
}

/* A lane for this thread; false: there are too many. */
static bool take_lane(struct iris_race *race)
{
    struct iris_race_threads *threads = &race->threads;
    uint32_t lane;

    if (threads->num_lanes < FRESH_LANES || threads->num_ended == 0) {
        lane =
            threads->num_lanes == IRIS_RACE_THREADS
                ? 0
                : iris_i_order_add_lane(&race->order, race->heap->log->rank, 0);
        if (lane-- == 0) {
            return false;
        }
        threads->num_lanes++;
    } else {
        lane = threads->ended[threads->first_ended++ % IRIS_RACE_THREADS];
        threads->num_ended--;
        iris_i_order_renew(&race->order, lane);
    }
    self.serial = race->serial;
    self.lane = lane;
    self.number = ++threads->number;
    return true;
}

/* The entry of a key of this process; NULL: the table is full. */
static struct iris_order_sync *find_sync(struct iris_order *order,
                                         const void *key)
{
    uint64_t number = (uint64_t)(getpid() & 0x7fff) << 48 | (uintptr_t)key;
    size_t at = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 40);
    struct iris_order_sync *syncs = order->shared->syncs;

    for (unsigned i = 0; i < IRIS_ORDER_SYNCS; i++) {
        struct iris_order_sync *sync = &syncs[(at + i) % IRIS_ORDER_SYNCS];

        if (sync->key == 0) {
            sync->key = number;
        }
        if (sync->key == number) {
            return sync;
        }
    }
    return NULL;
}

/* A volatile read has happened meanwhile. */
static void acquire_read(struct iris_race *race)
{
    const struct iris_order_sync *sync = find_sync(&race->order, self.reads);

    self.reads = NULL;
    if (sync == NULL) {
        iris_i_race_merge(race);
    } else {
        iris_i_order_acquire_clock(&race->order, race->host.lane, &sync->clock,
                                   0);
    }
}

uint32_t iris_i_race_lane(struct iris_race *race)
{
    if (atomic_load(&race->threads.must_merge)) {
        iris_i_race_merge(race);
    }
    if (!race->threads.are_one && self.serial != race->serial) {
        if (self.is_known && take_lane(race)) {
            join_threads(race, &race->order.shared->lanes[self.lane].clock);
        } else {
            iris_i_race_merge(race);
        }
    }
    race->host.lane = race->threads.are_one ? race->threads.first : self.lane;
    if (self.reads != NULL) {
        acquire_read(race);
    }
    return race->host.lane;
}

uint32_t iris_i_race_thread(const struct iris_race *race)
{
    return race->threads.are_one ? 0 : self.number;
}

void iris_i_race_acquire_all(struct iris_race *race, uint32_t lane)
{
    join_threads(race, &race->order.shared->lanes[lane].clock);
}

/* ---- Edges; under the common lock ---- */

/* When the last member arrives, the barrier's clock is that of all. */
static void join_barrier(struct iris_order *order, struct iris_order_sync *sync,
                         const struct iris_order_clock *clock)
{
    if (sync->count == 0) {
        iris_i_order_join(order, &sync->clock, clock, 0);
        return;
    }
    iris_i_order_join(order, &sync->arriving, clock, 0);
    if (++sync->arrived >= sync->count) {
        iris_i_order_free(order, &sync->clock);
        sync->clock = sync->arriving;
        sync->arriving = (struct iris_order_clock){0, 0};
        sync->arrived = 0;
    }
}

static void order_thread(struct iris_race *race, enum iris_cpu_edge edge,
                         struct iris_order_sync *sync)
{
    struct iris_order *order = &race->order;
    uint32_t lane = iris_i_race_lane(race);
    struct iris_order_clock *clock = &order->shared->lanes[lane].clock;

    switch (edge) {
    case IRIS_CPU_PUBLISH:
        iris_i_order_free(order, &sync->clock);
        iris_i_order_free(order, &sync->arriving);
        sync->arrived = sync->count = 0;
        iris_i_order_join(order, &sync->clock, clock, 0);
        break;
    case IRIS_CPU_RELEASE:
    case IRIS_CPU_END:
        iris_i_order_join(order, &sync->clock, clock, 0);
        break;
    case IRIS_CPU_ARRIVE:
        join_barrier(order, sync, clock);
        break;
    case IRIS_CPU_ACQUIRE_ALL:
        join_threads(race, clock);
        return;
    default: /* IRIS_CPU_ACQUIRE */
        iris_i_order_acquire_clock(order, lane, &sync->clock, 0);
        return;
    }
    iris_i_order_tick(order, lane);
}

/* An edge of this thread, whose begin may be unknown: then it may have been told
 * of anything that other threads have done. */
static void take_edge(struct iris_race *race, enum iris_cpu_edge edge,
                      const void *key, unsigned count)
{
    struct iris_order_sync *sync =
        key == NULL ? NULL : find_sync(&race->order, key);
    struct iris_race_threads *threads = &race->threads;

    if (edge == IRIS_CPU_MERGE || (sync == NULL && key != NULL)) {
        iris_i_race_merge(race);
    } else if (edge == IRIS_CPU_COUNT) {
        sync->count = count;
    } else if (!threads->are_one && !self.is_known &&
               self.serial != race->serial) {
        if (edge != IRIS_CPU_ACQUIRE && edge != IRIS_CPU_ACQUIRE_ALL) {
            join_threads(race, &sync->clock);
        }
    } else {
        if (edge == IRIS_CPU_ARRIVE && count != 0) {
            sync->count = count;
        }
        if (edge == IRIS_CPU_BEGIN && !threads->are_one && !take_lane(race)) {
            iris_i_race_merge(race);
        }
        order_thread(race, edge, sync);
        if (edge == IRIS_CPU_END && self.serial == race->serial &&
            self.lane != threads->first) {
            threads->ended[(threads->first_ended + threads->num_ended++) %
                           IRIS_RACE_THREADS] = (uint16_t)self.lane;
            self.serial = 0;
        }
    }
}

void iris_cpu_order(enum iris_cpu_edge edge, const void *key, unsigned count)
{
    struct iris_race *race = iris_i_race_use_checker(true);

    if (race == NULL) {
        return;
    }
    if (iris_i_order_is_held()) { /* a handler of a signal */
        atomic_store(&race->threads.must_merge, true);
    } else {
        iris_i_order_lock(race->order.shared);
        take_edge(race, edge, key, count);
        iris_i_order_unlock(race->order.shared);
    }
    iris_i_race_leave_checker();
}
