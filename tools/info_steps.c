/* SPDX-License-Identifier: MIT
 *
 * The steps that a rank enqueues for a fused operation. The call is captured,
 * or stopped before it runs, and an observer records it.
 */
#include "config.h"

#include "info_explain.h"
#include "info_hold.h"

#include <stdio.h>
#include <time.h>

#include "backend/calls.h"
#include "context/context_type.h"
#include "ops/ops_check.h"

static void observe(void *self, const struct iris_host_event *event)
{
    struct explain_steps *steps = self;
    int counts = event->op == IRIS_HOST_LAUNCH || event->op == IRIS_HOST_COPY ||
                 event->op == IRIS_HOST_COLLECTIVE;

    if (counts && !event->after && steps->count < INFO_MAX_STEPS) {
        steps->events[steps->count++] = *event;
    }
}

static iris_status_t matrix(iris_t *iris, iris_dtype_t dtype, int64_t rows,
                            int64_t columns, int64_t most,
                            iris_tensor_t *matrix_p)
{
    /* All ranks allocate the number of rows of the largest share. */
    size_t bytes = (size_t)(most * columns) * iris_dtype_size(dtype);
    void *memory = NULL;
    iris_status_t status = iris_malloc(iris, bytes, &memory);

    *matrix_p = (iris_tensor_t){.data = memory,
                                .dtype = dtype,
                                .ndim = 2,
                                .shape = {rows, columns},
                                .strides = {columns, 1}};
    return status;
}

static iris_status_t call(iris_t *iris, const struct explain_request *request,
                          const iris_tensor_t *tensors,
                          const struct iris_ops_options *options)
{
    return request->operation->call(iris, &tensors[0], &tensors[1], &tensors[2],
                                    options);
}

/* Keeps the kernel from its load until the call is enqueued, and then stops the
 * stream, so that nothing of the call runs. */
static iris_status_t refuse(void *self, const struct iris_cpu_event *event)
{
    const struct timespec nap = {.tv_nsec = 50000};
    struct explain_steps *steps = self;

    (void)event;
    while (!atomic_load(&steps->is_enqueued)) {
        nanosleep(&nap, NULL);
    }
    return IRIS_ERR_INTERRUPTED;
}

/* Where there are no graphs, on a CPU: enqueues the call behind a kernel that
 * stops the stream. */
static iris_status_t enqueue(iris_t *iris,
                             const struct explain_request *request,
                             const iris_tensor_t *tensors,
                             const struct iris_ops_options *options,
                             struct explain_steps *steps)
{
    const struct iris_observer stop = {.device = refuse, .self = steps};
    iris_status_t status = iris_i_hooks_add(iris_i_hooks(iris), &stop), ended;
    char why[IRIS_MESSAGE_BYTES];

    if (status != IRIS_OK) {
        return status;
    }
    status = info_hold(iris, tensors[0].data);
    steps->count = 0;
    status = status == IRIS_OK ? call(iris, request, tensors, options) : status;
    snprintf(why, sizeof why, "%s", iris_last_error());
    atomic_store(&steps->is_enqueued, 1);
    ended = iris_stream_synchronize(iris, NULL);
    iris_i_hooks_remove(iris_i_hooks(iris), &stop);
    if (status != IRIS_OK) {
        return iris_i_fail(NULL, status, "%s", why);
    }
    return ended == IRIS_ERR_INTERRUPTED
               ? iris_i_device_clear_fault(iris_i_backend(iris))
               : ended;
}

static iris_status_t capture(iris_t *iris,
                             const struct explain_request *request,
                             const iris_tensor_t *tensors,
                             const struct iris_ops_options *options)
{
    iris_graph_t *graph = NULL;
    iris_status_t status = call(iris, request, tensors, options);
    iris_status_t ended = iris_capture_end(iris, NULL, &graph);

    iris_graph_destroy(iris, graph);
    return status != IRIS_OK ? status : ended;
}

iris_status_t info_explain_steps(iris_t *iris,
                                 const struct explain_request *request,
                                 const iris_tensor_t *tensors,
                                 const struct iris_ops_options *options,
                                 struct explain_steps *steps)
{
    const struct iris_observer observer = {.host = observe, .self = steps};
    iris_status_t status = iris_i_hooks_add(iris_i_hooks(iris), &observer);

    if (status != IRIS_OK) {
        return status;
    }
    status = iris_capture_begin(iris, NULL);
    if (status == IRIS_OK) {
        status = capture(iris, request, tensors, options);
    } else if (status == IRIS_ERR_UNSUPPORTED) {
        status = enqueue(iris, request, tensors, options, steps);
    }
    iris_i_hooks_remove(iris_i_hooks(iris), &observer);
    return status;
}

iris_status_t info_explain_prepare(iris_t *iris,
                                   const struct explain_request *request,
                                   iris_tensor_t *tensors,
                                   struct iris_ops_options *options)
{
    const struct explain_operation *operation = request->operation;
    struct iris_ops_call call = {.members = request->ranks};
    int64_t m = request->m;
    int64_t share = iris_i_ops_share(&call, m, iris_rank(iris)).rows;
    int64_t most = iris_i_ops_most(&call, m);
    iris_status_t status =
        matrix(iris, request->dtype, operation->shares_a ? share : m,
               request->k, operation->shares_a ? most : m, &tensors[0]);

    if (status == IRIS_OK) {
        status = matrix(iris, request->dtype, request->k, request->n,
                        request->k, &tensors[1]);
    }
    if (status == IRIS_OK) {
        status =
            matrix(iris, request->dtype, operation->shares_out ? share : m,
                   request->n, operation->shares_out ? most : m, &tensors[2]);
    }
    if (status == IRIS_OK) {
        status = iris_all_reduce_preamble(iris, NULL);
    }
    return status == IRIS_OK
               ? operation->preamble(iris, &tensors[0], &tensors[1],
                                     &tensors[2], options, &options->workspace)
               : status;
}
