/* SPDX-License-Identifier: MIT
 *
 * Operations of kernels: accesses go to the shadow, atomics and fences to the
 * clocks.
 */
#include "config.h"

#include "check/internal.h"

#include <iris/device/watch/record.h>

#include <string.h>

/* Finds the heap and the offset of the access; false: it is on no heap. */
static bool locate(const struct iris_race *race,
                   const struct iris_cpu_event *event,
                   struct iris_race_range *range_p)
{
    const struct iris_heap_memory *memory = &race->heap->memory;

    range_p->bytes = event->bytes;
    if (iris_i_is_translated(event)) {
        range_p->offset = iris_i_heap_offset(memory, event->address);
        range_p->rank = event->target_rank;
    } else {
        range_p->rank =
            iris_i_heap_owner(memory, event->address, &range_p->offset);
    }
    return range_p->rank >= 0 && range_p->rank < race->heap->log->num_ranks &&
           range_p->offset < iris_i_heap_bytes(memory) &&
           range_p->bytes <= iris_i_heap_bytes(memory) - range_p->offset;
}

/* ---- Accesses ---- */

/* Races that were found while a granule was locked: one of each two sites. */
struct caught {
    unsigned count;
    struct {
        struct iris_race_access before, now;
        int rank;
        size_t offset;
        unsigned times;
    } races[8];
};

static void catch_race(void *arg, const struct iris_race_access *before,
                       const struct iris_race_access *now, int rank,
                       size_t offset)
{
    struct caught *caught = arg;
    unsigned i = 0;

    while (i < caught->count && (caught->races[i].before.site != before->site ||
                                 caught->races[i].now.site != now->site)) {
        i++;
    }
    if (i == sizeof caught->races / sizeof *caught->races) {
        return;
    }
    if (i == caught->count) {
        caught->races[i].before = *before;
        caught->races[i].now = *now;
        caught->races[i].rank = rank;
        caught->races[i].offset = offset;
        caught->races[i].times = 0;
        caught->count++;
    }
    caught->races[i].times++;
}

static void note_caught(struct iris_race *race, const struct caught *caught)
{
    for (unsigned i = 0; i < caught->count; i++) {
        for (unsigned j = 0; j < caught->races[i].times; j++) {
            iris_i_race_note(race, &caught->races[i].before,
                             &caught->races[i].now, caught->races[i].rank,
                             caught->races[i].offset);
        }
    }
}

/* The accessing lane, and the receiver of reports of races. */
struct by {
    uint32_t lane;
    uint32_t site;
    iris_race_tell_t tell;
    void *arg;
};

/* Whether the shadow gets the access now: before a plain access or an atomic,
 * and after a wait. */
static bool is_access(const struct iris_cpu_event *event)
{
    return event->op != IRIS_OP_FENCE &&
           (event->after != 0) == (event->op == IRIS_OP_WAIT);
}

