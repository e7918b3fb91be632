/* SPDX-License-Identifier: MIT
 *
 * The symmetric heap: collective allocation on top of the allocator, memory
 * behind what is handed out, and translation on the host.
 */
#include "config.h"

#include "heap/heap.h"

#include <iris/device/layout.h>

#include "base/log.h"
#include "control/agree.h"
#include "queue/stream.h"

#include <string.h>

static iris_status_t fail_full(iris_t *iris, size_t bytes, size_t alignment)
{
    struct iris_heap_stats stats;

    iris_i_alloc_stats(iris->alloc, &stats);
    return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY,
                       "no %zu bytes (alignment %zu) on the symmetric heap: "
                       "%zu of %zu bytes are free, %zu in one piece; free "
                       "some, or raise IRIS_HEAP_SIZE",
                       bytes, alignment, stats.free_bytes, iris->heap.bytes,
                       stats.largest_free_bytes);
}

/* This rank's part of an allocation: takes a range and puts memory behind it.
 * Nothing is taken if it fails. */
static iris_status_t take(iris_t *iris, size_t bytes, size_t alignment,
                          size_t *offset_p)
{
    size_t offset;
    iris_status_t status;

    if (bytes == 0) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "an allocation of 0 bytes; ask for at least 1");
    }
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 ||
        alignment > IRIS_ALIGNMENT_MAX) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "alignment %zu is not a power of two up to %zu; "
                           "pass one such as 256, or call iris_malloc",
                           alignment, IRIS_ALIGNMENT_MAX);
    }
    status = iris_i_alloc_take(iris->alloc, bytes, alignment, &offset);
    if (status != IRIS_OK) {
        return fail_full(iris, bytes, alignment);
    }
    status = iris_i_heap_back(iris, offset, bytes);
    if (status != IRIS_OK) {
        iris_i_alloc_untake(iris->alloc, offset);
        return iris_i_fail_on(&iris->log, status);
    }
    *offset_p = offset;
    return IRIS_OK;
}

iris_status_t iris_i_heap_write(iris_t *iris, void *dst, const void *src,
                                size_t bytes)
{
    iris_status_t status = iris_i_stream_synchronize(iris, iris->stream);

    if (status == IRIS_OK) { /* so that nothing holds up the copy for long */
        status = iris_i_queue_copy(iris->stream, dst, src, bytes);
    }
    return status != IRIS_OK ? status
                             : iris_i_stream_synchronize(iris, iris->stream);
}

/* Work is waited for twice, since in a capture of the default stream the first
 * wait fails, while the fill would become part of it. */
static iris_status_t zero(iris_t *iris, size_t offset, size_t bytes)
{
    iris_status_t status = iris_i_stream_synchronize(iris, iris->stream);

    if (status == IRIS_OK) {
        status = iris_i_queue_set(iris->stream,
                                  (char *)iris->heap.base + offset, 0, bytes);
    }
    return status != IRIS_OK ? status
                             : iris_i_stream_synchronize(iris, iris->stream);
}

/* This rank's part, before it meets the others. */
static iris_status_t prepare(iris_t *iris, const struct iris_call *call,
                             void **ptr_p, size_t *offset_p)
{
    iris_status_t status;

    if (ptr_p == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "ptr_p is NULL; pass where to put the pointer");
    }
    status = take(iris, call->args[0], call->args[1], offset_p);
    if (status == IRIS_OK && call->kind == IRIS_CALL_CALLOC) {
        status =
            iris_i_fail_on(&iris->log, zero(iris, *offset_p, call->args[0]));
        if (status != IRIS_OK) {
            iris_i_heap_unback(iris);
            iris_i_alloc_untake(iris->alloc, *offset_p);
        }
    }
    return status;
}

/* Prepares, meets, and undoes the preparation unless all agree: ranks that
 * differed in this call must not differ in the offsets of the next. */
iris_status_t iris_i_heap_allocate(iris_t *iris, const struct iris_call *asked,
                                   iris_status_t checked, void **ptr_p)
{
    struct iris_call call = *asked;
    size_t offset = 0;
    iris_status_t status;

    iris_i_meet_begin(iris, call.kind);
    call.status = checked;
    if (checked == IRIS_OK) {
        call.status = prepare(iris, &call, ptr_p, &offset);
    }
    call.args[2] = offset;
    status = iris_i_meet(iris, iris->world, &call);
    if (status == IRIS_OK) {
        status = iris_i_heap_settle(iris);
    } else if (call.status == IRIS_OK) {
        iris_i_heap_unback(iris);
    }
    if (status != IRIS_OK) {
        if (call.status == IRIS_OK) {
            iris_i_alloc_untake(iris->alloc, offset);
        }
        return status;
    }
    *ptr_p = (char *)iris->heap.base + offset;
    return IRIS_OK;
}

iris_status_t iris_malloc_aligned(iris_t *iris, size_t bytes, size_t alignment,
                                  void **ptr_p)
{
    struct iris_call call = {.kind = IRIS_CALL_MALLOC,
                             .args = {bytes, alignment}};
    iris_status_t status = iris_i_enter(iris, "iris_malloc_aligned");

    return status == IRIS_OK ? iris_i_heap_allocate(iris, &call, IRIS_OK, ptr_p)
                             : status;
}

iris_status_t iris_malloc(iris_t *iris, size_t bytes, void **ptr_p)
{
    iris_status_t status = iris_i_enter(iris, "iris_malloc");

    return status == IRIS_OK
               ? iris_malloc_aligned(iris, bytes, IRIS_ALIGNMENT, ptr_p)
               : status;
}

