/* SPDX-License-Identifier: MIT
 *
 * Launching kernels: checks, then the backend.
 */
#include "config.h"

#include "queue/queue.h"

#include "queue/kernels.h"

static iris_status_t check(const struct iris_queue *queue,
                           const struct iris_launch_request *launch)
{
    const struct iris_kernel *kernel = launch->kernel;

    if (kernel == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_launch: kernel is NULL; pass a kernel that "
                           "IRIS_KERNEL defined");
    }
    if (kernel->version != IRIS_KERNEL_VERSION) {
        return iris_i_fail(queue->log, IRIS_ERR_UNSUPPORTED,
                           "iris_launch: kernel %s was compiled with Iris "
                           "headers of another version (kernels of version "
                           "%zu, this library takes %d); recompile it",
                           kernel->name, kernel->version, IRIS_KERNEL_VERSION);
    }
    if (kernel->name == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_launch: the kernel has no name; pass one that "
                           "IRIS_KERNEL defined");
    }
    if (launch->grid == 0 || launch->block == 0 ||
        launch->block > IRIS_LAUNCH_BLOCK_MAX) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_launch of kernel %s: grid %u, block %u; both "
                           "must be at least 1, block at most %d",
                           kernel->name, launch->grid, launch->block,
                           IRIS_LAUNCH_BLOCK_MAX);
    }
    if (launch->args_bytes != kernel->args_bytes ||
        launch->args_bytes > IRIS_LAUNCH_ARGS_MAX) {
        return iris_i_fail(
            queue->log, IRIS_ERR_INVALID,
            "iris_launch of kernel %s: args_bytes is %zu, its "
            "argument struct has %zu (at most %d); pass sizeof the "
            "struct",
            kernel->name, launch->args_bytes, kernel->args_bytes,
            IRIS_LAUNCH_ARGS_MAX);
    }
    if (launch->args == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_launch of kernel %s: args is NULL; pass its "
                           "argument struct",
                           kernel->name);
    }
    return IRIS_OK;
}

const int64_t *iris_i_queue_context(const struct iris_queue *queue)
{
    return queue->context;
}

static iris_status_t launch(struct iris_queue *queue,
                            const struct iris_launch_request *request,
                            iris_stream_t *stream, uint64_t call)
{
    struct iris_launch launch = {.kernel = request->kernel,
                                 .grid = request->grid,
                                 .block = request->block,
                                 .args = request->args,
                                 .own = request->own,
                                 .call = call};
    iris_status_t status = iris_i_stream_resolve(queue, stream, &stream);

    if (status == IRIS_OK) {
        status = check(queue, request);
    }
    if (status == IRIS_OK) {
        status = iris_i_queue_launch(stream, &launch);
    }
    return iris_i_fail_on(queue->log, status);
}

iris_status_t iris_i_launch(struct iris_queue *queue,
                            const struct iris_launch_request *request,
                            iris_stream_t *stream)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_LAUNCH,
        .rank = queue->log->rank,
        .target_rank = -1,
        .stream = stream,
        .kernel = request->kernel == NULL ? NULL : request->kernel->name,
        .grid = request->grid,
        .block = request->block};

    iris_i_hooks_before(queue->hooks, &event);
    return iris_i_hooks_after(queue->hooks, &event,
                              launch(queue, request, stream, event.id));
}
