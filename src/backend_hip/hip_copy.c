/* SPDX-License-Identifier: MIT
 *
 * Copies and fills. Host memory that is not pinned goes through a stage of
 * pinned blocks: otherwise the runtime would make the host wait for the stream.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <string.h>

/* The most calls of a staged copy after the first. */
#define MORE_CALLS 2

/* ---- The stage ---- */

/* Finds this number of adjacent free blocks for the stream's next work. Returns
 * the first one's index, or the number of blocks if there is no room. */
static size_t take_blocks(const struct hip_stream *stream, size_t count)
{
    struct hip_backend *hip = stream->hip;
    size_t run = 0, end = 0;

    pthread_mutex_lock(&hip->streams_lock);
    for (; end < HIP_STAGE_BLOCKS && run < count; end++) {
        const struct hip_block *block = &hip->stage[end];
        bool is_free =
            block->user == NULL || block->user->completed >= block->number;

        run = is_free ? run + 1 : 0;
    }
    for (size_t i = end - run; i < end && run == count; i++) {
        hip->stage[i].user = stream;
        hip->stage[i].number = stream->submitted + MORE_CALLS + 1;
    }
    pthread_mutex_unlock(&hip->streams_lock);
    return run == count ? end - run : HIP_STAGE_BLOCKS;
}

/* Pinned memory for the stream's next work, or NULL. */
static char *take_stage(struct hip_stream *stream, size_t bytes)
{
    struct hip_backend *hip = stream->hip;
    size_t count =
        bytes / HIP_STAGE_BLOCK_BYTES + (bytes % HIP_STAGE_BLOCK_BYTES != 0);
    size_t first = take_blocks(stream, count);

    if (first == HIP_STAGE_BLOCKS && count <= HIP_STAGE_BLOCKS) {
        iris_i_hip_update_all(hip, stream);
        first = take_blocks(stream, count);
    }
    return first == HIP_STAGE_BLOCKS ? NULL : hip->pinned->blocks[first];
}

/* ---- Copies ---- */

/* Whether the address is in a heap that this backend has mapped. Then it is
 * device memory. */
static bool is_heap(const struct hip_backend *hip, const void *ptr)
{
    uintptr_t at = (uintptr_t)ptr;
    bool found = at - (uintptr_t)hip->heap.base < hip->heap.bytes;

    for (const struct hip_import *one = hip->imports; one != NULL && !found;
         one = one->next) {
        found = at - (uintptr_t)one->base < one->bytes;
    }
    return found;
}

/* Whether the GPU does not know the memory: neither device nor pinned. If that
 * is unknown, the runtime has to make the copy, because the CPU must not access
 * memory that may be on the device. */
static bool is_pageable(const struct hip_backend *hip, const void *ptr)
{
    hipPointerAttribute_t what;
    hipError_t error;

    if (is_heap(hip, ptr)) {
        return false;
    }
    memset(&what, 0, sizeof what);
    error = hipPointerGetAttributes(&what, ptr);
    return error == hipSuccess ? iris_i_hip_is_unknown(&what)
                               : error == hipErrorInvalidValue;
}

/* The runtime's own copy, which makes the host wait if the memory is
 * pageable. */
static hipError_t copy_direct(struct hip_stream *stream, void *dst,
                              const void *src, size_t bytes)
{
    return hipMemcpyAsync(dst, src, bytes, hipMemcpyDefault, stream->native);
}

/* Copies from the host to the device. Fills the stage at once, unless an errand
 * of this process has not written the source yet. Then the stage is filled in
 * the stream's order, since the stream may wait for that errand's stream. */
static hipError_t put_staged(struct hip_stream *stream,
                             const struct hip_errand *copy, char *stage)
{
    const struct hip_errand fill = {
        .dst = stage, .src = copy->src, .bytes = copy->bytes};
    hipError_t error = hipSuccess;

    if (iris_i_hip_errand_writes(copy->src, copy->bytes)) {
        error = iris_i_hip_send_errand(stream, &fill);
    } else {
        memcpy(stage, copy->src, copy->bytes);
    }
    return error ? error : copy_direct(stream, copy->dst, stage, copy->bytes);
}

static hipError_t get_staged(struct hip_stream *stream,
                             const struct hip_errand *copy, char *stage)
{
    struct hip_errand empty = *copy;
    hipError_t error = copy_direct(stream, stage, copy->src, copy->bytes);

    empty.src = stage;
    return error ? error : iris_i_hip_send_errand(stream, &empty);
}

struct copy {
    struct hip_errand what;
    bool full; /* the stage has no space, and nothing was done */
};

static hipError_t copy_staged(struct hip_stream *stream, struct copy *copy,
                              bool to_host)
{
    char *stage = take_stage(stream, copy->what.bytes);

    copy->full = stage == NULL;
    if (copy->full) {
        return hipSuccess;
    }
    stream->submitted += MORE_CALLS;
    return to_host ? get_staged(stream, &copy->what, stage)
                   : put_staged(stream, &copy->what, stage);
}

