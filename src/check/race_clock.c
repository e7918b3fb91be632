/* SPDX-License-Identifier: MIT
 *
 * Clocks are arrays in the arena, with capacities that are powers of two. Freed
 * ones are kept in lists by capacity.
 */
#include "config.h"

#include "check/race_clock.h"

#include <string.h>

#define LEAST_LOG 4

static unsigned log_of(uint32_t count)
{
    unsigned log = LEAST_LOG;

    while (((uint32_t)1 << log) < count) {
        log++;
    }
    return log;
}

static void give(struct iris_race_memory *memory, struct iris_race_clock *clock)
{
    uint32_t *list;

    if (clock->at == 0) {
        return;
    }
    list = &memory->shared->arena_free[log_of(clock->capacity)];
    memory->arena[clock->at].strict = *list;
    *list = clock->at;
    clock->at = clock->capacity = 0;
}

/* Makes room for this number of moments; the new ones are 0. */
static bool reserve(struct iris_race_memory *memory,
                    struct iris_race_clock *clock, uint32_t count)
{
    struct iris_race_shared *shared = memory->shared;
    unsigned log = log_of(count);
    struct iris_race_clock larger = {0, (uint32_t)1 << log};

    if (count <= clock->capacity) {
        return true;
    }
    if (shared->arena_free[log] != 0) {
        larger.at = shared->arena_free[log];
        shared->arena_free[log] = memory->arena[larger.at].strict;
    } else if (shared->arena_used < UINT32_C(300000000)) {
        larger.at = shared->arena_used;
        shared->arena_used += larger.capacity;
    } else {
        shared->blind = true;
        return false;
    }
    memset(&memory->arena[larger.at], 0,
           larger.capacity * sizeof *memory->arena);
    if (clock->at != 0) {
        memcpy(&memory->arena[larger.at], &memory->arena[clock->at],
               clock->capacity * sizeof *memory->arena);
    }
    give(memory, clock);
    *clock = larger;
    return true;
}

struct iris_race_moment *
iris_i_race_moment(const struct iris_race_memory *memory,
                   const struct iris_race_clock *clock, uint32_t lane)
{
    return lane < clock->capacity ? &memory->arena[clock->at + lane] : NULL;
}

static void raise(struct iris_race_moment *to,
                  const struct iris_race_moment *from, uint32_t why)
{
    if (from->loose > to->loose) {
        to->loose = from->loose;
        to->why = why != 0 ? why : from->why;
    }
    if (why == 0 && from->strict > to->strict) {
        to->strict = from->strict;
    }
}

void iris_i_race_join(struct iris_race_memory *memory,
                      struct iris_race_clock *to,
                      const struct iris_race_clock *from, uint32_t why)
{
    uint32_t count = from->capacity < memory->shared->num_lanes
                         ? from->capacity
                         : memory->shared->num_lanes;

    if (from->at == 0 || !reserve(memory, to, count)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        raise(&memory->arena[to->at + i], &memory->arena[from->at + i], why);
    }
}

void iris_i_race_join_one(struct iris_race_memory *memory,
                          struct iris_race_clock *to, uint32_t lane,
                          uint32_t moment, uint32_t why)
{
    struct iris_race_moment from = {moment, moment, why};

    if (reserve(memory, to, lane + 1)) {
        raise(&memory->arena[to->at + lane], &from, why);
    }
}

void iris_i_race_clear(struct iris_race_memory *memory,
                       struct iris_race_clock *clock)
{
    give(memory, clock);
}

uint32_t iris_i_race_now(const struct iris_race_memory *memory, uint32_t lane)
{
    const struct iris_race_moment *own =
        iris_i_race_moment(memory, &memory->shared->lanes[lane].clock, lane);

    return own == NULL ? 0 : own->strict;
}

void iris_i_race_tick(struct iris_race_memory *memory, uint32_t lane)
{
    iris_i_race_join_one(memory, &memory->shared->lanes[lane].clock, lane,
                         iris_i_race_now(memory, lane) + 1, 0);
}

uint32_t iris_i_race_edge(struct iris_race_memory *memory,
                          const struct iris_race_edge *edge)
{
    struct iris_race_shared *shared = memory->shared;
    uint32_t i;

    if (edge->lack == IRIS_RACE_LACKS_NOTHING) {
        return 0;
    }
    for (i = 1; i < shared->num_edges; i++) {
        if (shared->edges[i].lack == edge->lack &&
            shared->edges[i].release == edge->release &&
            shared->edges[i].acquire == edge->acquire) {
            return i;
        }
    }
    if (i == IRIS_RACE_EDGES) {
        return i - 1;
    }
    shared->edges[i] = *edge;
    shared->num_edges++;
    return i;
}

bool iris_i_race_spans(const struct iris_race_shared *shared,
                       iris_scope_t scope, uint32_t lane, uint32_t other)
{
    return scope == IRIS_SCOPE_WG ? lane == other
           : scope == IRIS_SCOPE_AGENT
               ? shared->lanes[lane].rank == shared->lanes[other].rank
               : true;
}
