/* SPDX-License-Identifier: MIT
 *
 * Accesses of programs compiled by `iriscc --check`: finding the checker.
 */
#ifndef IRIS_SRC_CHECK_RACE_PLAIN_H
#define IRIS_SRC_CHECK_RACE_PLAIN_H

#include "check/race_state.h"

/* From here to the end, this checker receives accesses by the process, too. */
void iris_i_race_plain_begin(struct iris_race *race);
void iris_i_race_plain_end(struct iris_race *race);

/* The calling thread's accesses outside kernels belong to this rank's host. */
void iris_i_race_plain_host(struct iris_race *race);

#endif /* IRIS_SRC_CHECK_RACE_PLAIN_H */
