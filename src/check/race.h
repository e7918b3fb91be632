/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=race: an observer that finds unordered accesses to the same place,
 * between all ranks of the job (docs/checking.md).
 */
#ifndef IRIS_SRC_CHECK_RACE_H
#define IRIS_SRC_CHECK_RACE_H

#include "heap/heap_parts.h"

struct iris_race;

struct iris_race_params {
    const struct iris_heap *heap; /* connected; without allocations */
    const void *default_stream;
    /* A number that is equal for groups of the same ranks in the same order. */
    uint64_t (*group_key)(const void *group);
    const char *prefix;       /* prefix of <prefix>_races.json; empty: no
                               * file */
    const char *suppressions; /* path of the file; empty: no file */
};

/* Starts the checker of this rank. Collective over the job. The caller keeps
 * the objects in `params` until iris_i_race_destroy(). Returns IRIS_ERR_LIMIT,
 * and the statuses of iris_i_race_suppressions_open() and
 * iris_i_race_memory_open(). */
iris_status_t iris_i_race_create(const struct iris_race_params *params,
                                 struct iris_race **race_p);

/* IRIS_ERR_RACE if any rank has found a race. Rank 0 writes the file. All ranks
 * have ended their work. `race` may be NULL: IRIS_OK. */
iris_status_t iris_i_race_verdict(struct iris_race *race);

/* No kernel of the context is running. `race` may be NULL. */
void iris_i_race_destroy(struct iris_race *race);

#endif /* IRIS_SRC_CHECK_RACE_H */
