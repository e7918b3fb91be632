/* SPDX-License-Identifier: MIT
 *
 * A command of a stream.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_COMMAND_H
#define IRIS_SRC_BACKEND_SIM_SIM_COMMAND_H

#include "backend_sim/sim.h"

/* Vector members of an argument struct may need this alignment. */
#define ARGS_ALIGNMENT 64

enum command_kind {
    COMMAND_COPY,
    COMMAND_COPY_ROWS,
    COMMAND_SET,
    COMMAND_LAUNCH,
    COMMAND_MARK,
    COMMAND_FOLLOW,
};

struct sim_command {
    struct sim_command *next;
    enum command_kind kind;
    void *dst;
    const void *src;
    int value;
    size_t bytes;
    struct iris_copy_rows rows;
    struct iris_cpu_job job;
    bool passed;                 /* FOLLOW: whether the mark was passed;
                                  * under the stream's lock */
    struct sim_stream *follower; /* MARK: the following stream, */
    struct sim_command *wait;    /* and its command */
    void *memory; /* the allocation around it: aligned_alloc() is slower than
                   * malloc() */
    _Alignas(ARGS_ALIGNMENT) unsigned char args[];
};

/* Runs a command that is not a launch, and tells observers that watch
 * kernels. */
void iris_i_sim_run_other(struct sim_stream *stream,
                          const struct sim_command *command);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_COMMAND_H */