static iris_status_t do_copy(struct hip_stream *stream, void *what)
{
    const struct hip_backend *hip = stream->hip;
    struct copy *call = what;
    const struct hip_errand *copy = &call->what;
    bool from_host = is_pageable(hip, copy->src);
    bool to_host = is_pageable(hip, copy->dst);
    hipError_t error;

    if (call->full || (!from_host && !to_host)) {
        error = copy_direct(stream, copy->dst, copy->src, copy->bytes);
    } else if (stream->capturing) {
        return iris_i_hip_fail_captured(
            hip, "a copy of host memory that is not pinned");
    } else {
        error = from_host && to_host ? iris_i_hip_send_errand(stream, copy)
                                     : copy_staged(stream, call, to_host);
    }
    return iris_i_hip_fail(hip, error, "a copy of %zu bytes from %p to %p",
                           copy->bytes, copy->src, copy->dst);
}

/* If the copy is too large for the stage, this waits for the stream here, where
 * it watches the peers and the deadline. The runtime's wait does not. */
iris_status_t iris_i_hip_copy(struct iris_stream *base, void *dst,
                              const void *src, size_t bytes)
{
    struct copy copy = {.what = {.dst = dst, .src = src, .bytes = bytes}};
    iris_status_t status = iris_i_hip_enqueue(base, 1, do_copy, &copy);

    if (copy.full) {
        status = iris_i_hip_synchronize(base);
        status = status ? status : iris_i_hip_enqueue(base, 1, do_copy, &copy);
    }
    return status;
}

static iris_status_t do_copy_rows(struct hip_stream *stream, void *what)
{
    const struct hip_backend *hip = stream->hip;
    const struct iris_copy_rows *rows = what;

    /* No runtime accepts larger pitches, and the stage has no rows. */
    if (rows->dst_pitch > INT32_MAX || rows->src_pitch > INT32_MAX ||
        is_pageable(hip, rows->src) || is_pageable(hip, rows->dst)) {
        return IRIS_ERR_UNSUPPORTED;
    }
    return iris_i_hip_fail(hip,
                           hipMemcpy2DAsync(rows->dst, rows->dst_pitch,
                                            rows->src, rows->src_pitch,
                                            rows->row_bytes, rows->rows,
                                            hipMemcpyDefault, stream->native),
                           "a copy of %zu rows of %zu bytes from %p to %p",
                           rows->rows, rows->row_bytes, rows->src, rows->dst);
}

iris_status_t iris_i_hip_copy_rows(struct iris_stream *stream,
                                   const struct iris_copy_rows *rows)
{
    struct iris_copy_rows copy = *rows;

    return iris_i_hip_enqueue(stream, 1, do_copy_rows, &copy);
}

static iris_status_t do_set(struct hip_stream *stream, void *what)
{
    const struct hip_backend *hip = stream->hip;
    const struct hip_errand *fill = what;
    hipError_t error;

    if (!is_pageable(hip, fill->dst)) {
        error =
            hipMemsetAsync(fill->dst, fill->value, fill->bytes, stream->native);
    } else if (stream->capturing) {
        return iris_i_hip_fail_captured(
            hip, "a fill of host memory that is not pinned");
    } else {
        error = iris_i_hip_send_errand(stream, fill);
    }
    return iris_i_hip_fail(hip, error, "a fill of %zu bytes at %p", fill->bytes,
                           fill->dst);
}

iris_status_t iris_i_hip_set(struct iris_stream *stream, void *dst, int value,
                             size_t bytes)
{
    struct hip_errand fill = {.dst = dst, .value = value, .bytes = bytes};

    return iris_i_hip_enqueue(stream, 1, do_set, &fill);
}

/* ---- New memory of the heap ---- */

static iris_status_t do_zero(struct hip_stream *stream, void *what)
{
    const struct hip_backend *hip = stream->hip;
    const struct hip_memory *memory = what;

    return iris_i_hip_fail(
        hip, hipMemsetAsync(memory->ptr, 0, memory->bytes, stream->native),
        "%zu bytes of new heap are not filled with zeros", memory->bytes);
}

iris_status_t iris_i_hip_zero(struct hip_backend *hip, void *base, size_t bytes)
{
    struct hip_memory memory = {.ptr = base, .bytes = bytes};
    iris_status_t status = iris_i_hip_enqueue(hip->filler, 1, do_zero, &memory);
    bool finished = true;

    if (status == IRIS_OK) {
        status = iris_i_hip_wait_all((struct hip_stream *)hip->filler,
                                     "filling new memory of the heap "
                                     "(iris_init, iris_malloc) was",
                                     &finished);
    }
    if (!finished) {
        iris_i_hip_stick(hip);
    }
    return status;
}
