/* SPDX-License-Identifier: MIT
 *
 * The files of races: <prefix>_races.json, and <prefix>_races.sarif for code
 * hosts and editors.
 */
#ifndef IRIS_SRC_CHECK_RACE_FILE_H
#define IRIS_SRC_CHECK_RACE_FILE_H

#include "check/race_state.h"

/* Writes both, with all races; a warning if it cannot. */
void iris_i_race_write_file(const struct iris_race *race);

#endif /* IRIS_SRC_CHECK_RACE_FILE_H */
