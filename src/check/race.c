/* SPDX-License-Identifier: MIT
 *
 * The race checker: accesses go to the shadow, atomics and fences to the order.
 *
 * Operations of kernels come from their threads. A thread takes the common lock at
 * the first operation of its workgroup, to learn its lane. From then on it needs
 * it only for a site that its rank has not met, and to note a race. A stream whose
 * grid has more workgroups than lanes always takes the lock, since threads share
 * its lanes.
 *
 * The shadow keeps the latest accesses to each word. An access is dropped if it
 * happens before a later one that races with at least the same accesses. New
 * memory has no earlier accesses; freed memory counts as written by each host.
 *
 * Ordinary accesses come from programs compiled by `iriscc --check`. A process may
 * have several ranks, each with a checker. An access in a kernel belongs to the
 * kernel's rank, any other to the rank for which the thread makes calls.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/internal.h"

#include <iris/device/watch/cpu.h>
#include <iris/device/watch/record.h>

#include "backend/backend.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- The shadow ---- */

/* Number of bytes that share a lock. */
#define GRANULE_BYTES ((size_t)256)

/* An access, during the walk over its words. */
struct walk {
    struct iris_race *race;
    const struct iris_order_clock *clock; /* of its lane */
    struct iris_race_access now;
    struct iris_race_caught caught;
    int rank;
    size_t offset; /* of the word */
};

static struct iris_race_access *find_cells(const struct iris_race *race,
                                           int rank, size_t offset)
{
    return iris_i_order_cell(&race->order, rank, offset);
}

/* The lock that guards the cells of a place. */
static atomic_uint *find_granule(const struct iris_race *race, int rank,
                                 size_t offset)
{
    size_t number = offset / GRANULE_BYTES + (size_t)rank * 641;

    return &race->shared->granules[number % IRIS_RACE_GRANULES];
}

/* Whether two unordered accesses to a common byte are a race. */
static bool is_conflict(const struct iris_order_shared *shared,
                        const struct iris_race_access *a,
                        const struct iris_race_access *b)
{
    if (((a->kind | b->kind) & IRIS_RACE_IS_WRITE) == 0) {
        return false;
    }
    return (a->kind & b->kind & IRIS_RACE_IS_ATOMIC) == 0 ||
           a->mask != b->mask ||
           !iris_i_order_spans(shared, a->kind >> IRIS_RACE_SCOPE_SHIFT,
                               a->lane, b->lane) ||
           !iris_i_order_spans(shared, b->kind >> IRIS_RACE_SCOPE_SHIFT,
                               b->lane, a->lane);
}

static bool is_before(const struct walk *walk,
                      const struct iris_race_access *access)
{
    const struct iris_order_moment *moment;

    if (access->lane == walk->now.lane) {
        return true;
    }
    moment = iris_i_order_moment(&walk->race->order, walk->clock, access->lane);
    return moment != NULL && moment->strict >= access->clock;
}

/* Whether every access that races with the earlier access also races with this
 * one. */
static bool is_stronger(const struct iris_race_access *now,
                        const struct iris_race_access *before)
{
    bool plain = (now->kind & IRIS_RACE_IS_ATOMIC) == 0;

    if ((now->kind & IRIS_RACE_IS_WRITE) == 0 &&
        (before->kind & IRIS_RACE_IS_WRITE) != 0) {
        return false;
    }
    return plain || (before->kind & IRIS_RACE_IS_ATOMIC) != 0;
}

/* The cell for one more access: a free one, else the least useful one. */
static struct iris_race_access *pick_cell(const struct walk *walk,
                                          struct iris_race_access *cells)
{
    struct iris_race_access *victim = NULL;

    for (unsigned i = 0; i < IRIS_RACE_CELLS; i++) {
        if (cells[i].mask == 0) {
            return &cells[i];
        }
        if (victim == NULL && is_before(walk, &cells[i])) {
            victim = &cells[i];
        }
    }
    return victim != NULL ? victim : &cells[walk->now.clock % IRIS_RACE_CELLS];
}