static void touch(struct iris_race *race, const struct iris_cpu_event *event,
                  const struct iris_race_range *range, struct by by)
{
    const struct iris_race_access access = {
        .clock = iris_i_race_now(&race->memory, by.lane),
        .site = by.site,
        .workgroup = event->workgroup,
        .lane = (uint16_t)by.lane,
        .kind = (uint8_t)((event->write ? IRIS_RACE_IS_WRITE : 0) |
                          (event->atomic ? IRIS_RACE_IS_ATOMIC : 0) |
                          (unsigned)event->scope << IRIS_RACE_SCOPE_SHIFT),
    };

    if (range->bytes != 0 &&
        !iris_i_heap_is_own(&race->heap->names, range->offset)) {
        iris_i_race_touch(&race->memory, range, &access, by.tell, by.arg);
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
static void values_after(const struct iris_cpu_event *event, uint64_t values[2])
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

/* After an atomic. */
static void end_atomic(struct iris_race *race,
                       const struct iris_cpu_event *event,
                       const struct iris_race_atomic *atomic)
{
    struct iris_race_memory *memory = &race->memory;
    uint64_t values[2];

    if (event->op == IRIS_OP_LOAD) {
        iris_i_race_read(memory, atomic, event->seen);
    } else if (event->op == IRIS_OP_STORE) {
        values[0] = values[1] = event->value;
        iris_i_race_written(memory, atomic, values, NULL);
    } else if (event->op == IRIS_OP_ATOMIC_CAS &&
               event->seen != event->expected) {
        iris_i_race_unwritten(memory, atomic);
        iris_i_race_read(memory, atomic, event->seen);
    } else {
        values_after(event, values);
        iris_i_race_read(memory, atomic, event->seen);
        iris_i_race_written(memory, atomic, values, &event->seen);
    }
}

/* The order by an atomic or a fence. */
static void order(struct iris_race *race, const struct iris_cpu_event *event,
                  const struct iris_race_range *range, uint32_t lane,
                  uint32_t site)
{
    bool fences = event->op == IRIS_OP_FENCE;
    const struct iris_race_atomic atomic = {
        .word =
            fences ? NULL
                   : iris_i_race_word(&race->memory, range->rank, range->offset,
                                      event->write && !event->after),
        .lane = lane,
        .site = site,
        .rank = range->rank,
        .offset = range->offset,
        .bytes = range->bytes,
        .sem = event->sem,
        .scope = event->scope,
        .id = event->id,
        .foreseen = event->op == IRIS_OP_STORE ||
                    event->op == IRIS_OP_ATOMIC_XCHG ||
                    event->op == IRIS_OP_ATOMIC_CAS,
        .value = event->value,
    };

    if (fences) {
        iris_i_race_fence(&race->memory, &atomic);
    } else if (event->op == IRIS_OP_WAIT) {
        if (event->after && event->held) {
            iris_i_race_read(&race->memory, &atomic, event->seen);
        }
    } else if (event->after) {
        end_atomic(race, event, &atomic);
    } else if (event->write) {
        iris_i_race_write(&race->memory, &atomic);
    }
}

/* ---- Operations ---- */

/* Whether the operation is one to observe. */
static bool is_observed(const struct iris_race *race,
                        const struct iris_cpu_event *event,
                        struct iris_race_range *range_p)
{
    *range_p = (struct iris_race_range){-1, 0, 0};
    return (event->atomic || !event->after) &&
           (event->op == IRIS_OP_FENCE || locate(race, event, range_p));
}

/* An operation of `lane`. `call` is the site of the host call that launched the
 * library's own kernel; 0: the kernel is the program's. Under the lock. */
static void observe_of(struct iris_race *race,
                       const struct iris_cpu_event *event, uint32_t lane,
                       uint32_t call)
{
    struct iris_race_range range;
    uint32_t site = call;

    if (!is_observed(race, event, &range)) {
        return;
    }
    if (call == 0) {
        site = iris_i_race_site(&race->memory, &race->sites, event);
    }
    if (site == 0) {
        return;
    }
    if (call == 0) {
        iris_i_race_learn_site(race, event, site);
    }
    if (is_access(event)) {
        touch(race, event, &range,
              (struct by){lane, site, iris_i_race_note, race});
    }
    if (!iris_d_is_plain(event)) {
        order(race, event, &range, lane, site);
    }
}

/* A workgroup's collective: the ranges that it reads and writes. It orders
 * nothing else. */
static void observe_collective(struct iris_race *race,
                               const struct iris_cpu_event *event,
                               uint32_t lane)
{
    struct iris_race_range range;
    uint32_t site;

    if (!event->after && locate(race, event, &range)) {
        site = iris_i_race_site(&race->memory, &race->sites, event);
        touch(race, event, &range,
              (struct by){lane, site, iris_i_race_note, race});
    }
}

/* An operation whose lane and site the thread knows, without the lock. False:
 * it has to be handled under the lock. */
static bool observe_known(struct iris_race *race,
                          const struct iris_cpu_event *event)
{
    struct caught caught;
    struct by by = {0, 0, catch_race, &caught};
    struct iris_race_range range;

    caught.count = 0; /* without the time to clear the rest */
    if (event->op == IRIS_OP_COLLECTIVE ||
        !iris_i_race_knows(race, event, &by.lane, &by.site)) {
        return false;
    }
    if (!is_observed(race, event, &range)) {
        return true;
    }
    if (is_access(event)) {
        touch(race, event, &range, by);
    }
    if (caught.count != 0) {
        iris_i_race_lock(race->memory.shared);
        note_caught(race, &caught);
        iris_i_race_unlock(race->memory.shared);
    }
    if (!iris_d_is_plain(event)) {
        order(race, event, &range, by.lane, by.site);
    }
    return true;
}

static void observe(struct iris_race *race, const struct iris_cpu_event *event)
{
    struct iris_race_stream *stream =
        iris_i_race_stream_of(race, event->launch);
    uint32_t lane;

    if (stream == NULL || stream->exchange.is_one) {
        return;
    }
    lane = iris_i_race_lane(race, stream, event->launch, event->workgroup);
    if (lane != 0 && !stream->shares_lanes) {
        iris_i_race_learn_lane(race, event, lane - 1);
    }
    if (lane != 0 && event->op == IRIS_OP_COLLECTIVE) {
        observe_collective(race, event, lane - 1);
    } else if (lane != 0) {
        observe_of(race, event, lane - 1, stream->site);
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
        iris_i_race_lock(race->memory.shared);
        observe(race, event);
        iris_i_race_unlock(race->memory.shared);
    }
    iris_i_race_print(race);
    return IRIS_OK;
}

void iris_i_race_of_host(struct iris_race *race,
                         const struct iris_cpu_event *event)
{
    iris_i_race_lock(race->memory.shared);
    observe_of(race, event, race->host, 0);
    iris_i_race_unlock(race->memory.shared);
    iris_i_race_print(race);
}
