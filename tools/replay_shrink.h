/* SPDX-License-Identifier: MIT
 *
 * Makes a schedule short while the failure stays.
 */
#ifndef IRIS_TOOLS_REPLAY_SHRINK_H
#define IRIS_TOOLS_REPLAY_SHRINK_H

#include "replay_run.h"

/* *result is a run with the failure; afterwards it is the shortest run that was
 * found, and the latest that was made. *runs_p: how many it took. 0; 1: the
 * failure did not come again under the short schedule; -1: a message has been
 * printed. */
int replay_shrink(const struct replay_program *program, const char *failure,
                  struct replay_result *result, unsigned *runs_p);

#endif /* IRIS_TOOLS_REPLAY_SHRINK_H */
