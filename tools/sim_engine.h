/* SPDX-License-Identifier: MIT
 *
 * Runs a schedule on a platform, event by event.
 */
#ifndef IRIS_TOOLS_SIM_ENGINE_H
#define IRIS_TOOLS_SIM_ENGINE_H

#include "sim_network.h"
#include "sim_platform.h"
#include "sim_schedule.h"

/* The times at which a step could begin and was done, in us. For a send,
 * `arrival` is the time when all of it has reached the receiver. */
struct sim_times {
    double begin, end, arrival;
    double cost;  /* of a calc: the part that its release and atomics take */
    size_t cause; /* the step that it waited for last; SIM_NO_STEP: none */
    int is_done;
};

/* Intervals at the same time count once: a rank may have several tracks. */
struct sim_rank_figures {
    double end_us, compute_us, wait_us;
    double link_us;          /* its link sends */
    uint64_t sent, received; /* bytes */
};

struct sim_run {
    struct sim_times *times; /* of each step */
    struct sim_rank_figures *ranks;
    double us;
    size_t last;      /* the step that ended last; SIM_NO_STEP: no step */
    size_t num_stuck; /* steps that never ran: a deadlock */
};

/* Runs the schedule. `compute` is the factor of intervals between operations.
 * Messages between nodes go through `network`; if it is NULL, only the ranks'
 * ports limit them. Returns 0, or -1 without memory. */
int sim_engine_run(const struct sim_schedule *schedule,
                   const struct sim_platform *platform,
                   struct sim_network *network, double compute,
                   struct sim_run *run_p);
void sim_engine_free(struct sim_run *run);

#endif /* IRIS_TOOLS_SIM_ENGINE_H */
