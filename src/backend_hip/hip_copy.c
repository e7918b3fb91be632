/* SPDX-License-Identifier: MIT
 *
 * What a stream does without kernels: copies, fills, signals and waits. Host
 * memory that is not pinned goes through a stage of pinned blocks, since the
 * runtime would make the host wait for the stream.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include <stdlib.h>
#include <string.h>

iris_status_t iris_i_hip_stage_open(struct hip_backend *hip)
{
    void *base = NULL;
    size_t bytes = HIP_STAGE_BLOCKS * HIP_STAGE_BLOCK_BYTES;
    hipError_t error = hipHostMalloc(&base, bytes, hipHostMallocPortable);

    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d gets no %zu bytes of pinned "
                               "memory",
                               hip->params.rank, bytes);
    }
    hip->stage.base = base;
    return IRIS_OK;
}

void iris_i_hip_stage_close(struct hip_backend *hip)
{
    iris_i_hip_free(hip, hip->stage.base, true);
}

static uint64_t run_of(unsigned count)
{
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

/* `count` blocks in one piece, or NULL. */
static void *stage_take(struct hip_stage *stage, size_t bytes)
{
    unsigned count =
        (unsigned)((bytes + HIP_STAGE_BLOCK_BYTES - 1) / HIP_STAGE_BLOCK_BYTES);
    uint64_t used = atomic_load(&stage->used);
    unsigned first = 0;

    while (first + count <= HIP_STAGE_BLOCKS) {
        uint64_t mask = run_of(count) << first;

        if ((used & mask) != 0) {
            first++;
        } else if (atomic_compare_exchange_weak(&stage->used, &used,
                                                used | mask)) {
            return stage->base + first * HIP_STAGE_BLOCK_BYTES;
        } else {
            first = 0;
        }
    }
    return NULL;
}

static void stage_give(struct hip_stage *stage, const void *ptr, size_t bytes)
{
    size_t first =
        (size_t)((const char *)ptr - stage->base) / HIP_STAGE_BLOCK_BYTES;
    unsigned count =
        (unsigned)((bytes + HIP_STAGE_BLOCK_BYTES - 1) / HIP_STAGE_BLOCK_BYTES);

    atomic_fetch_and(&stage->used, ~(run_of(count) << first));
}

/* Memory that the GPU does not know: neither device nor pinned. */
static bool is_pageable(const struct hip_backend *hip, const void *ptr)
{
    hipPointerAttribute_t what;

    if (iris_i_hip_is_heap(hip, ptr)) {
        return false;
    }
    memset(&what, 0, sizeof what);
    if (hipPointerGetAttributes(&what, ptr) != hipSuccess) {
        (void)hipGetLastError();
        return true;
    }
    return what.devicePointer == NULL;
}

/* What the host does when a stream gets there. */
struct hip_errand {
    struct hip_backend *hip;
    void *dst;         /* NULL: nothing to copy */
    const void *src;   /* NULL: fill with `value` */
    const void *stage; /* NULL: no blocks to give back */
    int value;
    size_t bytes;
};

static void run_errand(hipStream_t stream, hipError_t error, void *argument)
{
    struct hip_errand *errand = argument;

    (void)stream;
    if (errand->dst != NULL && error == hipSuccess) {
        if (errand->src != NULL) {
            memcpy(errand->dst, errand->src, errand->bytes);
        } else {
            memset(errand->dst, errand->value, errand->bytes);
        }
    }
    if (errand->stage != NULL) {
        stage_give(&errand->hip->stage, errand->stage, errand->bytes);
    }
    free(errand);
}

static hipError_t send_errand(struct hip_stream *stream,
                              const struct hip_errand *what)
{
    struct hip_errand *errand = malloc(sizeof *errand);
    hipError_t error = hipErrorOutOfMemory;

    if (errand != NULL) {
        *errand = *what;
        error = hipStreamAddCallback(stream->native, run_errand, errand, 0);
    }
    if (error != hipSuccess) {
        free(errand);
    }
    return error;
}

/* A copy, and which of its sides are pageable memory. */
struct hip_copy {
    void *dst;
    const void *src;
    size_t bytes;
    bool from_host;
    bool to_host;
};

/* Between the device and pageable memory, by way of the stage; *staged_p is
 * false if it has no room. */
static hipError_t copy_staged(struct hip_stream *stream,
                              const struct hip_copy *copy, bool *staged_p)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    size_t bytes = copy->bytes;
    char *stage = stage_take(&hip->stage, bytes);
    struct hip_errand errand = {.hip = hip, .stage = stage, .bytes = bytes};
    void *dst = copy->dst;
    const void *src = copy->src;
    hipError_t error;

    *staged_p = stage != NULL;
    if (stage == NULL) {
        return hipSuccess;
    }
    if (copy->to_host) {
        errand.dst = dst;
        errand.src = stage;
        dst = stage;
    } else {
        memcpy(stage, src, bytes);
        src = stage;
    }
    error = hipMemcpyAsync(dst, src, bytes, hipMemcpyDefault, stream->native);
    if (error == hipSuccess) {
        error = send_errand(stream, &errand);
    }
    if (error != hipSuccess) {
        (void)hipStreamSynchronize(stream->native);
        stage_give(&hip->stage, stage, bytes);
    }
    return error;
}

