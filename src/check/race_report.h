/* SPDX-License-Identifier: MIT
 *
 * The races found, each once, with the missing order and its place.
 */
#ifndef IRIS_SRC_CHECK_RACE_REPORT_H
#define IRIS_SRC_CHECK_RACE_REPORT_H

#include "check/race_state.h"

/* iris_race_tell_t, with the struct iris_race as its argument. */
void iris_i_race_note(void *race, const struct iris_race_access *before,
                      const struct iris_race_access *now, int rank,
                      size_t offset);

/* Logs the races that this rank has found and not logged yet. The lock is not
 * held. */
void iris_i_race_print(struct iris_race *race);

#define IRIS_RACE_LINE_BYTES 160

/* The texts of a race. */
struct iris_race_story {
    char place[256];
    char accesses[2][320]; /* the earlier one, the later one */
    const char *missing;   /* "release" */
    char lack[320];        /* the necessary change */
};

/* May take about 10 ms. The lock is not held. */
void iris_i_race_tell(const struct iris_race *race,
                      const struct iris_race_found *found,
                      struct iris_race_story *story_p);

#endif /* IRIS_SRC_CHECK_RACE_REPORT_H */
