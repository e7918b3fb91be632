/* SPDX-License-Identifier: MIT
 *
 * Whether a kernel's access is one it may make: a GPU would fault or corrupt,
 * a CPU says what is wrong.
 */
#include "config.h"

#include "backend/workgroup.h"

#include <stdio.h>

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

iris_status_t iris_i_check_access(const struct iris_cpu_wg *cpu,
                                  const struct iris_cpu_event *event)
{
    uintptr_t offset = (uintptr_t)event->address - (uintptr_t)cpu->heap_base;
    bool of_a_rank = event->op != IRIS_OP_FENCE && event->op != IRIS_OP_BARRIER;
    char why[160];

    if (of_a_rank && (uint32_t)event->target_rank >= (uint32_t)cpu->num_ranks) {
        snprintf(why, sizeof why,
                 "the rank is out of range; the job has ranks 0 to %d",
                 cpu->num_ranks - 1);
        return iris_i_fail_access(event, IRIS_ERR_INVALID, why);
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
        return iris_i_fail_access(event, IRIS_ERR_INVALID, why);
    }
    if ((uintptr_t)event->address % alignment_of(event) != 0) {
        snprintf(why, sizeof why,
                 "the address is misaligned; it must be a multiple of %zu",
                 alignment_of(event));
        return iris_i_fail_access(event, IRIS_ERR_INVALID, why);
    }
    return IRIS_OK;
}
