/* SPDX-License-Identifier: MIT
 *
 * Accesses of programs compiled by `iriscc --check`: which checker they are for.
 */
#ifndef IRIS_SRC_CHECK_RACE_PLAIN_H
#define IRIS_SRC_CHECK_RACE_PLAIN_H

#include "check/race_state.h"

/* From here to the end, accesses by the process are for this checker, too. */
void iris_i_race_plain_begin(struct iris_race *race);
void iris_i_race_plain_end(struct iris_race *race);

/* What the calling thread does outside of kernels is this rank's host's. */
void iris_i_race_plain_host(struct iris_race *race);

#endif /* IRIS_SRC_CHECK_RACE_PLAIN_H */