static void catch_race(struct walk *walk, const struct iris_race_access *before)
{
    struct iris_race_caught *caught = &walk->caught;
    unsigned i = 0;

    while (i < caught->count && (caught->races[i].before.site != before->site ||
                                 caught->races[i].now.site != walk->now.site)) {
        i++;
    }
    if (i == IRIS_RACE_CAUGHT) {
        atomic_store(&walk->race->order.shared->blind, true);
        return;
    }
    if (i == caught->count) {
        caught->races[i] = (struct iris_race_caught_one){
            *before, walk->now, walk->rank, walk->offset, 0};
        caught->count++;
    }
    caught->races[i].times++;
}

/* Whether it is a plain write of bytes that the lane has written before its latest
 * release. Reports of atomics do not ask. */
static bool writes_again(const struct walk *walk,
                         const struct iris_race_access *cells)
{
    bool again = false;

    if ((walk->now.kind & (IRIS_RACE_IS_WRITE | IRIS_RACE_IS_ATOMIC)) !=
        IRIS_RACE_IS_WRITE) {
        return false;
    }
    for (unsigned i = 0; i < IRIS_RACE_CELLS; i++) {
        again |= (cells[i].mask & walk->now.mask) != 0 &&
                 cells[i].lane == walk->now.lane &&
                 (cells[i].kind & IRIS_RACE_IS_WRITE) != 0 &&
                 (cells[i].clock < walk->now.clock ||
                  (cells[i].kind & IRIS_RACE_IS_AGAIN) != 0);
    }
    return again;
}

static void touch_word(struct walk *walk, uint8_t mask)
{
    struct iris_race_access *cells =
        find_cells(walk->race, walk->rank, walk->offset);

    walk->now.mask = mask;
    walk->now.kind &= (uint8_t)~IRIS_RACE_IS_AGAIN;
    walk->now.kind |= writes_again(walk, cells) ? IRIS_RACE_IS_AGAIN : 0;
    for (unsigned i = 0; i < IRIS_RACE_CELLS; i++) {
        struct iris_race_access *before = &cells[i];
        bool ordered, races;

        if ((before->mask & mask) == 0) {
            continue;
        }
        ordered = is_before(walk, before);
        races = (before->kind & IRIS_RACE_IS_FREE) != 0 &&
                (walk->now.kind & IRIS_RACE_IS_FREE) == 0;
        races = races || (!ordered && is_conflict(walk->race->order.shared,
                                                  before, &walk->now));
        if (races) {
            catch_race(walk, before);
        }
        if ((ordered || races) && is_stronger(&walk->now, before)) {
            before->mask &= (uint8_t)~mask;
        }
    }
    *pick_cell(walk, cells) = walk->now;
}

/* Handles the words of one granule, up to `stop`, for an access up to `end`. */
static void touch_words(struct walk *walk, size_t at, size_t end, size_t stop)
{
    while (at < end && at < stop) {
        size_t first = at % 8, next = at - first + 8;
        size_t last = next < end ? 8 : end - (at - first);

        walk->offset = at - first;
        touch_word(walk, (uint8_t)(0xffu << first & 0xffu >> (8 - last)));
        at = next;
    }
}

/* Compares the access with the earlier ones, keeps it, and notes its races. All
 * its members except the mask are set. By the thread that runs the access's lane,
 * or under the lock. */
static void touch_range(struct iris_race *race,
                        const struct iris_order_range *range,
                        const struct iris_race_access *access)
{
    struct walk walk;
    size_t at = range->offset, end = range->offset + range->bytes;

    if (range->bytes == 0 ||
        iris_i_heap_is_own(&race->heap->names, range->offset)) {
        return;
    }
    walk.race = race;
    walk.clock = &race->order.shared->lanes[access->lane].clock;
    walk.now = *access;
    walk.rank = range->rank;
    walk.caught.count = 0; /* without the time to clear the rest */
    while (at < end) {
        size_t stop = (at / GRANULE_BYTES + 1) * GRANULE_BYTES;
        atomic_uint *granule = find_granule(race, range->rank, at);

        iris_i_order_spin_lock(race->order.shared, granule);
        touch_words(&walk, at, end, stop);
        iris_i_order_spin_unlock(granule);
        at = stop;
    }
    if (walk.caught.count != 0) {
        iris_i_race_note(race, &walk.caught);
    }
}

