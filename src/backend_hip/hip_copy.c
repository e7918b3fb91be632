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
    hipError_t error = iris_i_hip_pin(hip, bytes, hipHostMallocPortable, &base);

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
    iris_i_hip_unpin(hip, hip->stage.base,
                     HIP_STAGE_BLOCKS * HIP_STAGE_BLOCK_BYTES);
}

static size_t num_blocks(size_t bytes)
{
    return bytes / HIP_STAGE_BLOCK_BYTES + (bytes % HIP_STAGE_BLOCK_BYTES != 0);
}

static uint64_t run_of(size_t count)
{
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

/* `count` blocks in one piece, or NULL. */
static void *stage_take(struct hip_stage *stage, size_t bytes)
{
    size_t count = num_blocks(bytes), first = 0;
    uint64_t used = atomic_load(&stage->used);

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

/* The blocks of a piece, as bits. */
static uint64_t blocks_of(const struct hip_stage *stage, const void *ptr,
                          size_t bytes)
{
    size_t first =
        (size_t)((const char *)ptr - stage->base) / HIP_STAGE_BLOCK_BYTES;

    return run_of(num_blocks(bytes)) << first;
}

void iris_i_hip_stage_give(struct hip_backend *hip, uint64_t blocks)
{
    atomic_fetch_and(&hip->stage.used, ~blocks);
}

/* By its type, since memory of another GPU may have no address on this one. */
static bool is_unknown(const hipPointerAttribute_t *what)
{
#if IRIS_HIP_NVIDIA || HIP_VERSION_MAJOR >= 6
    return what->type == hipMemoryTypeUnregistered;
#else /* mostly an error */
    return what->memoryType == hipMemoryTypeHost && what->hostPointer == NULL &&
           what->devicePointer == NULL;
#endif
}

/* Memory that the GPU does not know: neither device nor pinned. Where that
 * cannot be told the runtime has to do with it what it can: the CPU must not
 * touch what may be device memory. */
static bool is_pageable(const struct hip_backend *hip, const void *ptr)
{
    hipPointerAttribute_t what;
    hipError_t error;

    if (iris_i_hip_is_heap(hip, ptr)) {
        return false;
    }
    memset(&what, 0, sizeof what);
    error = hipPointerGetAttributes(&what, ptr);
    if (error != hipSuccess) {
        (void)hipGetLastError();
        return error == hipErrorInvalidValue;
    }
    return is_unknown(&what);
}

/* Errands of this process that will write to the program's host memory. While
 * there are any, on whatever stream, that memory is read in stream order only:
 * the reader's stream may wait for theirs. */
static atomic_uint host_writers;

/* What the host does when a stream gets there. */
struct hip_errand {
    struct hip_backend *hip;
    void *dst;       /* NULL: nothing to copy */
    const void *src; /* NULL: fill with `value` */
    int value;
    size_t bytes;
    bool writes_host; /* the program's memory; to be counted */
    uint64_t blocks;  /* of the stage, to give back */
};

/* It is done, or will not be. */
static void end_errand(struct hip_errand *errand)
{
    if (errand->writes_host) {
        atomic_fetch_sub(&host_writers, 1);
    }
    free(errand);
}

static void run_errand(hipStream_t stream, hipError_t error, void *argument)
{
    struct hip_errand *errand = argument;

    (void)stream;
    /* Of a GPU that has failed errands come at any time, its backend may be
     * gone by then, and nobody needs the stage again. */
    if (error == hipSuccess) {
        if (errand->src != NULL) {
            memcpy(errand->dst, errand->src, errand->bytes);
        } else if (errand->dst != NULL) {
            memset(errand->dst, errand->value, errand->bytes);
        }
        iris_i_hip_stage_give(errand->hip, errand->blocks);
    }
    end_errand(errand);
}

static hipError_t send_errand(struct hip_stream *stream,
                              const struct hip_errand *what)
{
    struct hip_errand *errand = malloc(sizeof *errand);
    hipError_t error;

    if (errand == NULL) {
        return hipErrorOutOfMemory;
    }
    *errand = *what;
    if (errand->writes_host) {
        atomic_fetch_add(&host_writers, 1);
    }
    error = hipStreamAddCallback(stream->native, run_errand, errand, 0);
    if (error != hipSuccess) {
        end_errand(errand);
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

/* Fills the stage: now, if what the program has at the source is there. */
static hipError_t fill_stage(struct hip_stream *stream, char *stage,
                             const struct hip_copy *copy)
{
    const struct hip_errand errand = {
        .hip = (struct hip_backend *)stream->base.backend,
        .dst = stage,
        .src = copy->src,
        .bytes = copy->bytes,
    };

    if (atomic_load(&host_writers) != 0) {
        return send_errand(stream, &errand);
    }
    memcpy(stage, copy->src, copy->bytes);
    return hipSuccess;
}

/* The stream may still be at these blocks of the stage: who finds it through
 * gives them back. */
static void orphan(struct hip_stream *stream, uint64_t blocks)
{
    pthread_mutex_lock(&stream->lock);
    stream->stage_orphans |= blocks;
    pthread_mutex_unlock(&stream->lock);
}

/* Between the device and pageable memory, by way of the stage; *staged_p is
 * false if it has no room. */
static hipError_t copy_staged(struct hip_stream *stream,
                              const struct hip_copy *copy, bool *staged_p)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    size_t bytes = copy->bytes;
    char *stage = stage_take(&hip->stage, bytes);
    struct hip_errand errand = {.hip = hip, .bytes = bytes};
    hipError_t error = hipSuccess;

    *staged_p = stage != NULL;
    if (stage == NULL) {
        return hipSuccess;
    }
    errand.blocks = blocks_of(&hip->stage, stage, bytes);
    if (copy->to_host) {
        errand.dst = copy->dst;
        errand.src = stage;
        errand.writes_host = true;
    } else {
        error = fill_stage(stream, stage, copy);
    }
    if (error == hipSuccess) {
        error = hipMemcpyAsync(copy->to_host ? stage : copy->dst,
                               copy->to_host ? copy->src : stage, bytes,
                               hipMemcpyDefault, stream->native);
    }
    if (error == hipSuccess) {
        error = send_errand(stream, &errand);
    }
    if (error != hipSuccess) {
        orphan(stream, errand.blocks);
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

/* *staged_p is false if there is no room for it and nothing was done. */
static hipError_t copy_pageable(struct hip_stream *stream,
                                const struct hip_copy *copy, bool *staged_p)
{
    struct hip_errand both = {
        .hip = (struct hip_backend *)stream->base.backend,
        .dst = copy->dst,
        .src = copy->src,
        .bytes = copy->bytes,
        .writes_host = true,
    };

    return copy->from_host && copy->to_host
               ? send_errand(stream, &both)
               : copy_staged(stream, copy, staged_p);
}

/* Too much for the stage: waits for the stream here, where the dead and the
 * deadline are watched, and not where the runtime would. */
static hipError_t copy_large(struct hip_stream *stream,
                             const struct hip_copy *copy,
                             iris_status_t *status_p)
{
    hipError_t error;

    *status_p = iris_i_hip_stream_settle(stream);
    if (*status_p != IRIS_OK) {
        return hipSuccess;
    }
    *status_p = iris_i_hip_enqueue_begin(stream);
    if (*status_p != IRIS_OK) {
        return hipSuccess;
    }
    error = copy_direct(stream, copy);
    iris_i_hip_enqueue_end(stream);
    return error;
}

iris_status_t iris_i_hip_copy(struct iris_stream *base, void *dst,
                              const void *src, size_t bytes)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    struct hip_before before = iris_i_hip_enter(hip);
    struct hip_copy copy = {
        .dst = dst,
        .src = src,
        .bytes = bytes,
        .from_host = is_pageable(hip, src),
        .to_host = is_pageable(hip, dst),
    };
    bool staged = true;
    iris_status_t status = iris_i_hip_enqueue_begin(stream);
    hipError_t error = hipSuccess;

    if (status != IRIS_OK) {
        iris_i_hip_leave(hip, before);
        return status;
    }
    if (!copy.from_host && !copy.to_host) {
        error = copy_direct(stream, &copy);
    } else {
        status = iris_i_hip_not_capturing(
            stream, "a copy of host memory that is not pinned");
        if (status == IRIS_OK) {
            error = copy_pageable(stream, &copy, &staged);
        }
    }
    iris_i_hip_enqueue_end(stream);
    if (!staged) {
        error = copy_large(stream, &copy, &status);
    }
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
    struct hip_before before = iris_i_hip_enter(hip);
    iris_status_t status = iris_i_hip_enqueue_begin(stream);
    hipError_t error = hipSuccess;

    if (status != IRIS_OK) {
        iris_i_hip_leave(hip, before);
        return status;
    }
    if (!is_pageable(hip, dst)) {
        error = hipMemsetAsync(dst, value, bytes, stream->native);
    } else {
        struct hip_errand errand = {.hip = hip,
                                    .dst = dst,
                                    .value = value,
                                    .bytes = bytes,
                                    .writes_host = true};

        status = iris_i_hip_not_capturing(
            stream, "a fill of host memory that is not pinned");
        if (status == IRIS_OK) {
            error = send_errand(stream, &errand);
        }
    }
    iris_i_hip_enqueue_end(stream);
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
    struct hip_before before = iris_i_hip_enter(hip);
    hipError_t error = hipErrorNotSupported;
    iris_status_t status = iris_i_hip_enqueue_begin(stream);

    if (status != IRIS_OK) {
        iris_i_hip_leave(hip, before);
        return status;
    }
    if (!iris_i_hip_capturing(stream)) {
        error = hipStreamWriteValue64(stream->native, place, value, 0);
    }
    iris_i_hip_enqueue_end(stream);
    if (error == hipErrorNotSupported) {
        (void)hipGetLastError();
        status = IRIS_ERR_UNSUPPORTED;
    } else if (error != hipSuccess) {
        status = iris_i_hip_fail(error, "rank %d: a signal at %p",
                                 hip->params.rank, (void *)place);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

#if IRIS_HIP_NVIDIA || IRIS_HIP_FAKE
/* A place in the list, which is not one of the stream's waits yet, or NULL. */
static struct hip_wait *take_wait(struct hip_stream *stream)
{
    struct hip_wait *wait = NULL;

    pthread_mutex_lock(&stream->lock);
    for (size_t i = 0; i < HIP_STREAM_WAITS && wait == NULL; i++) {
        if (!stream->waits[i].taken) {
            wait = &stream->waits[i];
            wait->taken = true;
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return wait;
}

/* The stream has it, or (hipSuccess is not what became of it) has not. */
static void enter_wait(struct hip_stream *stream, struct hip_wait *wait,
                       hipError_t error)
{
    pthread_mutex_lock(&stream->lock);
    if (error == hipSuccess) {
        wait->number = ++stream->num_waits;
    } else {
        memset(wait, 0, sizeof *wait);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* GE is a signed comparison of the difference with 0, which is that of what is
 * waited for as long as that is below 2^63. */
static bool has_comparison(iris_cmp_t cmp, uint64_t value)
{
    return cmp == IRIS_CMP_EQ || (cmp == IRIS_CMP_GE && value <= INT64_MAX);
}

iris_status_t iris_i_hip_wait(struct iris_stream *base, uint64_t *place,
                              iris_cmp_t cmp, uint64_t value)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    struct hip_wait *wait = NULL;
    hipError_t error = hipErrorNotSupported;
    iris_status_t status;
    struct hip_before before;

    if (!has_comparison(cmp, value)) {
        return IRIS_ERR_UNSUPPORTED;
    }
    before = iris_i_hip_enter(hip);
    status = iris_i_hip_enqueue_begin(stream);
    if (status != IRIS_OK) {
        iris_i_hip_leave(hip, before);
        return status;
    }
    if (!iris_i_hip_capturing(stream)) {
        wait = take_wait(stream);
    }
    if (wait != NULL) {
        wait->place = place;
        wait->cmp = cmp;
        wait->value = value;
        error = hipStreamWaitValue64(stream->native, place, value,
                                     cmp == IRIS_CMP_EQ ? hipStreamWaitValueEq
                                                        : hipStreamWaitValueGte,
                                     UINT64_MAX);
        enter_wait(stream, wait, error);
    }
    iris_i_hip_enqueue_end(stream);
    if (error == hipErrorNotSupported) {
        (void)hipGetLastError();
        status = IRIS_ERR_UNSUPPORTED;
    } else if (error != hipSuccess) {
        status = iris_i_hip_fail(error, "rank %d: a wait at %p",
                                 hip->params.rank, (void *)place);
    }
    iris_i_hip_leave(hip, before);
    return status;
}
#else
/* On AMD a stream waits only for memory of a special kind, which a heap is
 * not. */
iris_status_t iris_i_hip_wait(struct iris_stream *base, uint64_t *place,
                              iris_cmp_t cmp, uint64_t value)
{
    (void)base, (void)place, (void)cmp, (void)value;
    return IRIS_ERR_UNSUPPORTED;
}
#endif
