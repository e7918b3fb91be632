/* SPDX-License-Identifier: MIT
 *
 * The accesses of other nodes' ranks to the heap of a GPU. All go by one stream of
 * the proxy, which no kernel of the program uses: data by copies from pinned
 * memory, then a signal behind them. A copy of one aligned element of up to 8 bytes
 * arrives whole.
 *
 * An update of a word is a kernel of one lane, so that the GPU's own kernels may
 * update the same word by atomics. It needs a free compute unit: kernels that fill
 * the GPU while they wait for such an update wait until their deadline.
 *
 * The stream serves other ranks, so this rank's faults do not stop it: its memory
 * is as good as before. Only the device's failure does. A wait for the stream ends
 * after IRIS_TIMEOUT_MS. Then this rank has a fault, and requests that need an
 * answer are refused at once until the stream has done its work.
 */
#include "config.h"

#include "transport/internal.h"

#include <iris/device/kernels/signal_args.h>

#include "backend/calls.h"

#include <stddef.h>
#include <string.h>

/* A part of a wait without a deadline. */
#define MOMENT_MS 1000

/* Polls ahead of naps. Each takes 0.1 to 0.6 us. */
#define POLLS 1500

static iris_status_t fail_late(struct iris_target *target, int64_t ms)
{
    iris_status_t status =
        iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                    "rank %d: its GPU has not done what a rank of another node "
                    "asked for in %lld ms (IRIS_TIMEOUT_MS); perhaps kernels "
                    "that wait fill it: leave a compute unit free for the "
                    "atomics of other nodes",
                    target->heap->log->rank, (long long)ms);

    target->is_late = 1;
    (void)iris_i_fault_set(target->stream->backend, status, iris_last_error());
    return status;
}

/* Waits until the stream's work is done. The device's failure ends the wait. */
static iris_status_t await_stream(struct iris_target *target)
{
    int64_t ms = target->heap->memory.control->timeout_ms;
    uint64_t point = 0;
    struct iris_wait wait;

    /* A copy takes some microseconds, a nap a thousand. */
    for (int i = 0; i < POLLS; i++) {
        if (iris_i_queue_query(target->stream, &point)) {
            break;
        }
    }
    iris_i_wait_moment(&wait, target->is_late ? 0 : ms == 0 ? MOMENT_MS : ms);
    while (!iris_i_queue_query(target->stream, &point)) {
        if (iris_i_wait_tick(&wait) == IRIS_OK) {
            continue;
        }
        if (ms != 0) {
            return fail_late(target, ms);
        }
        iris_i_wait_moment(&wait, MOMENT_MS);
    }
    target->is_late = 0;
    target->pending = 0;
    return iris_i_queue_fault(target->stream);
}

/* The number of an access for which nobody waits. No other one that the stream
 * has to do has it. */
static iris_status_t find_place(struct iris_target *target, unsigned *place_p)
{
    iris_status_t status =
        target->pending < IRIS_FAR_PENDING ? IRIS_OK : await_stream(target);

    *place_p = status == IRIS_OK ? target->pending++ : 0;
    return status;
}

static iris_status_t write_device(struct iris_target *target, char *at,
                                  uint64_t value, size_t bytes)
{
    unsigned place;
    iris_status_t status = find_place(target, &place);
    void *up = target->shared->up[place];

    if (status != IRIS_OK) {
        return status;
    }
    if (bytes == sizeof value) {
        status =
            iris_i_queue_signal(target->stream, (uint64_t *)(void *)at, value);
        if (status != IRIS_ERR_UNSUPPORTED) {
            return status;
        }
    }
    memcpy(up, &value, bytes);
    return iris_i_queue_copy(target->stream, at, up, bytes);
}

static iris_status_t copy_to_device(struct iris_target *target, char *at,
                                    const void *data, size_t bytes)
{
    uint64_t value = 0;
    iris_status_t status;
    unsigned place;
    void *up;

    if (iris_i_target_is_word(at, bytes)) {
        memcpy(&value, data, bytes);
        return write_device(target, at, value, bytes);
    }
    status = find_place(target, &place);
    if (bytes == 0 || status != IRIS_OK) {
        return status;
    }
    up = memcpy(target->shared->up[place], data, bytes);
    return iris_i_queue_copy(target->stream, at, up, bytes);
}

static iris_status_t copy_from_device(struct iris_target *target,
                                      const char *at, size_t bytes,
                                      const void **data_p)
{
    iris_status_t status =
        bytes == 0 ? IRIS_OK
                   : iris_i_queue_copy(target->stream, target->shared->down, at,
                                       bytes);

    *data_p = target->shared->down;
    return status == IRIS_OK ? await_stream(target) : status;
}

static iris_status_t update_device(struct iris_target *target, char *at,
                                   const struct iris_far_message *request,
                                   uint64_t *old_p)
{
    const struct iris_update_args args = {
        .at = (uintptr_t)at,
        .value = request->value,
        .expected = request->expected,
        .old = target->pinned.device + offsetof(struct iris_far_shared, old),
        .op = request->op,
        .kind = request->kind};
    const struct iris_launch launch = {.kernel = target->update,
                                       .grid = 1,
                                       .block = 1,
                                       .args = &args,
                                       .own = true};
    const void *data;
    iris_status_t status;

    if (request->op == IRIS_OP_LOAD) {
        *old_p = 0;
        status = copy_from_device(target, at, request->bytes, &data);
        memcpy(old_p, data, request->bytes);
        return status;
    }
    status = iris_i_queue_launch(target->stream, &launch);
    status = status == IRIS_OK ? await_stream(target) : status;
    *old_p = target->shared->old;
    return status;
}

static const struct iris_target_ops device_ops = {.copy_up = copy_to_device,
                                                  .copy_down = copy_from_device,
                                                  .write_word = write_device,
                                                  .fetch_word = update_device,
                                                  .settle = await_stream};

iris_status_t iris_i_target_device_open(struct iris_target *target)
{
    struct iris_backend *backend = target->heap->memory.backend;
    iris_status_t status = iris_i_memory_pin(
        backend, sizeof(struct iris_far_shared), &target->pinned);

    target->ops = &device_ops;
    target->shared = target->pinned.host;
    if (status == IRIS_OK) {
        status = iris_i_device_stream_create(backend, &target->stream);
    }
    if (status == IRIS_OK) {
        target->stream->serves = true;
    }
    return status;
}

void iris_i_target_device_close(struct iris_target *target)
{
    if (target->stream != NULL) {
        iris_i_device_stream_destroy(target->stream);
    }
    if (target->shared != NULL) {
        iris_i_memory_unpin(target->heap->memory.backend, &target->pinned);
    }
}
