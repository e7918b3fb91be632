/* SPDX-License-Identifier: MIT
 *
 * Going on after a loss: the survivors keep their contexts, with new numbers.
 *
 *   revoke   all waits of the job end, and every living rank calls iris_shrink()
 *   end      this rank's kernels end, and its fault is cleared
 *   agree    the ranks that are left (control/shrink.c)
 *   renew    the control plane, the heaps of the survivors, the device context and
 *            the group of all ranks restart; other groups and graphs are gone
 *   meet     all survivors have renewed theirs, and their heaps are the same
 *
 * - A rank writes to others only between two meetings, so no rank finds a counter of
 *   a barrier or a collective that has not restarted. No fence in the words of flags
 *   is needed: the work of a survivor has ended before it agrees, and a rank counts
 *   as gone only after its own work has ended.
 * - A rank that is lost before the survivors have met starts another round, in which
 *   the ranks that had returned take part by their next iris_shrink().
 */
#include "config.h"

#include "context/internal.h"

#include "base/base.h"
#include "context/context.h"
#include "control/control.h"
#include "heap/heap.h"
#include "queue/queue.h"

#include <string.h>

static const struct iris_call_type shrink_call = {
    .name = "iris_shrink",
    .fields = {{.name = "allocations"}, {.name = "layout"}},
};

/* Refuses jobs that cannot shrink, on every rank alike. */
static iris_status_t check_support(const iris_t *iris)
{
    const char *why = NULL;

    if (iris->heap.memory.num_nodes > 1) {
        why = "ranks of several nodes share no table to agree in; restart the "
              "job";
    } else if (iris->race != NULL || iris->weak != NULL) {
        why = "IRIS_CHECK=race and weak know a fixed number of ranks; unset it";
    } else if (iris->extensions[IRIS_EXTENSION_TRACE] != NULL) {
        why = "a trace records a fixed number of ranks; write it and call "
              "iris_trace_disable first, and unset IRIS_TRACE";
    }
    return why == NULL ? IRIS_OK
                       : iris_i_fail(&iris->log, IRIS_ERR_UNSUPPORTED,
                                     "iris_shrink: %s", why);
}

/* The waits of kernels end, since the job is revoked. */
static iris_status_t end_work(iris_t *iris)
{
    iris_status_t status;

    (void)iris_i_stream_synchronize_all(&iris->queue);
    status = iris_clear_error(iris);
    return status == IRIS_OK ? iris_i_stream_synchronize_all(&iris->queue)
                             : status;
}

/* Ends the parts that belong to the former ranks. */
static void drop_ranks(iris_t *iris)
{
    struct iris_extension *ops = iris->extensions[IRIS_EXTENSION_OPS];

    iris_i_group_shrink(iris);
    if (ops != NULL) {
        ops->shrink(ops, iris);
        iris_i_extension_close(ops);
        iris->extensions[IRIS_EXTENSION_OPS] = NULL;
    }
    iris_i_queue_outdate_graphs(&iris->queue);
}

/* The device context and the group of all ranks, as at the start. */
static iris_status_t renew_device(iris_t *iris)
{
    iris_status_t status = iris_i_layout_write_context(iris);

    if (status == IRIS_OK) {
        status = iris_i_group_write_device(iris, iris->world);
    }
    return status == IRIS_OK ? iris_i_write_bases(iris) : status;
}

/* Gives the survivors their new numbers. *former: the first numbers of the
 * ranks. */
static iris_status_t renumber_ranks(iris_t *iris, const uint64_t *survivors,
                                    int *former)
{
    int kept = 0;
    iris_status_t status;

    iris_i_recorder_close(iris);
    status = iris_i_control_renew(iris->control, survivors);
    if (status == IRIS_OK) {
        iris_i_heap_shrink(&iris->heap, survivors);
        for (int rank = 0; rank < iris->log.num_ranks; rank++) {
            if (iris_i_has_survived(survivors, rank)) {
                former[kept++] = former[rank];
            }
        }
        iris->log.rank = iris->control->rank;
        iris->log.num_ranks = kept;
        iris_i_device_renumber(iris->backend, iris->log.rank, kept);
    }
    if (iris_i_recorder_open(iris) != IRIS_OK) {
        iris_i_warning(&iris->log, "no flight record: %s", iris_last_error());
    }
    return status;
}

/* One round. */
static iris_status_t shrink_once(iris_t *iris, int *former)
{
    struct iris_call call = {.type = &shrink_call};
    uint64_t survivors[IRIS_SURVIVOR_WORDS];
    iris_status_t status;

    iris_i_control_revoke(iris->control);
    status = end_work(iris);
    if (status == IRIS_OK) {
        status = iris_i_control_agree_on_survivors(iris->control, survivors);
    }
    if (status == IRIS_OK) {
        status = renumber_ranks(iris, survivors, former);
    }
    if (status != IRIS_OK) {
        return status;
    }
    drop_ranks(iris);
    call.status = renew_device(iris);
    iris_i_heap_digest(&iris->heap, call.fields);
    return iris_i_agree(&iris->world->members, &call);
}

iris_status_t iris_shrink(iris_t *iris, int *former_ranks)
{
    iris_status_t status = iris_i_enter(iris, "iris_shrink");
    int count = status == IRIS_OK ? iris->log.num_ranks : 0;
    int former[count + 1];

    if (status == IRIS_OK) {
        status = iris_i_peers_interrupted(iris->control)
                     ? iris_i_peers_check_all(iris->control)
                     : check_support(iris);
    }
    if (status != IRIS_OK) {
        return status;
    }
    for (int rank = 0; rank < count; rank++) {
        former[rank] = rank;
    }
    do {
        status = shrink_once(iris, former);
    } while (status == IRIS_ERR_PEER_LOST || status == IRIS_ERR_REVOKED);
    if (status != IRIS_OK && status != IRIS_ERR_STATE) {
        iris_i_peers_leave(iris->control, iris_last_error());
    }
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_control_drop_old(iris->control);
    iris_i_agree_reset(iris->control);
    if (former_ranks != NULL) {
        memcpy(former_ranks, former,
               (size_t)iris->log.num_ranks * sizeof former[0]);
    }
    return IRIS_OK;
}

iris_status_t iris_revoke(iris_t *iris)
{
    iris_status_t status = iris_i_enter(iris, "iris_revoke");

    if (status == IRIS_OK) {
        iris_i_control_revoke(iris->control);
    }
    return status;
}