iris_status_t iris_calloc(iris_t *iris, size_t count, size_t size, void **ptr_p)
{
    struct iris_call call = {.kind = IRIS_CALL_CALLOC,
                             .args = {count * size, IRIS_ALIGNMENT}};
    iris_status_t status = iris_i_enter(iris, "iris_calloc"), checked = IRIS_OK;

    if (status != IRIS_OK) {
        return status;
    }
    if (size != 0 && count > SIZE_MAX / size) {
        checked =
            iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                        "iris_calloc: count %zu times size %zu overflows; "
                        "ask for less",
                        count, size);
    }
    return iris_i_heap_allocate(iris, &call, checked, ptr_p);
}

/* The offset of a live allocation of the caller's that starts at ptr. */
static iris_status_t find_start(iris_t *iris, const void *ptr, size_t *offset_p)
{
    size_t offset = (size_t)((uintptr_t)ptr - (uintptr_t)iris->heap.base);
    size_t start, bytes;

    if (!iris_is_symmetric(iris, ptr)) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "iris_free of %p, which is not on this rank's heap "
            "(%p to %p); pass what iris_malloc gave this rank",
            ptr, iris->heap.base,
            (void *)((char *)iris->heap.base + iris->heap.bytes));
    }
    if (offset >= iris->heap.bytes
            ? iris_i_adopted_is_start(iris, ptr)
            : offset >= iris->reserved_bytes &&
                  iris_i_alloc_is_start(iris->alloc, offset)) {
        *offset_p = offset;
        return IRIS_OK;
    }
    if (offset >= iris->heap.bytes) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_free of %p, which is inside of memory that "
                           "iris_as_symmetric shares; pass what it gave",
                           ptr);
    }
    if (offset < iris->reserved_bytes ||
        iris_i_alloc_find(iris->alloc, offset, &start, &bytes) != IRIS_OK) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_free of %p, heap offset %zu, where nothing is "
                           "allocated; was it freed before? pass what "
                           "iris_malloc gave, once",
                           ptr, offset);
    }
    return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                       "iris_free of %p, which is %zu bytes into the "
                       "allocation at heap offset %zu; pass its start",
                       ptr, offset - start, start);
}

iris_status_t iris_free(iris_t *iris, void *ptr)
{
    struct iris_call call = {.kind = IRIS_CALL_FREE, .args = {SIZE_MAX}};
    iris_status_t status = iris_i_enter(iris, "iris_free");
    size_t offset = SIZE_MAX;

    if (status != IRIS_OK) {
        return status;
    }
    if (ptr != NULL) {
        call.status = find_start(iris, ptr, &offset);
        call.args[0] = offset;
    }
    status = iris_i_meet(iris, iris->world, &call);
    if (status != IRIS_OK || ptr == NULL) {
        return status;
    }
    if (offset >= iris->heap.bytes) {
        iris_i_adopted_free(iris, ptr);
        return IRIS_OK;
    }
    return iris_i_alloc_give(iris->alloc, offset);
}

iris_status_t iris_heap_stats_sized(const iris_t *iris,
                                    struct iris_heap_stats *stats_p,
                                    size_t size)
{
    iris_status_t status = iris_i_enter(iris, "iris_heap_stats");
    struct iris_heap_stats stats = {.size = 0};
    size_t backed;

    if (status != IRIS_OK) {
        return status;
    }
    if (stats_p == NULL || size < sizeof stats.size) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_heap_stats: stats_p is NULL or of %zu bytes; "
                           "pass where to put the figures",
                           size);
    }
    iris_i_alloc_stats(iris->alloc, &stats);
    backed = iris->num_backed * iris->piece_bytes;
    stats.size = size < sizeof stats ? size : sizeof stats;
    stats.used_bytes -= iris->reserved_bytes;
    stats.peak_bytes -= iris->reserved_bytes;
    stats.num_allocs -= 1;
    stats.mapped_bytes = backed > iris->heap.bytes ? iris->heap.bytes : backed;
    stats.reserved_bytes = iris->heap.bytes;
    memset(stats_p, 0, size);
    memcpy(stats_p, &stats, stats.size);
    return IRIS_OK;
}

int iris_is_symmetric(const iris_t *iris, const void *ptr)
{
    return iris_i_enter(iris, "iris_is_symmetric") == IRIS_OK &&
           iris_i_heap_room(iris, ptr) > 0;
}

iris_status_t iris_as_remote(const iris_t *iris, const void *ptr, int rank,
                             void **remote_p)
{
    iris_status_t status = iris_i_enter(iris, "iris_as_remote");
    int64_t offset;

    if (status != IRIS_OK) {
        return status;
    }
    if (rank < 0 || rank >= iris->num_ranks) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "rank %d is out of range: the job has ranks 0 to %d; "
            "pass one of them",
            rank, iris->num_ranks - 1);
    }
    if (remote_p == NULL || !iris_is_symmetric(iris, ptr)) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID, "iris_as_remote: %s",
                           remote_p == NULL
                               ? "remote_p is NULL; pass where to put the "
                                 "address"
                               : "ptr is not on the heap; pass a pointer into "
                                 "this rank's own heap");
    }
    if (iris->heap_bases[rank] == 0) {
        return iris_i_fail(&iris->log, IRIS_ERR_UNREACHABLE,
                           "rank %d's heap is not mapped on this rank", rank);
    }
    offset = (int64_t)(uintptr_t)ptr - iris->heap_bases[iris->rank];
    *remote_p = (void *)(uintptr_t)(iris->heap_bases[rank] + offset);
    return IRIS_OK;
}
