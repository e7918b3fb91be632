/* SPDX-License-Identifier: MIT
 *
 * Launching kernels: checks, then the backend.
 */
#include "config.h"

#include <iris/launch.h>

#include "context/context.h"
#include "base/log.h"
#include "queue/stream.h"

static iris_status_t check(const iris_t *iris, const struct iris_kernel *kernel,
                           const struct iris_launch *launch, size_t args_bytes)
{
    if (kernel == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_launch: kernel is NULL; pass what IRIS_KERNEL "
                           "defined");
    }
    if (kernel->version != IRIS_KERNEL_VERSION) {
        return iris_i_fail(&iris->log, IRIS_ERR_UNSUPPORTED,
                           "iris_launch: kernel %s was compiled with Iris "
                           "headers of another version (kernels of version "
                           "%zu, this library takes %d); recompile it",
                           kernel->name, kernel->version, IRIS_KERNEL_VERSION);
    }
    if (launch->grid == 0 || launch->block == 0 ||
        launch->block > IRIS_LAUNCH_BLOCK_MAX) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_launch of kernel %s: grid %u, block %u; both "
                           "must be at least 1, block at most %d",
                           kernel->name, launch->grid, launch->block,
                           IRIS_LAUNCH_BLOCK_MAX);
    }
    if (args_bytes != kernel->args_bytes || args_bytes > IRIS_LAUNCH_ARGS_MAX) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "iris_launch of kernel %s: args_bytes is %zu, its "
            "argument struct has %zu (at most %d); pass sizeof the "
            "struct",
            kernel->name, args_bytes, kernel->args_bytes, IRIS_LAUNCH_ARGS_MAX);
    }
    if (launch->args == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_launch of kernel %s: args is NULL; pass its "
                           "argument struct",
                           kernel->name);
    }
    return IRIS_OK;
}

iris_status_t iris_launch(iris_t *iris, const struct iris_kernel *kernel,
                          unsigned grid, unsigned block, const void *args,
                          size_t args_bytes, iris_stream_t *stream)
{
    struct iris_launch launch = {
        .kernel = kernel, .grid = grid, .block = block, .args = args};
    iris_status_t status = iris_i_enter(iris, "iris_launch");

    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_stream_resolve(iris, stream, &stream);
    if (status == IRIS_OK) {
        status = check(iris, kernel, &launch, args_bytes);
    }
    if (status == IRIS_OK) {
        status = iris_i_queue_launch(stream, &launch);
    }
    return iris_i_fail_on(&iris->log, status);
}
