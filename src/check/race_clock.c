/* SPDX-License-Identifier: MIT
 *
 * Clocks are arrays in the arena, with capacities that are powers of two. Freed
 * ones are kept in lists by capacity.
 */
#include "config.h"

#include "check/internal.h"

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

/* Under the lock of the tables. */
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

/* Under the lock of the tables. 0: there is no room left. */
static uint32_t take(struct iris_race_memory *memory, unsigned log)
{
    struct iris_race_shared *shared = memory->shared;
    uint32_t at = shared->arena_free[log];

    if (at != 0) {
        shared->arena_free[log] = memory->arena[at].strict;
    } else if (shared->arena_used < UINT32_C(300000000)) {
        at = shared->arena_used;
        shared->arena_used += (uint32_t)1 << log;
    } else {
        atomic_store(&shared->blind, true);
    }
    return at;
}

/* Makes room for this number of moments; the new ones are 0. */
static bool reserve(struct iris_race_memory *memory,
                    struct iris_race_clock *clock, uint32_t count)
{
    struct iris_race_clock larger;

    if (count <= clock->capacity) {
        return true;
    }
    larger.capacity = (uint32_t)1 << log_of(count);
    iris_i_race_spin_lock(memory->shared, &memory->shared->tables);
    larger.at = take(memory, log_of(count));
    if (larger.at != 0) {
        memset(&memory->arena[larger.at], 0,
               larger.capacity * sizeof *memory->arena);
        memcpy(&memory->arena[larger.at], &memory->arena[clock->at],
               clock->capacity * sizeof *memory->arena);
        give(memory, clock);
        *clock = larger;
    }
    iris_i_race_spin_unlock(&memory->shared->tables);
    return larger.at != 0;
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
    uint32_t num_lanes = atomic_load(&memory->shared->num_lanes);
    uint32_t count = from->capacity < num_lanes ? from->capacity : num_lanes;

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
    memset(&memory->arena[clock->at], 0,
           clock->capacity * sizeof *memory->arena);
}

void iris_i_race_free(struct iris_race_memory *memory,
                      struct iris_race_clock *clock)
{
    iris_i_race_spin_lock(memory->shared, &memory->shared->tables);
    give(memory, clock);
    iris_i_race_spin_unlock(&memory->shared->tables);
}

void iris_i_race_tick(struct iris_race_memory *memory, uint32_t lane)
{
    iris_i_race_join_one(memory, &memory->shared->lanes[lane].clock, lane,
                         iris_i_race_now(memory, lane) + 1, 0);
}

/* The number of an equal edge, from number `i` on; the number of edges if no
 * edge is equal. */
static uint32_t find_edge(struct iris_race_shared *shared,
                          const struct iris_race_edge *edge, uint32_t i)
{
    uint32_t count = atomic_load(&shared->num_edges);

    while (i < count && (shared->edges[i].lack != edge->lack ||
                         shared->edges[i].release != edge->release ||
                         shared->edges[i].acquire != edge->acquire)) {
        i++;
    }
    return i;
}

uint32_t iris_i_race_edge(struct iris_race_memory *memory,
                          const struct iris_race_edge *edge)
{
    struct iris_race_shared *shared = memory->shared;
    uint32_t count = atomic_load(&shared->num_edges), i;

    if (edge->lack == IRIS_RACE_LACKS_NOTHING) {
        return 0;
    }
    i = find_edge(shared, edge, 1);
    if (i < count) {
        return i;
    }
    iris_i_race_spin_lock(shared, &shared->tables);
    i = find_edge(shared, edge, i);
    if (i == IRIS_RACE_EDGES) {
        i--;
    } else if (i == atomic_load(&shared->num_edges)) {
        shared->edges[i] = *edge;
        atomic_store(&shared->num_edges, i + 1);
    }
    iris_i_race_spin_unlock(&shared->tables);
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
