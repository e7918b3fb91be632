/* SPDX-License-Identifier: MIT
 *
 * Operations of kernels, and ordinary accesses: accesses go to the shadow,
 * atomics and fences to the order.
 *
 * A thread takes the common lock at the first operation of its workgroup, and at
 * the first one at a site: then it learns the numbers of its lane and of the site.
 * With both it needs the lock only to note a race. A stream whose grid has more
 * workgroups than lanes always takes the lock, since threads share its lanes.
 *
 * Ordinary accesses come from programs compiled by `iriscc --check`. A process may
 * have several ranks, each with a checker. An access in a kernel belongs to the
 * kernel's rank, any other to the rank for which the thread makes calls.
 */
#include "config.h"

#include "check/internal.h"

#include <iris/device/watch/cpu.h>
#include <iris/device/watch/record.h>

#include "backend/backend.h"

#include <string.h>

/* ---- Known lanes and sites ---- */

#define KNOWN_SITES 64

/* For the checker of the thread's latest kernel. */
static _Thread_local struct {
    uint64_t serial; /* serial number of the checker; 0: nothing is known */
    uint64_t launch;
    unsigned workgroup;
    uint32_t lane;
    struct {
        struct iris_race_key key;
        uint32_t number; /* 0: no number is known */
    } sites[KNOWN_SITES];
} mine;

static unsigned find_known(const struct iris_race_key *key)
{
    return (unsigned)(((uintptr_t)key->address ^ key->how) % KNOWN_SITES);
}

static void learn_lane(const struct iris_race *race,
                       const struct iris_cpu_event *event, uint32_t lane)
{
    if (mine.serial != race->serial) {
        memset(&mine, 0, sizeof mine);
    }
    mine.serial = race->serial;
    mine.launch = event->launch;
    mine.workgroup = event->workgroup;
    mine.lane = lane;
}

static void learn_site(const struct iris_race *race,
                       const struct iris_cpu_event *event, uint32_t site)
{
    struct iris_race_key key = iris_i_race_key(event);
    unsigned slot = find_known(&key);

    if (mine.serial == race->serial) {
        mine.sites[slot].key = key;
        mine.sites[slot].number = site;
    }
}

static bool knows_event(const struct iris_race *race,
                        const struct iris_cpu_event *event, uint32_t *lane_p,
                        uint32_t *site_p)
{
    struct iris_race_key key = iris_i_race_key(event);
    unsigned slot = find_known(&key);

    *lane_p = mine.lane;
    *site_p = mine.sites[slot].number;
    return mine.serial == race->serial && mine.launch == event->launch &&
           mine.workgroup == event->workgroup && *site_p != 0 &&
           iris_i_race_is_same_key(&mine.sites[slot].key, &key);
}

/* ---- Kernels ---- */

/* ---- Lanes ---- */

/* The stream of a kernel's run; NULL: not found. Under the lock. */
static struct iris_race_stream *find_run(const struct iris_race *race,
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
                                         stream->number);
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

/* ---- Accesses ---- */

/* Whether the shadow gets the access now: before a plain access or an atomic,
 * and after a wait. */
static bool is_access(const struct iris_cpu_event *event)
{
    return event->op != IRIS_OP_FENCE &&
           (event->after != 0) == (event->op == IRIS_OP_WAIT);
}

static void touch_event(struct iris_race *race,
                        const struct iris_cpu_event *event,
                        const struct iris_order_range *range, uint32_t lane,
                        uint32_t site, struct iris_race_caught *caught)
{
    const struct iris_race_access access = {
        .clock = iris_i_order_now(&race->order, lane),
        .site = site,
        .workgroup = event->workgroup,
        .lane = (uint16_t)lane,
        .kind = (uint8_t)((event->write ? IRIS_RACE_IS_WRITE : 0) |
                          (event->atomic ? IRIS_RACE_IS_ATOMIC : 0) |
                          (unsigned)event->scope << IRIS_RACE_SCOPE_SHIFT),
    };

    if (range->bytes != 0 &&
        !iris_i_heap_is_own(&race->heap->names, range->offset)) {
        iris_i_race_touch(race, range, &access, caught);
    }
}

/* ---- Atomics ---- */

/* The sum of two floats, if it follows from their bits alone. Small
 * integers are subnormal floats, which take processors a hundred times
 * longer. False: it does not. */
static bool add_subnormal(const struct iris_cpu_event *event, uint64_t *sum_p)
{
    unsigned mantissa = event->bytes == sizeof(float) ? 23 : 52;
    uint64_t largest = event->bytes == sizeof(float) ? 0xff : 0x7ff;
    uint64_t exponent = event->seen >> mantissa & largest;
    bool is_small = event->seen >> mantissa == 0;

    if (event->value >> mantissa != 0) {
        return false;
    }
    *sum_p = is_small ? event->seen + event->value : event->seen;
    return is_small ? event->op == IRIS_OP_ATOMIC_ADD
                    : exponent > mantissa + 2 && exponent != largest;
}