/* The runtime's own, which makes the host wait for pageable memory. */
static hipError_t copy_direct(struct hip_stream *stream,
                              const struct hip_copy *copy)
{
    return hipMemcpyAsync(copy->dst, copy->src, copy->bytes, hipMemcpyDefault,
                          stream->native);
}

static hipError_t copy_pageable(struct hip_stream *stream,
                                const struct hip_copy *copy,
                                iris_status_t *status_p)
{
    struct hip_errand both = {
        .hip = (struct hip_backend *)stream->base.backend,
        .dst = copy->dst,
        .src = copy->src,
        .bytes = copy->bytes,
    };
    bool staged = true;
    hipError_t error;

    *status_p = iris_i_hip_not_capturing(
        stream, "a copy of host memory that is not pinned");
    if (*status_p != IRIS_OK) {
        return hipSuccess;
    }
    if (copy->from_host && copy->to_host) {
        return send_errand(stream, &both);
    }
    error = copy_staged(stream, copy, &staged);
    if (staged) {
        return error;
    }
    /* Too much for the stage: wait for the stream here, where the dead and the
     * deadline are watched. */
    *status_p = iris_i_hip_stream_settle(stream);
    return *status_p == IRIS_OK ? copy_direct(stream, copy) : hipSuccess;
}

iris_status_t iris_i_hip_copy(struct iris_stream *base, void *dst,
                              const void *src, size_t bytes)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    int before = iris_i_hip_enter(hip);
    struct hip_copy copy = {
        .dst = dst,
        .src = src,
        .bytes = bytes,
        .from_host = is_pageable(hip, src),
        .to_host = is_pageable(hip, dst),
    };
    iris_status_t status = IRIS_OK;
    hipError_t error;

    iris_i_hip_stream_enqueued(stream);
    error = copy.from_host || copy.to_host
                ? copy_pageable(stream, &copy, &status)
                : copy_direct(stream, &copy);
    if (error != hipSuccess) {
        status =
            iris_i_hip_fail(error, "rank %d: a copy of %zu bytes from %p to %p",
                            hip->params.rank, bytes, src, dst);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

iris_status_t iris_i_hip_set(struct iris_stream *base, void *dst, int value,
                             size_t bytes)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    int before = iris_i_hip_enter(hip);
    iris_status_t status = IRIS_OK;
    hipError_t error = hipSuccess;

    iris_i_hip_stream_enqueued(stream);
    if (!is_pageable(hip, dst)) {
        error = hipMemsetAsync(dst, value, bytes, stream->native);
    } else {
        struct hip_errand errand = {
            .hip = hip, .dst = dst, .value = value, .bytes = bytes};

        status = iris_i_hip_not_capturing(
            stream, "a fill of host memory that is not pinned");
        if (status == IRIS_OK) {
            error = send_errand(stream, &errand);
        }
    }
    if (error != hipSuccess) {
        status = iris_i_hip_fail(error, "rank %d: a fill of %zu bytes at %p",
                                 hip->params.rank, bytes, dst);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

iris_status_t iris_i_hip_signal(struct iris_stream *base, uint64_t *place,
                                uint64_t value)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    int before = iris_i_hip_enter(hip);
    iris_status_t status = IRIS_ERR_UNSUPPORTED;

    if (!iris_i_hip_capturing(stream)) {
        hipError_t error =
            hipStreamWriteValue64(stream->native, place, value, 0);

        iris_i_hip_stream_enqueued(stream);
        if (error == hipSuccess) {
            status = IRIS_OK;
        } else if (error == hipErrorNotSupported) {
            (void)hipGetLastError();
        } else {
            status = iris_i_hip_fail(error, "rank %d: a signal at %p",
                                     hip->params.rank, (void *)place);
        }
    }
    iris_i_hip_leave(hip, before);
    return status;
}

/* On AMD a stream waits only for memory of a special kind, which a heap is
 * not. */
iris_status_t iris_i_hip_wait(struct iris_stream *base, uint64_t *place,
                              iris_cmp_t cmp, uint64_t value)
{
#if IRIS_HIP_NVIDIA
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    unsigned flags = cmp == IRIS_CMP_EQ   ? hipStreamWaitValueEq
                     : cmp == IRIS_CMP_GE ? hipStreamWaitValueGte
                                          : UINT32_MAX;
    iris_status_t status = IRIS_ERR_UNSUPPORTED;
    int before = iris_i_hip_enter(hip);

    pthread_mutex_lock(&stream->lock);
    if (flags != UINT32_MAX && stream->num_waits < HIP_STREAM_WAITS &&
        !iris_i_hip_capturing(stream)) {
        hipError_t error = hipStreamWaitValue64(stream->native, place, value,
                                                flags, UINT64_MAX);

        iris_i_hip_stream_enqueued(stream);
        if (error == hipSuccess) {
            stream->waits[stream->num_waits++] =
                (struct hip_wait){place, value};
            status = IRIS_OK;
        } else if (error == hipErrorNotSupported) {
            (void)hipGetLastError();
        } else {
            status = iris_i_hip_fail(error, "rank %d: a wait at %p",
                                     hip->params.rank, (void *)place);
        }
    }
    pthread_mutex_unlock(&stream->lock);
    iris_i_hip_leave(hip, before);
    return status;
#else
    (void)base, (void)place, (void)cmp, (void)value;
    return IRIS_ERR_UNSUPPORTED;
#endif
}
