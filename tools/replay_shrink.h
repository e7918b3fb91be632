/* SPDX-License-Identifier: MIT
 *
 * Shortens a schedule while the failure stays.
 */
#ifndef IRIS_TOOLS_REPLAY_SHRINK_H
#define IRIS_TOOLS_REPLAY_SHRINK_H

#include "replay_run.h"

/* Takes a run with the failure in *result, and replaces it by the shortest run
 * that was found, repeated as the latest run. *runs_p is the number of runs.
 * Returns 0, 1 if the short schedule did not repeat the failure, or -1 after
 * printing a message. */
int replay_shrink(const struct replay_program *program, const char *failure,
                  struct replay_result *result, unsigned *runs_p);

#endif /* IRIS_TOOLS_REPLAY_SHRINK_H */