/* The latest plain write of the 8 bytes there; false: unknown. */
static bool find_plain(const struct iris_race *race, int rank, size_t offset,
                       struct iris_race_access *plain_p)
{
    const struct iris_race_access *cells =
        find_cells(race, rank, offset - offset % 8);
    atomic_uint *granule = find_granule(race, rank, offset);
    bool found = false;

    iris_i_order_spin_lock(race->order.shared, granule);
    for (unsigned i = 0; i < IRIS_RACE_CELLS; i++) {
        if (cells[i].mask != 0 &&
            (cells[i].kind & (IRIS_RACE_IS_WRITE | IRIS_RACE_IS_ATOMIC |
                              IRIS_RACE_IS_FREE)) == IRIS_RACE_IS_WRITE) {
            *plain_p = cells[i];
            found = true;
            break;
        }
    }
    iris_i_order_spin_unlock(granule);
    return found;
}

/* Removes all accesses to that range: frees whole pages and zeroes the bytes beside
 * them. */
static void forget_range(struct iris_race *race,
                         const struct iris_order_range *range)
{
    uintptr_t page = 4096;
    uintptr_t from =
        (uintptr_t)find_cells(race, range->rank, range->offset & ~(size_t)7);
    uintptr_t to = (uintptr_t)find_cells(
        race, range->rank, (range->offset + range->bytes + 7) & ~(size_t)7);
    uintptr_t first = (from + page - 1) & ~(page - 1), last = to & ~(page - 1);

    if (first >= last ||
        madvise((void *)first, last - first, MADV_REMOVE) != 0) {
        memset((void *)from, 0, to - from);
        return;
    }
    memset((void *)from, 0, first - from);
    memset((void *)last, 0, to - last);
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

    if (find_plain(race, reader->rank, reader->offset, &plain) &&
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
    if (iris_i_order_read(&race->order, atomic, seen)) {
        return;
    }
    if (atomic->rank < race->heap->log->num_ranks) {
        take_plain(race, atomic);
    } else if (atomic->word->num_writes != (atomic->updates ? 1 : 0) ||
               atomic->word->first != seen) {
        iris_i_race_acquire_all(race, atomic->op.lane);
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
        iris_i_order_written(order, atomic, NULL, NULL);
        read_word(race, atomic, event->seen);
    } else {
        find_values(event, values);
        read_word(race, atomic, event->seen);
        iris_i_order_written(order, atomic, values, &event->seen);
    }
}

/* The wait could have ended with the first write that satisfies it: later ones
 * order nothing, and it returns the value of that one. */
static void end_wait(struct iris_race *race, const struct iris_cpu_event *event,
                     const struct iris_order_atomic *atomic)
{
    struct iris_cpu_wg *cpu = iris_cpu_self();
    uint64_t seen = event->seen;

    if (!iris_i_order_wait(&race->order, atomic, event->cmp, &seen)) {
        read_word(race, atomic, seen);
    } else if (cpu != NULL) {
        cpu->events[0].seen = seen;
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
        .updates = event->write && (event->op != IRIS_OP_ATOMIC_CAS ||
                                    event->seen == event->expected),
        .foreseen = event->op == IRIS_OP_STORE ||
                    event->op == IRIS_OP_ATOMIC_XCHG ||
                    event->op == IRIS_OP_ATOMIC_CAS,
        .value = event->value,
    };

    if (fences) {
        iris_i_order_fence(&race->order, &atomic.op);
    } else if (event->op == IRIS_OP_WAIT) {
        if (event->after && event->held) {
            end_wait(race, event, &atomic);
        }
    } else if (event->after) {
        end_atomic(race, event, &atomic);
    } else if (event->write) {
        iris_i_order_write(&race->order, &atomic);
    }
}

/* ---- Operations ---- */

/* The checker and the lane of the thread's latest workgroup. */
static _Thread_local struct {
    uint64_t serial; /* serial number of the checker; 0: nothing is known */
    uint64_t launch;
    unsigned workgroup;
    uint32_t lane;
    int part; /* as the lane's, of the latest operation */
    unsigned loops, meets;
    uint32_t call; /* site of the host call that launched the library's own
                    * kernel; 0: the kernel is the program's */
} mine;

/* An operation of `lane`, which counts as one of the site `call` unless that is
 * 0. The shadow gets an access before it happens, and a wait's after it. A
 * workgroup's collective orders nothing. */
static void observe_operation(struct iris_race *race,
                              const struct iris_cpu_event *event, uint32_t lane,
                              uint32_t call)
{
    struct iris_order_range range = {-1, 0, 0};
    struct iris_race_access access = {
        .clock = iris_i_order_now(&race->order, lane),
        .workgroup = event->workgroup,
        .lane = (uint16_t)lane,
        .kind = (uint8_t)((event->write ? IRIS_RACE_IS_WRITE : 0) |
                          (event->atomic ? IRIS_RACE_IS_ATOMIC : 0) |
                          (unsigned)event->scope << IRIS_RACE_SCOPE_SHIFT),
    };

    if (event->op == IRIS_OP_BARRIER) {
        atomic_store(&race->order.shared->lanes[lane].barrier,
                     iris_i_race_site(race, event));
        return;
    }
    if ((event->after && !event->atomic) ||
        (event->op != IRIS_OP_FENCE &&
         !iris_i_order_locate(race->heap, event, &range))) {
        return;
    }
    access.site = call != 0 ? call : iris_i_race_site(race, event);
    if (access.site == 0) {
        return;
    }
    if (event->op != IRIS_OP_FENCE &&
        (event->after != 0) == (event->op == IRIS_OP_WAIT)) {
        touch_range(race, &range, &access);
    }
    if (!iris_d_is_plain(event) && event->op != IRIS_OP_COLLECTIVE) {
        order_event(race, event, &range, lane, access.site);
    }
}

/* Whether the lanes of a workgroup meet there. An order of its own scope between them
 * counts as that. */
static bool is_meeting(const struct iris_cpu_event *event)
{
    return event->op == IRIS_OP_BARRIER || event->op == IRIS_OP_COLLECTIVE ||
           (!iris_d_is_plain(event) && event->scope == IRIS_SCOPE_WG &&
            event->sem != IRIS_RELAXED);
}

static void observe_locked(struct iris_race *race,
                           const struct iris_cpu_event *event)
{
    const struct iris_cpu_wg *cpu = iris_cpu_self();
    struct iris_order_stream *stream =
        iris_i_order_find_run(&race->host, event->launch);
    uint32_t lane;

    if (stream == NULL || stream->now.exchange.is_one) {
        return;
    }
    lane =
        iris_i_order_lane(&race->host, stream, event->launch, event->workgroup);
    if (lane == 0) {
        return;
    }
    mine.serial = stream->shares_lanes ? 0 : race->serial;
    mine.launch = event->launch;
    mine.workgroup = event->workgroup;
    if (cpu != NULL && !stream->shares_lanes) {
        mine.part = cpu->part;
        mine.loops = cpu->loops;
        mine.meets = cpu->meets;
        lane = iris_i_order_part(&race->order, lane - 1, cpu) + 1;
    }
    mine.lane = lane - 1;
    mine.call = stream->now.site;
    observe_operation(race, event, lane - 1, mine.call);
}

static iris_status_t observe_kernel_event(void *self,
                                          const struct iris_cpu_event *event)
{
    struct iris_race *race = self;
    struct iris_cpu_wg *cpu = iris_cpu_self();

    if (event->after &&
        (event->op == IRIS_OP_BARRIER || iris_d_is_plain(event))) {
        return IRIS_OK;
    }
    if (cpu != NULL && cpu->loops != 0 && is_meeting(event)) {
        cpu->meets++;
        cpu->loops += cpu->part != 0; /* goes on behind it */
    }
    if (mine.serial == race->serial && mine.launch == event->launch &&
        mine.workgroup == event->workgroup &&
        (cpu == NULL || (mine.part == cpu->part && mine.loops == cpu->loops &&
                         mine.meets == cpu->meets))) {
        observe_operation(race, event, mine.lane, mine.call);
    } else {
        iris_i_order_lock(race->order.shared);
        observe_locked(race, event);
        iris_i_order_unlock(race->order.shared);
    }
    iris_i_race_print(race);
    return IRIS_OK;
}

/* ---- Ordinary accesses ---- */

/* ---- Memory on no heap; under the common lock ---- */

static void add_outside(struct iris_race *race,
                        const struct iris_host_event *event,
                        const void *address, uint32_t site, unsigned kind)
{
    struct iris_race_outside *one;
    uintptr_t from = (uintptr_t)address;
    size_t offset;

    if (address == NULL || event->bytes == 0 || event->count > 1 ||
        iris_i_heap_owner(&race->heap->memory, address, &offset) >= 0) {
        return;
    }
    one = iris_i_grow(&race->outside, &race->num_outside, sizeof *one);
    if (one == NULL) {
        atomic_store(&race->order.shared->blind, true);
        return;
    }
    *one = (struct iris_race_outside){
        .from = from,
        .to = from + event->bytes,
        .id = event->id,
        .stream = event->stream,
        .access = {.site = site,
                   .workgroup = iris_i_race_thread(race),
                   .lane = (uint16_t)race->host.lane,
                   .mask = 0xff,
                   .kind = (uint8_t)kind}};
    iris_i_race_watch_range(1, from, from + event->bytes);
}

/* Forgets the work of a call that failed; or that of a stream that the host has
 * synchronized, once no work is to begin that was enqueued before: the `id` of
 * ended work is that of the last call until then. If two works of one stream and
 * the same memory have ended, the later stands for both. */
static void forget_outside(struct iris_race *race,
                           const struct iris_host_event *event, bool failed)
{
    const void *stream =
        event->stream == NULL ? race->params.default_stream : event->stream;
    uint64_t last = 0, waits = UINT64_MAX;
    size_t kept = 0;

    for (size_t i = 0; i < race->num_outside; i++) {
        last = race->outside[i].id > last ? race->outside[i].id : last;
    }
    for (size_t i = 0; i < race->num_outside; i++) {
        struct iris_race_outside *one = &race->outside[i];

        if (!one->ended &&
            (failed ? one->id == event->id : one->stream == stream)) {
            one->ended = true;
            one->id = last;
        }
        waits = !one->begun && !one->ended && one->id < waits ? one->id : waits;
    }
    for (size_t i = 0; i < race->num_outside; i++) {
        const struct iris_race_outside one = race->outside[i];
        size_t same = kept;

        if (one.ended && (!one.begun || waits > one.id)) {
            continue;
        }
        for (size_t j = 0; one.ended && j < kept && same == kept; j++) {
            const struct iris_race_outside *other = &race->outside[j];

            same = other->ended && other->stream == one.stream &&
                           other->from == one.from && other->to == one.to &&
                           other->access.kind == one.access.kind
                       ? j
                       : kept;
        }
        race->outside[same] = one;
        kept += same == kept;
    }
    race->num_outside = kept;
}

/* Compares an access with work that has begun, and the host's with all work. */
static void touch_outside(struct iris_race *race, uintptr_t from, uintptr_t to,
                          const struct iris_race_access *access)
{
    struct iris_order *order = &race->order;
    const struct iris_order_clock *clock =
        &order->shared->lanes[access->lane].clock;
    bool is_host = order->shared->lanes[access->lane].stream == 0;
    struct iris_race_caught caught = {.count = 0};

    for (size_t i = 0; i < race->num_outside && caught.count < IRIS_RACE_CAUGHT;
         i++) {
        const struct iris_race_outside *one = &race->outside[i];
        const struct iris_order_moment *moment =
            iris_i_order_moment(order, clock, one->access.lane);
        bool is_known =
            one->begun &&
            (one->access.lane == access->lane ||
             (moment != NULL && moment->strict >= one->access.clock));

        if (from < one->to && one->from < to && !is_known &&
            (is_host ? !one->ended : one->begun) &&
            ((one->access.kind | access->kind) & IRIS_RACE_IS_WRITE) != 0) {
            caught.races[caught.count++] = (struct iris_race_caught_one){
                one->access, *access, race->heap->log->rank,
                from > one->from ? from : one->from, 1};
        }
    }
    if (caught.count != 0) {
        iris_i_race_note(race, &caught);
    }
}

/* The work of a call begins in that lane. */
static void begin_outside(struct iris_race *race, uint64_t id, uint32_t lane)
{
    for (size_t i = 0; i < race->num_outside; i++) {
        struct iris_race_outside *one = &race->outside[i];

        if (one->id == id && !one->begun) {
            one->access.lane = (uint16_t)lane;
            one->access.clock = iris_i_order_now(&race->order, lane);
            touch_outside(race, one->from, one->to, &one->access);
            one->begun = true;
        }
    }
}

/* The host's own access, in a program that `iriscc --check` compiled. */
static void observe_outside(struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t lane)
{
    const struct iris_race_access access = {
        .clock = iris_i_order_now(&race->order, lane),
        .site = iris_i_race_site(race, event),
        .workgroup = event->workgroup,
        .lane = (uint16_t)lane,
        .mask = 0xff,
        .kind = event->write ? IRIS_RACE_IS_WRITE : 0,
    };
    uintptr_t from = (uintptr_t)event->address;

    if (access.site != 0) {
        touch_outside(race, from, from + event->bytes, &access);
    }
}

/* An atomic of the host on no heap, which may order its threads. The word counts
 * as one of a rank of this process's number. A value that no known write has left
 * is from code that the compiler did not instrument. */
static void order_outside(struct iris_race *race,
                          const struct iris_cpu_event *event, uint32_t lane)
{
    const struct iris_order_range range = {
        0x8000 | (getpid() & 0x7ffe), (uintptr_t)event->address, event->bytes};
    uint32_t site = iris_i_race_site(race, event);
    struct iris_order_word *word =
        iris_i_order_word(&race->order, range.rank, range.offset, true);

    if (word == NULL || site == 0) {
        iris_i_race_merge(race);
        return;
    }
    if (event->after && event->op != IRIS_OP_STORE && !word->has_first) {
        word->has_first = true;
        word->first = event->seen;
    }
    order_event(race, event, &range, lane, site);
}

static _Atomic uint64_t num_atomics;
static _Thread_local uint64_t atomic_id; /* id of the thread's latest */

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

/* An access by a thread of the host. */
static void observe_host_access(struct iris_race *race,
                                struct iris_cpu_event *event)
{
    uint32_t lane;

    iris_i_order_lock(race->order.shared);
    lane = iris_i_race_lane(race);
    event->workgroup = iris_i_race_thread(race);
    if (event->target_rank >= 0) {
        observe_operation(race, event, lane, 0);
    } else {
        if (!event->after) {
            observe_outside(race, event, lane);
        }
        if (event->atomic) {
            order_outside(race, event, lane);
        }
    }
    iris_i_order_unlock(race->order.shared);
    iris_i_race_print(race);
}

static void observe_plain(struct iris_race *race, struct iris_cpu_wg *cpu,
                          const struct iris_cpu_event *access)
{
    struct iris_cpu_event event = *access;

    event.kernel = "";
    if (event.atomic) { /* counts down: ids of hooks count up */
        if (!event.after) {
            atomic_id = UINT64_MAX - atomic_fetch_add(&num_atomics, 1);
        }
        event.id = atomic_id;
    }
    if (!iris_i_race_place(race->heap, &event) && cpu != NULL) {
        return;
    }
    if (cpu == NULL) {
        observe_host_access(race, &event);
        return;
    }
    event.kernel = cpu->kernel;
    event.workgroup = cpu->workgroup;
    event.launch = cpu->launch;
    if (!iris_d_is_plain(&event)) {
        iris_i_cpu_series_tell(cpu, race->heap->hooks);
    } else if (iris_i_cpu_series_take(cpu, race->heap->hooks, &event)) {
        return;
    }
    (void)observe_kernel_event(race, &event);
}

void iris_cpu_plain(const struct iris_cpu_event *access)
{
    struct iris_cpu_wg *cpu = iris_cpu_self();
    struct iris_race *race;

    if (cpu != NULL && is_in_operation(cpu)) {
        return;
    }
    if (cpu != NULL) {
        iris_i_weak_plain(cpu, access);
    }
    race = cpu != NULL ? iris_i_race_of_kernel(cpu)
                       : iris_i_race_use_checker(false);
    if (race != NULL) {
        observe_plain(race, cpu, access);
    }
    if (race != NULL && cpu == NULL) {
        iris_i_race_leave_checker();
    }
}

/* ---- Accesses by hosts ---- */

static bool find_range(const struct iris_race *race, const void *address,
                       size_t bytes, struct iris_order_range *range_p)
{
    range_p->bytes = bytes;
    range_p->rank =
        iris_i_heap_owner(&race->heap->memory, address, &range_p->offset);
    return bytes != 0 && range_p->rank >= 0 &&
           bytes <= iris_i_heap_bytes(&race->heap->memory) - range_p->offset;
}

static void touch_host_range(struct iris_race *race,
                             const struct iris_order_range *range,
                             uint32_t lane, uint32_t site, unsigned kind)
{
    const struct iris_race_access access = {
        .clock = iris_i_order_now(&race->order, lane),
        .site = site,
        .workgroup = lane == race->host.lane ? iris_i_race_thread(race) : 0,
        .lane = (uint16_t)lane,
        .kind = (uint8_t)kind,
    };

    touch_range(race, range, &access);
}

static void touch_bytes(struct iris_race *race, const void *address,
                        size_t bytes, uint32_t lane, uint32_t site,
                        unsigned kind)
{
    struct iris_order_range range;

    if (find_range(race, address, bytes, &range)) {
        touch_host_range(race, &range, lane, site, kind);
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

/* The accesses of work that begins on a stream, in the lane of workgroup 0: those
 * of a copy or fill, or a collective's, which may access its buffers as long as it
 * runs. A fill that belongs to an allocation still touches bytes that count as
 * those of the memory before. */
static void touch_work(struct iris_race *race,
                       const struct iris_host_event *event,
                       struct iris_order_stream *stream)
{
    static const struct iris_caller nowhere;
    const struct iris_order_buffers *buffers = &stream->now.buffers;
    bool is_kernel = event->op == IRIS_HOST_KERNEL;
    uint32_t lane;

    if (is_kernel ? buffers->in_bytes + buffers->out_bytes == 0
                  : stream->now.site == 0 && race->allocates) {
        return;
    }
    if (!is_kernel && stream->now.site == 0) { /* a graph's */
        stream->now.site = iris_i_race_host_site(
            race,
            event->op == IRIS_HOST_RUN_COPY ? IRIS_HOST_COPY : IRIS_HOST_SET,
            &nowhere);
    }
    lane = iris_i_order_lane(&race->host, stream, event->id, 0);
    if (lane == 0) {
        return;
    }
    if (!is_kernel) {
        begin_outside(race, stream->now.id, lane - 1);
        touch_rows(race, event, lane - 1, stream->now.site);
        return;
    }
    touch_bytes(race, buffers->in, buffers->in_bytes, lane - 1, buffers->site,
                0);
    touch_bytes(race, buffers->out, buffers->out_bytes, lane - 1, buffers->site,
                IRIS_RACE_IS_WRITE);
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
        forget_range(race, &range);
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
        forget_range(race, &range);
    } else {
        touch_host_range(race, &range, race->host.lane, site,
                         IRIS_RACE_IS_WRITE | IRIS_RACE_IS_FREE);
    }
}

/* ---- Calls ---- */

static void observe_call(struct iris_race *race,
                         const struct iris_host_event *event, uint32_t site)
{
    struct iris_order_stream *stream =
        iris_i_order_observe(&race->host, event, site);

    if (event->op == IRIS_HOST_COPY && !event->after) {
        add_outside(race, event, event->source, site, 0);
        add_outside(race, event, event->address, site, IRIS_RACE_IS_WRITE);
    } else if (event->after && (event->op == IRIS_HOST_SYNCHRONIZE
                                    ? event->status == IRIS_OK
                                    : event->op == IRIS_HOST_COPY &&
                                          event->status != IRIS_OK)) {
        forget_outside(race, event, event->op == IRIS_HOST_COPY);
    } else if (stream != NULL) {
        touch_work(race, event, stream);
    } else if (event->op == IRIS_HOST_ALLOC) {
        race->allocates = !event->after;
        if (event->after) {
            clear_new(race, event);
        }
    } else if (event->op == IRIS_HOST_FREE && event->after) {
        note_free(race, event, site);
    }
}

/* By a thread of the program; else, a run of enqueued work. */
static bool is_call(const struct iris_host_event *event)
{
    return event->op != IRIS_HOST_KERNEL && event->op < IRIS_HOST_RUN_COPY;
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
    struct iris_caller caller;
    size_t start = 0, bytes = 0;
    uint32_t site = 0;

    if (is_call(event)) {
        iris_i_race_bind_thread(race);
    }
    if (event->op == IRIS_HOST_FREE && !event->after &&
        iris_i_heap_offset(&heap->memory, event->address) <
            iris_i_heap_bytes(&heap->memory)) {
        (void)iris_i_heap_find(
            &heap->names, iris_i_heap_offset(&heap->memory, event->address),
            &start, &bytes);
    }
    if (has_site(event)) {
        iris_i_source_caller(&caller);
    }
    iris_i_order_lock(race->order.shared);
    if (is_call(event)) {
        (void)iris_i_race_lane(race);
    }
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

static _Atomic uint64_t num_checkers; /* so far */

static iris_status_t start_checker(struct iris_race *race)
{
    const struct iris_log *log = race->heap->log;
    iris_status_t status = iris_i_race_suppressions_open(
        log, race->params.suppressions, &race->suppressions);

    status = iris_i_order_open(
        race->heap, status, IRIS_RACE_CELLS * sizeof(struct iris_race_access),
        sizeof *race->shared, &race->order);
    if (status != IRIS_OK) {
        return status;
    }
    race->shared = race->order.more;
    iris_i_order_lock(race->order.shared);
    iris_i_order_open_host(&race->host, &race->order, &race->params);
    iris_i_order_unlock(race->order.shared);
    race->observer.device = observe_kernel_event;
    race->observer.takes_series = true;
    race->observer.host = observe_host_event;
    race->observer.self = race;
    status = iris_i_hooks_add(race->heap->hooks, &race->observer);
    if (status == IRIS_OK) {
        iris_i_race_watch_heaps(race->heap);
        iris_i_race_watch_process(race);
    }
    return status;
}

iris_status_t iris_i_race_create(const struct iris_check_params *params,
                                 struct iris_race **race_p)
{
    struct iris_race *race = calloc(1, sizeof *race);

    if (race == NULL) {
        return iris_i_fail(params->heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory to look for races");
    }
    race->serial = atomic_fetch_add(&num_checkers, 1) + 1;
    race->heap = params->heap;
    race->params = *params;
    *race_p = race;
    return start_checker(race);
}

void iris_i_race_destroy(struct iris_race *race)
{
    if (race == NULL) {
        return;
    }
    iris_i_race_leave_process(race);
    iris_i_hooks_remove(race->heap->hooks, &race->observer);
    iris_i_order_close_host(&race->host);
    iris_i_race_suppressions_close(&race->suppressions);
    free(race->outside);
    iris_i_order_close(&race->order);
    free(race);
}
