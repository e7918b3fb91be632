/* SPDX-License-Identifier: MIT
 *
 * Compares accesses. An access is dropped if it happens before a later one that
 * races with at least the same accesses. So few are kept.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/internal.h"

#include <string.h>
#include <sys/mman.h>

/* Number of bytes that share a lock. */
#define GRANULE_BYTES ((size_t)256)

/* An access, during the walk over its words. */
struct walk {
    struct iris_race *race;
    const struct iris_order_clock *clock; /* of its lane */
    struct iris_race_access now;
    struct iris_race_caught *caught;
    int rank;
    size_t offset; /* of the word */
};

static struct iris_race_access *find_cells(const struct iris_race *race,
                                           int rank, size_t offset)
{
    size_t word = (size_t)rank * race->num_words + offset / 8;

    return &race->shadow[word * IRIS_RACE_CELLS];
}

/* The lock that guards the cells of a place. */
static atomic_uint *find_granule(const struct iris_race *race, int rank,
                                 size_t offset)
{
    size_t number = offset / GRANULE_BYTES + (size_t)rank * 641;

    return &race->shared->granules[number % IRIS_RACE_GRANULES];
}

static iris_scope_t get_scope(const struct iris_race_access *access)
{
    return (iris_scope_t)(access->kind >> IRIS_RACE_SCOPE_SHIFT);
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
           !iris_i_order_spans(shared, get_scope(a), a->lane, b->lane) ||
           !iris_i_order_spans(shared, get_scope(b), b->lane, a->lane);
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
    struct iris_race_caught *caught = walk->caught;
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

static void touch_word(struct walk *walk, uint8_t mask)
{
    struct iris_race_access *cells =
        find_cells(walk->race, walk->rank, walk->offset);

    walk->now.mask = mask;
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

void iris_i_race_touch(struct iris_race *race,
                       const struct iris_order_range *range,
                       const struct iris_race_access *access,
                       struct iris_race_caught *caught)
{
    struct walk walk = {
        .race = race,
        .clock = &race->order.shared->lanes[access->lane].clock,
        .now = *access,
        .caught = caught,
        .rank = range->rank,
    };
    size_t at = range->offset, end = range->offset + range->bytes;

    while (at < end) {
        size_t stop = (at / GRANULE_BYTES + 1) * GRANULE_BYTES;
        atomic_uint *granule = find_granule(race, range->rank, at);

        iris_i_order_spin_lock(race->order.shared, granule);
        touch_words(&walk, at, end, stop);
        iris_i_order_spin_unlock(granule);
        at = stop;
    }
}

bool iris_i_race_last_plain(const struct iris_race *race, int rank,
                            size_t offset, struct iris_race_access *plain_p)
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

/* Frees whole pages and zeroes the bytes beside them. */
void iris_i_race_forget(struct iris_race *race,
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