static uint64_t add_floats(const struct iris_cpu_event *event)
{
    bool subtracts = event->op == IRIS_OP_ATOMIC_SUB;
    uint32_t words[2] = {(uint32_t)event->seen, (uint32_t)event->value};
    uint64_t sum;
    float f[2];
    double d[2];

    if (add_subnormal(event, &sum)) {
        return sum;
    }
    if (event->bytes == sizeof(float)) {
        memcpy(f, words, sizeof f);
        f[0] = subtracts ? f[0] - f[1] : f[0] + f[1];
        memcpy(words, f, sizeof *words);
        return words[0];
    }
    memcpy(&d[0], &event->seen, sizeof *d);
    memcpy(&d[1], &event->value, sizeof *d);
    d[0] = subtracts ? d[0] - d[1] : d[0] + d[1];
    memcpy(&sum, d, sizeof sum);
    return sum;
}

/* The possible values of the word after the operation: an event does not say
 * whether it adds floats, or compares signed numbers. */
static void find_values(const struct iris_cpu_event *event, uint64_t values[2])
{
    values[0] = values[1] = iris_d_record_value(event->op, event->value,
                                                event->seen, event->expected);
    switch (event->op) {
    case IRIS_OP_ATOMIC_MIN:
    case IRIS_OP_ATOMIC_MAX:
        values[0] = event->seen;
        values[1] = event->value;
        break;
    case IRIS_OP_ATOMIC_ADD:
    case IRIS_OP_ATOMIC_SUB:
        if (event->bytes == sizeof(float) || event->bytes == sizeof(double)) {
            values[1] = add_floats(event);
        }
        break;
    default:
        break;
    }
}

/* A flag that plain stores write orders nothing, but the program expects it
 * to. */
static void take_plain(struct iris_race *race,
                       const struct iris_order_atomic *reader)
{
    struct iris_order *order = &race->order;
    struct iris_order_lane *lane = &order->shared->lanes[reader->op.lane];
    struct iris_race_access plain;
    struct iris_order_edge edge = {IRIS_ORDER_LACKS_ATOMIC, 0, reader->op.site};

    if (iris_i_race_last_plain(race, reader->rank, reader->offset, &plain) &&
        plain.lane != reader->op.lane) {
        uint32_t why;

        edge.release = plain.site;
        why = iris_i_order_edge(order, &edge);
        iris_i_order_spin_lock(order->shared, &lane->lock);
        iris_i_order_join_one(order, &lane->clock, plain.lane, plain.clock,
                              why);
        iris_i_order_spin_unlock(&lane->lock);
    }
}

static void read_word(struct iris_race *race,
                      const struct iris_order_atomic *atomic, uint64_t seen)
{
    if (!iris_i_order_read(&race->order, atomic, seen)) {
        take_plain(race, atomic);
    }
}

/* After an atomic. */
static void end_atomic(struct iris_race *race,
                       const struct iris_cpu_event *event,
                       const struct iris_order_atomic *atomic)
{
    struct iris_order *order = &race->order;
    uint64_t values[2];

    if (event->op == IRIS_OP_LOAD) {
        read_word(race, atomic, event->seen);
    } else if (event->op == IRIS_OP_STORE) {
        values[0] = values[1] = event->value;
        iris_i_order_written(order, atomic, values, NULL);
    } else if (event->op == IRIS_OP_ATOMIC_CAS &&
               event->seen != event->expected) {
        iris_i_order_unwritten(order, atomic);
        read_word(race, atomic, event->seen);
    } else {
        find_values(event, values);
        read_word(race, atomic, event->seen);
        iris_i_order_written(order, atomic, values, &event->seen);
    }
}

/* The order by an atomic or a fence. */
static void order_event(struct iris_race *race,
                        const struct iris_cpu_event *event,
                        const struct iris_order_range *range, uint32_t lane,
                        uint32_t site)
{
    bool fences = event->op == IRIS_OP_FENCE;
    const struct iris_order_atomic atomic = {
        .op = {lane, site, event->sem, event->scope},
        .word =
            fences ? NULL
                   : iris_i_order_word(&race->order, range->rank, range->offset,
                                       event->write && !event->after),
        .rank = range->rank,
        .offset = range->offset,
        .bytes = range->bytes,
        .id = event->id,
        .foreseen = event->op == IRIS_OP_STORE ||
                    event->op == IRIS_OP_ATOMIC_XCHG ||
                    event->op == IRIS_OP_ATOMIC_CAS,
        .value = event->value,
    };

    if (fences) {
        iris_i_order_fence(&race->order, &atomic.op);
    } else if (event->op == IRIS_OP_WAIT) {
        if (event->after && event->held) {
            read_word(race, &atomic, event->seen);
        }
    } else if (event->after) {
        end_atomic(race, event, &atomic);
    } else if (event->write) {
        iris_i_order_write(&race->order, &atomic);
    }
}

/* ---- Operations ---- */

