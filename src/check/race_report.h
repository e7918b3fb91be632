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

/* Writes all of them to <prefix>_races.json; a warning if it cannot. */
void iris_i_race_write_file(struct iris_race *race);

#endif /* IRIS_SRC_CHECK_RACE_REPORT_H */
