/* SPDX-License-Identifier: MIT
 *
 * Runs a stream's commands other than kernels.
 */
#include "config.h"

#include "backend_sim/internal.h"

#include <string.h>

static void copy_rows(const struct iris_copy_rows *rows)
{
    for (size_t i = 0; i < rows->rows; i++) {
        memmove((char *)rows->dst + i * rows->dst_pitch,
                (const char *)rows->src + i * rows->src_pitch, rows->row_bytes);
    }
}

static void move(const struct sim_command *command)
{
    switch (command->kind) {
    case COMMAND_COPY:
        memmove(command->dst, command->src, command->bytes);
        break;
    case COMMAND_COPY_ROWS:
        copy_rows(&command->rows);
        break;
    case COMMAND_SET:
        memset(command->dst, command->value, command->bytes);
        break;
    default:
        break;
    }
}

/* The event of a command other than a kernel, for observers that watch
 * kernels. */
static struct iris_host_event event_of(struct sim_stream *stream,
                                       const struct sim_command *command)
{
    const struct iris_copy_rows *rows = &command->rows;
    struct iris_host_event event = {.op = IRIS_HOST_RUN_COPY,
                                    .rank = stream->sim->params.rank,
                                    .target_rank = -1,
                                    .stream = stream,
                                    .address = command->dst,
                                    .source = command->src,
                                    .bytes = command->bytes};

    if (command->kind == COMMAND_COPY_ROWS) {
        event.address = rows->dst;
        event.source = rows->src;
        event.bytes = rows->row_bytes;
        event.count = rows->rows;
        event.pitch = rows->dst_pitch;
        event.source_pitch = rows->src_pitch;
    } else if (command->kind == COMMAND_SET) {
        event.op = IRIS_HOST_RUN_SET;
    } else if (command->kind == COMMAND_MARK) {
        event.op = IRIS_HOST_RUN_MARK;
        event.source = command->follower;
    }
    return event;
}

void iris_i_sim_run_other(struct sim_stream *stream,
                          const struct sim_command *command)
{
    struct iris_hooks *hooks = stream->sim->params.hooks;
    struct iris_host_event event;

    if (command->kind == COMMAND_FOLLOW || !iris_i_hooks_watch_device(hooks)) {
        move(command);
        return;
    }
    event = event_of(stream, command);
    iris_i_hooks_before(hooks, &event);
    move(command);
    (void)iris_i_hooks_after(hooks, &event, IRIS_OK);
}