/* Whether the operation is one to observe. */
static bool is_observed(const struct iris_race *race,
                        const struct iris_cpu_event *event,
                        struct iris_order_range *range_p)
{
    *range_p = (struct iris_order_range){-1, 0, 0};
    return (event->atomic || !event->after) &&
           (event->op == IRIS_OP_FENCE ||
            iris_i_order_locate(race->heap, event, range_p));
}

/* An operation of `lane`. `call` is the site of the host call that launched the
 * library's own kernel; 0: the kernel is the program's. Under the lock. */
static void observe_in_lane(struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t lane,
                            uint32_t call)
{
    struct iris_race_caught caught;
    struct iris_order_range range;
    uint32_t site = call;

    caught.count = 0;
    if (!is_observed(race, event, &range)) {
        return;
    }
    if (call == 0) {
        site = iris_i_race_site(race, event);
    }
    if (site == 0) {
        return;
    }
    if (call == 0) {
        learn_site(race, event, site);
    }
    if (is_access(event)) {
        touch_event(race, event, &range, lane, site, &caught);
        iris_i_race_note(race, &caught);
    }
    if (!iris_d_is_plain(event)) {
        order_event(race, event, &range, lane, site);
    }
}

/* A workgroup's collective: the ranges that it reads and writes. It orders
 * nothing else. */
static void observe_collective(struct iris_race *race,
                               const struct iris_cpu_event *event,
                               uint32_t lane)
{
    struct iris_race_caught caught;
    struct iris_order_range range;
    uint32_t site;

    caught.count = 0;
    if (!event->after && iris_i_order_locate(race->heap, event, &range)) {
        site = iris_i_race_site(race, event);
        touch_event(race, event, &range, lane, site, &caught);
        iris_i_race_note(race, &caught);
    }
}

/* An operation whose lane and site the thread knows, without the lock. False:
 * it has to be handled under the lock. */
static bool observe_known(struct iris_race *race,
                          const struct iris_cpu_event *event)
{
    struct iris_race_caught caught;
    struct iris_order_range range;
    uint32_t lane, site;

    caught.count = 0; /* without the time to clear the rest */
    if (event->op == IRIS_OP_COLLECTIVE ||
        !knows_event(race, event, &lane, &site)) {
        return false;
    }
    if (!is_observed(race, event, &range)) {
        return true;
    }
    if (is_access(event)) {
        touch_event(race, event, &range, lane, site, &caught);
    }
    if (caught.count != 0) {
        iris_i_order_lock(race->order.shared);
        iris_i_race_note(race, &caught);
        iris_i_order_unlock(race->order.shared);
    }
    if (!iris_d_is_plain(event)) {
        order_event(race, event, &range, lane, site);
    }
    return true;
}

static void observe_locked(struct iris_race *race,
                           const struct iris_cpu_event *event)
{
    struct iris_race_stream *stream = find_run(race, event->launch);
    uint32_t lane;

    if (stream == NULL || stream->exchange.is_one) {
        return;
    }
    lane = iris_i_race_lane(race, stream, event->launch, event->workgroup);
    if (lane != 0 && !stream->shares_lanes) {
        learn_lane(race, event, lane - 1);
    }
    if (lane != 0 && event->op == IRIS_OP_COLLECTIVE) {
        observe_collective(race, event, lane - 1);
    } else if (lane != 0) {
        observe_in_lane(race, event, lane - 1, stream->site);
    }
}

iris_status_t iris_i_race_device(void *self, const struct iris_cpu_event *event)
{
    struct iris_race *race = self;

    if (event->op == IRIS_OP_BARRIER ||
        (event->after && iris_d_is_plain(event))) {
        return IRIS_OK;
    }
    if (!observe_known(race, event)) {
        iris_i_order_lock(race->order.shared);
        observe_locked(race, event);
        iris_i_order_unlock(race->order.shared);
    }
    iris_i_race_print(race);
    return IRIS_OK;
}

/* ---- Ordinary accesses ---- */

#define MAX_CHECKERS 256

/* Needs no lock: a checker is added before its rank's program runs, and removed
 * after it has ended. */
static _Atomic(struct iris_race *) checkers[MAX_CHECKERS];

static struct iris_cpu_range checked;

/* The checker of the thread's latest call of Iris; it may no longer exist. */
static _Thread_local struct iris_race *own;

static _Thread_local uint64_t num_atomics; /* number of the thread's atomics */

static void include_range(uintptr_t low, uintptr_t high)
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
            include_range(base, base + iris_i_heap_bytes(memory));
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
static bool place_event(const struct iris_race *race,
                        struct iris_cpu_event *event)
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
        !place_event(race, &event)) {
        return;
    }
    if (event.atomic) { /* counts down: ids of hooks count up */
        num_atomics += !event.after;
        event.id = UINT64_MAX - num_atomics;
    }
    event.kernel = "";
    if (cpu == NULL) {
        iris_i_order_lock(race->order.shared);
        observe_in_lane(race, &event, race->host.lane, 0);
        iris_i_order_unlock(race->order.shared);
        iris_i_race_print(race);
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
