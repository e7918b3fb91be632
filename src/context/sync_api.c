/* SPDX-License-Identifier: MIT
 *
 * Barriers and broadcast from the host.
 */
#include "config.h"

#include "context/context.h"

#include <iris/sync.h>

#include "heap/heap.h"
#include "queue/kernels.h"
#include "queue/queue.h"

#include <string.h>

static const struct iris_call_type barrier_call = {.name = "iris_barrier"};
static const struct iris_call_type broadcast_call = {
    .name = "iris_broadcast",
    .fields = IRIS_BROADCAST_FIELDS,
};

static struct iris_host_event event_of(const iris_t *iris, enum iris_host_op op,
                                       const iris_group_t *group)
{
    struct iris_host_event event = {
        .op = op, .rank = iris->log.rank, .target_rank = -1, .group = group};

    return event;
}

/* All ranks make this call together, so deferred frees may follow. */
static iris_status_t agree_and_free(iris_t *iris, struct iris_call *call)
{
    struct iris_deferred_plan plan;
    iris_status_t status;

    iris_i_deferred_post(&iris->heap, call, &plan);
    status = iris_i_agree(&iris->world->members, call);
    if (status == IRIS_OK) {
        iris_i_deferred_judge(&iris->heap, &plan);
        (void)iris_i_deferred_follow(&iris->heap, &plan);
    }
    return status;
}

static iris_status_t barrier(iris_t *iris, iris_stream_t *stream,
                             struct iris_group *group)
{
    struct iris_call call = {.type = &barrier_call};

    iris_i_agree_begin(iris->control, call.type);
    call.status = iris_i_stream_resolve(&iris->queue, stream, &stream);
    if (call.status == IRIS_OK) {
        call.status = iris_i_stream_synchronize(&iris->queue, stream);
    }
    return group == iris->world ? agree_and_free(iris, &call)
                                : iris_i_agree(&group->members, &call);
}

iris_status_t iris_barrier(iris_t *iris, iris_stream_t *stream,
                           iris_group_t *group)
{
    struct iris_host_event event;
    iris_status_t status =
        iris_i_group_enter(iris, "iris_barrier", group, &group);

    if (status != IRIS_OK) {
        return status;
    }
    event = event_of(iris, IRIS_HOST_BARRIER, group);
    iris_i_hooks_before(&iris->hooks, &event);
    return iris_i_hooks_after(&iris->hooks, &event,
                              barrier(iris, stream, group));
}

iris_status_t iris_device_barrier(iris_t *iris, iris_stream_t *stream,
                                  iris_group_t *group)
{
    struct iris_host_event event;
    iris_status_t status =
        iris_i_group_enter(iris, "iris_device_barrier", group, &group);

    if (status == IRIS_OK && !iris_i_group_is_far(iris, group)) {
        status =
            iris_i_group_check_reachable(iris, group, "iris_device_barrier");
    }
    if (status != IRIS_OK) {
        return status;
    }
    event = event_of(iris, IRIS_HOST_BARRIER, group);
    event.stream = stream == NULL ? iris->queue.streams : stream;
    iris_i_hooks_before(&iris->hooks, &event);
    return iris_i_hooks_after(
        &iris->hooks, &event,
        iris_i_kernel_barrier(&iris->queue, group->device, stream));
}

static iris_status_t check_broadcast(const iris_t *iris, const void *data,
                                     size_t bytes, int root,
                                     const struct iris_group *group)
{
    iris_status_t status =
        iris_i_group_check_root(iris, group, "iris_broadcast", root);

    if (status != IRIS_OK) {
        return status;
    }
    if (bytes > PTRDIFF_MAX) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_broadcast: %zu bytes are more than memory can "
                           "hold; check the size",
                           bytes);
    }
    if (data == NULL && bytes != 0) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "iris_broadcast: data is NULL; pass memory of %zu bytes", bytes);
    }
    return IRIS_OK;
}

iris_status_t iris_broadcast(iris_t *iris, void *data, size_t bytes, int root,
                             iris_group_t *group)
{
    struct iris_call call = {.type = &broadcast_call};
    struct iris_host_event event;
    iris_status_t status =
        iris_i_group_enter(iris, "iris_broadcast", group, &group);

    if (status != IRIS_OK) {
        return status;
    }
    call.status = check_broadcast(iris, data, bytes, root, group);
    event = event_of(iris, IRIS_HOST_BROADCAST, group);
    event.address = data;
    event.bytes = bytes;
    event.target_rank = call.status == IRIS_OK ? group->ranks[root] : -1;
    iris_i_hooks_before(&iris->hooks, &event);
    return iris_i_hooks_after(
        &iris->hooks, &event,
        iris_i_group_broadcast(group, &call, data, bytes, root));
}
