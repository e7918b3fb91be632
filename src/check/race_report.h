/* SPDX-License-Identifier: MIT
 *
 * What races were found, each once; what is missing, and where.
 */
#ifndef IRIS_SRC_CHECK_RACE_REPORT_H
#define IRIS_SRC_CHECK_RACE_REPORT_H

#include "check/race_state.h"

/* iris_race_tell_t, with the struct iris_race as its argument. */
void iris_i_race_note(void *race, const struct iris_race_access *before,
                      const struct iris_race_access *now, int rank,
                      size_t offset);

/* Logs those that this rank has found and not logged. Without the lock. */
void iris_i_race_print(struct iris_race *race);

#define IRIS_RACE_LINE_BYTES 160

/* The texts of a race. */
struct iris_race_story {
    char place[256];
    char accesses[2][320]; /* the earlier, the later */
    const char *missing;   /* "release" */
    char lack[320];        /* what to change */
};

/* May take some 10 ms: without the lock. */
void iris_i_race_tell(const struct iris_race *race,
                      const struct iris_race_found *found,
                      struct iris_race_story *story_p);

#endif /* IRIS_SRC_CHECK_RACE_REPORT_H */
