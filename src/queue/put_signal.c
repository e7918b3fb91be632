/* SPDX-License-Identifier: MIT
 *
 * A put and its signal in one call, on a stream.
 */
#include "config.h"

#include <iris/heap.h>

#include "base/log.h"
#include "context/context.h"
#include "queue/kernels.h"
#include "queue/stream.h"

/* All that can be wrong with the signal, so that a put is not enqueued whose
 * signal would be refused then. */
static iris_status_t check(iris_t *iris, const uint64_t *signal,
                           iris_signal_op_t signal_op, int to_rank,
                           iris_stream_t *stream)
{
    iris_status_t status = iris_i_stream_resolve(iris, stream, &stream);
    void *remote;

    if (status != IRIS_OK) {
        return status;
    }
    if (signal_op != IRIS_SIGNAL_SET && signal_op != IRIS_SIGNAL_ADD) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_put_signal_on_stream: signal_op %d is none; "
                           "pass IRIS_SIGNAL_SET or IRIS_SIGNAL_ADD",
                           (int)signal_op);
    }
    if ((uintptr_t)signal % sizeof *signal != 0 ||
        !iris_is_symmetric(iris, signal)) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_put_signal_on_stream: signal %p is not an "
                           "aligned uint64_t on this rank's heap; pass one "
                           "from iris_calloc",
                           (const void *)signal);
    }
    return iris_as_remote(iris, signal, to_rank, &remote);
}

iris_status_t iris_put_signal_on_stream(iris_t *iris, void *dst,
                                        const void *src, size_t bytes,
                                        uint64_t *signal, uint64_t value,
                                        iris_signal_op_t signal_op, int to_rank,
                                        iris_stream_t *stream)
{
    iris_status_t status = iris_i_enter(iris, "iris_put_signal_on_stream");

    if (status == IRIS_OK) {
        status = check(iris, signal, signal_op, to_rank, stream);
    }
    if (status == IRIS_OK && bytes != 0) {
        status = iris_put_on_stream(iris, dst, src, bytes, to_rank, stream);
    }
    if (status != IRIS_OK) {
        return status;
    }
    return signal_op == IRIS_SIGNAL_ADD
               ? iris_i_kernel_signal_add(iris, signal, value, to_rank, stream)
               : iris_signal_on_stream(iris, signal, value, to_rank, stream);
}
