/* SPDX-License-Identifier: MIT
 *
 * Whether a kernel's access is one it may make: a GPU would fault or corrupt,
 * the simulation says what is wrong. And what a kernel waited for that was
 * ended.
 */
#include "config.h"

#include "backend_sim/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What the address must be a multiple of; the bulk operations take any. */
static size_t alignment_of(const struct iris_cpu_event *event)
{
    switch (event->op) {
    case IRIS_OP_GET:
    case IRIS_OP_PUT:
    case IRIS_OP_COPY:
    case IRIS_OP_FENCE:
    case IRIS_OP_BARRIER:
        return 1;
    default:
        break;
    }
    if (event->bytes >= sizeof(uint64_t)) {
        return sizeof(uint64_t);
    }
    return event->bytes == 0 ? 1 : event->bytes;
}

iris_status_t iris_i_sim_check_access(const struct iris_cpu_wg *cpu,
                                      const struct iris_cpu_event *event)
{
    uintptr_t offset = (uintptr_t)event->address - (uintptr_t)cpu->heap_base;
    bool of_a_rank = event->op != IRIS_OP_FENCE && event->op != IRIS_OP_BARRIER;
    char why[160];

    if (of_a_rank && (uint32_t)event->target_rank >= (uint32_t)cpu->num_ranks) {
        snprintf(why, sizeof why,
                 "the rank is out of range; the job has ranks 0 to %d",
                 cpu->num_ranks - 1);
        return iris_i_fail_access(event, why);
    }
    if (iris_i_is_translated(event) &&
        (event->bytes > cpu->heap_bytes ||
         offset > cpu->heap_bytes - event->bytes)) {
        snprintf(why, sizeof why,
                 "that %s this rank's heap (%p, %zu bytes); pass this "
                 "rank's own pointer from iris_malloc",
                 offset < cpu->heap_bytes ? "goes past the end of"
                                          : "is not on",
                 (const void *)cpu->heap_base, cpu->heap_bytes);
        return iris_i_fail_access(event, why);
    }
    if ((uintptr_t)event->address % alignment_of(event) != 0) {
        snprintf(why, sizeof why,
                 "the address is misaligned; it must be a multiple of %zu",
                 alignment_of(event));
        return iris_i_fail_access(event, why);
    }
    return IRIS_OK;
}

/* ---- What a kernel waited for ---- */

static void __attribute__((format(printf, 2, 3)))
append(char message[IRIS_MESSAGE_BYTES], const char *format, ...)
{
    size_t used = strlen(message);
    va_list list;

    va_start(list, format);
    vsnprintf(message + used, IRIS_MESSAGE_BYTES - used, format, list);
    va_end(list);
}

/* " in a barrier for the value at 0x7f... (heap offset 64) to be >= 1 ..." */
static void append_wait(const struct iris_backend_params *params,
                        const struct iris_cpu_wg *ended,
                        char message[IRIS_MESSAGE_BYTES])
{
    char late[64] = "";
    size_t offset =
        (size_t)((uintptr_t)ended->wait_address - (uintptr_t)ended->heap_base);

    append(message, "%s for the value at %p (",
           ended->wait_op == IRIS_OP_BARRIER ? " in a barrier" : "",
           ended->wait_address);
    if (offset < ended->heap_bytes) {
        append(message, "heap offset %zu", offset);
    } else {
        append(message, "not on this rank's heap");
    }
    append(message, ") to be %s %lld and last saw %lld",
           iris_i_cmp_name(ended->wait_cmp), (long long)ended->wait_value,
           (long long)ended->wait_seen);
    if (ended->wait_op == IRIS_OP_BARRIER) {
        params->core_ops->describe_late(params->core, ended->wait_address, late,
                                        sizeof late);
    }
    append(message, "%s%s", late[0] == '\0' ? "" : ": ", late);
}

void iris_i_sim_describe_stop(const struct sim_stream *stream, bool finished,
                              char message[IRIS_MESSAGE_BYTES])
{
    const struct iris_cpu_wg *ended = &stream->ended;

    memcpy(message, stream->stop_message, IRIS_MESSAGE_BYTES);
    if (stream->num_ended > 0 &&
        atomic_load(&stream->stop) != IRIS_ERR_INVALID) {
        append(message, "; kernel %s: workgroup %u waited", ended->kernel,
               ended->workgroup);
        if (ended->wait_address != NULL) {
            append_wait(&stream->params, ended, message);
        }
    }
    if (stream->num_ended > 0) {
        append(message, "; workgroups ended: %u", stream->num_ended);
    }
    if (!finished && stream->running != NULL) {
        append(message,
               "; %s still runs: it does not wait by iris_wait_until() or the "
               "like, so it cannot be ended",
               stream->running);
    }
}
