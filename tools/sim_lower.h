/* SPDX-License-Identifier: MIT
 *
 * A collective as a schedule: every message of every rank.
 */
#ifndef IRIS_TOOLS_SIM_LOWER_H
#define IRIS_TOOLS_SIM_LOWER_H

#include "sim_collective.h"
#include "sim_schedule.h"

/* Makes the steps of `plan`, which is sim_plan() of the call: a direct
 * exchange, or two of them. `hierarchical` is an all_reduce that the library
 * does not have. Each node reduces and scatters its data. Ranks with the same
 * place in their nodes combine theirs by recursive halving and doubling
 * (Thakur, Rabenseifner and Gropp, IJHPCA 2005). Last, each node gathers. The
 * number of nodes must then be a power of 2. Returns 0, or -1 after printing a
 * message. The caller frees the schedule. */
int sim_lower(const struct sim_platform *platform, const struct sim_call *call,
              const struct sim_plan *plan, int hierarchical,
              struct sim_schedule *schedule_p);

#endif /* IRIS_TOOLS_SIM_LOWER_H */
