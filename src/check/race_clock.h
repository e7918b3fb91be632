/* SPDX-License-Identifier: MIT
 *
 * Vector clocks: the operations that happen before a lane's next one.
 */
#ifndef IRIS_SRC_CHECK_RACE_CLOCK_H
#define IRIS_SRC_CHECK_RACE_CLOCK_H

#include "check/race_memory.h"

/* A clock's users exclude each other: by the lock, or by the word's or lane's. */

/* The moment of a lane; NULL: the clock does not contain it. */
static inline struct iris_race_moment *
iris_i_race_moment(const struct iris_race_memory *memory,
                   const struct iris_race_clock *clock, uint32_t lane)
{
    return lane < clock->capacity ? &memory->arena[clock->at + lane] : NULL;
}

/* Adds the contents of `from`. For an edge that lacks something (`why` is not
 * 0), adds only loose moments. */
void iris_i_race_join(struct iris_race_memory *memory,
                      struct iris_race_clock *to,
                      const struct iris_race_clock *from, uint32_t why);

/* The same for one lane's moment. */
void iris_i_race_join_one(struct iris_race_memory *memory,
                          struct iris_race_clock *to, uint32_t lane,
                          uint32_t moment, uint32_t why);

/* Empties the clock, which keeps its room. */
void iris_i_race_clear(struct iris_race_memory *memory,
                       struct iris_race_clock *clock);

/* Gives its room back. */
void iris_i_race_free(struct iris_race_memory *memory,
                      struct iris_race_clock *clock);

/* A lane's own time, and its next time. A new time separates its operations so
 * far from the later ones. */
static inline uint32_t iris_i_race_now(const struct iris_race_memory *memory,
                                       uint32_t lane)
{
    const struct iris_race_moment *own =
        iris_i_race_moment(memory, &memory->shared->lanes[lane].clock, lane);

    return own == NULL ? 0 : own->strict;
}
void iris_i_race_tick(struct iris_race_memory *memory, uint32_t lane);

/* The number of an edge that lacks something; 0 if it lacks nothing. */
uint32_t iris_i_race_edge(struct iris_race_memory *memory,
                          const struct iris_race_edge *edge);

/* Whether the scope of an atomic by `lane` includes the other lane. */
bool iris_i_race_spans(const struct iris_race_shared *shared,
                       iris_scope_t scope, uint32_t lane, uint32_t other);

#endif /* IRIS_SRC_CHECK_RACE_CLOCK_H */
