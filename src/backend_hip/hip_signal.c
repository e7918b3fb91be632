/* SPDX-License-Identifier: MIT
 *
 * Signals and waits that streams do without a kernel, if the runtime's queues
 * can (HIP_QUEUE_WAITS).
 */
#include "config.h"

#include "backend_hip/internal.h"

/* Lists the wait before the stream gets it, so that a fault finds it. */
static iris_status_t do_wait(struct hip_stream *stream, void *what)
{
    struct hip_backend *hip = stream->hip;
    struct hip_wait *wait = what;
    hipError_t error;

    if (stream->capturing || !iris_i_hip_list_wait(stream, wait)) {
        return IRIS_ERR_UNSUPPORTED;
    }
    error = hipStreamWaitValue64(
        stream->native, wait->place, wait->value,
        wait->cmp == IRIS_CMP_EQ ? hipStreamWaitValueEq : hipStreamWaitValueGte,
        UINT64_MAX);
    if (error != hipSuccess) {
        iris_i_hip_unlist_wait(stream);
    }
    return error == hipErrorNotSupported
               ? IRIS_ERR_UNSUPPORTED
               : iris_i_hip_fail(hip, error, "a wait at %p",
                                 (void *)wait->place);
}

struct signal {
    uint64_t *place;
    uint64_t value;
};

static iris_status_t do_signal(struct hip_stream *stream, void *what)
{
    const struct signal *signal = what;
    hipError_t error = hipSuccess;

    if (stream->capturing) {
        return IRIS_ERR_UNSUPPORTED;
    }
    error =
        hipStreamWriteValue64(stream->native, signal->place, signal->value, 0);
    return iris_i_hip_fail(stream->hip, error, "a signal at %p",
                           (void *)signal->place);
}

iris_status_t iris_i_hip_signal(struct iris_stream *stream, uint64_t *place,
                                uint64_t value)
{
    struct signal signal = {place, value};

    return HIP_QUEUE_WAITS ? iris_i_hip_enqueue(stream, 1, do_signal, &signal)
                           : IRIS_ERR_UNSUPPORTED;
}

/* GE compares the signed difference with 0. That equals an unsigned comparison
 * with the awaited value as long as the value is below 2^63. */
iris_status_t iris_i_hip_wait(struct iris_stream *stream, uint64_t *place,
                              iris_cmp_t cmp, uint64_t value)
{
    struct hip_wait wait = {.place = place, .cmp = cmp, .value = value};

    return HIP_QUEUE_WAITS && (cmp == IRIS_CMP_EQ ||
                               (cmp == IRIS_CMP_GE && value <= INT64_MAX))
               ? iris_i_hip_enqueue(stream, 1, do_wait, &wait)
               : IRIS_ERR_UNSUPPORTED;
}
