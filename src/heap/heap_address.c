/* SPDX-License-Identifier: MIT
 *
 * Addresses on the symmetric heap.
 */
#include "config.h"

#include "heap/heap.h"

#include "backend/calls.h"

#include <stdio.h>

size_t iris_i_heap_bytes_from(const struct iris_heap *heap, const void *ptr)
{
    size_t offset = iris_i_heap_offset(&heap->memory, ptr);

    if (offset < iris_i_heap_bytes(&heap->memory)) {
        return iris_i_heap_bytes(&heap->memory) - offset;
    }
    offset -= heap->memory.region.window;
    return offset >= heap->memory.region.window_bytes
               ? 0
               : iris_i_window_bytes_from(&heap->window, offset);
}

int iris_i_heap_is_by_proxy(const struct iris_heap *heap, int rank)
{
    return heap->has_proxy && rank >= 0 && rank < heap->log->num_ranks &&
           iris_i_heap_is_far(&heap->memory, rank);
}

iris_status_t iris_i_heap_check_reachable(const struct iris_heap *heap,
                                          const char *call, int rank)
{
    if (heap->memory.bases[rank] != 0) {
        return IRIS_OK;
    }
    if (iris_i_heap_is_by_proxy(heap, rank)) {
        return iris_i_fail(heap->log, IRIS_ERR_UNREACHABLE,
                           "%s: rank %d is on another node than rank %d, where "
                           "its memory has no address; use "
                           "iris_put_on_stream() and the other transfers and "
                           "collectives on streams, or puts, gets and signals "
                           "in kernels",
                           call, rank, heap->log->rank);
    }
    return iris_i_fail(heap->log, IRIS_ERR_UNREACHABLE,
                       "%s: rank %d's heap is not mapped on rank %d: they are "
                       "on different nodes, or their devices have no access to "
                       "each other (IRIS_REQUIRE_ALL=1 makes iris_init say "
                       "why)",
                       call, rank, heap->log->rank);
}

iris_status_t iris_i_heap_check_rank(const struct iris_heap *heap, int rank)
{
    return rank >= 0 && rank < heap->log->num_ranks
               ? IRIS_OK
               : iris_i_fail(heap->log, IRIS_ERR_INVALID,
                             "rank %d is out of range: the job has ranks 0 to "
                             "%d; pass one of them",
                             rank, heap->log->num_ranks - 1);
}

iris_status_t iris_i_heap_untranslate(const struct iris_heap *heap,
                                      const char *call, const void *ptr,
                                      int rank, void **own_p)
{
    iris_status_t status = iris_i_heap_check_rank(heap, rank);
    int64_t offset;
    void *own;

    if (status == IRIS_OK) {
        status = iris_i_heap_check_reachable(heap, call, rank);
    }
    if (status != IRIS_OK) {
        return status;
    }
    offset = (int64_t)(uintptr_t)ptr - heap->memory.bases[rank];
    own = (void *)(uintptr_t)(heap->memory.bases[heap->log->rank] + offset);
    if (iris_i_heap_bytes_from(heap, own) == 0) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s: ptr %p is not on rank %d's heap; pass a "
                           "pointer into it",
                           call, ptr, rank);
    }
    *own_p = own;
    return IRIS_OK;
}

iris_status_t iris_i_heap_translate(const struct iris_heap *heap,
                                    const char *call, const void *ptr, int rank,
                                    void **remote_p)
{
    iris_status_t status = iris_i_heap_check_rank(heap, rank);
    int64_t offset;

    if (status != IRIS_OK) {
        return status;
    }
    if (iris_i_heap_bytes_from(heap, ptr) == 0) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s: ptr %p is not on the heap; pass a pointer into "
                           "this rank's own heap",
                           call, ptr);
    }
    status = iris_i_heap_check_reachable(heap, call, rank);
    if (status != IRIS_OK) {
        return status;
    }
    offset = (int64_t)(uintptr_t)ptr - heap->memory.bases[heap->log->rank];
    *remote_p = (void *)(uintptr_t)(heap->memory.bases[rank] + offset);
    return IRIS_OK;
}

/* The rank whose heap contains the address. Also the rank whose heap ends at
 * it, if no other heap begins there. -1: none. */
static int owner_of(const struct iris_heap *heap, uintptr_t start)
{
    int ends_apart = heap->memory.region.guarded &&
                     (heap->memory.region.window_bytes == 0 ||
                      iris_i_window_bytes_from(&heap->window, 0) == 0);
    size_t bytes = iris_i_heap_bytes(&heap->memory) + (size_t)ends_apart;

    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        uintptr_t base = (uintptr_t)heap->memory.bases[rank];

        if (base != 0 && start - base < bytes) {
            return rank;
        }
    }
    return -1;
}

static iris_status_t check_on_heap(const struct iris_heap *heap,
                                   const struct iris_heap_range *range,
                                   int rank)
{
    size_t offset = (uintptr_t)range->ptr - (uintptr_t)heap->memory.bases[rank];

    if (range->bytes > iris_i_heap_bytes(&heap->memory) - offset) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s: %zu bytes from %s %p go past the end of rank "
                           "%d's heap, %zu bytes away; copy less",
                           range->call, range->bytes, range->name, range->ptr,
                           rank, iris_i_heap_bytes(&heap->memory) - offset);
    }
    if (range->writes && iris_i_heap_is_own(&heap->names, offset)) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s: %s %p is at offset %zu of rank %d's heap, "
                           "where the library keeps its own (%zu bytes); pass "
                           "memory from iris_malloc",
                           range->call, range->name, range->ptr, offset, rank,
                           heap->names.reserved_bytes);
    }
    if (!iris_i_heap_is_committed(&heap->memory, offset, range->bytes)) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s: %zu bytes from %s %p (offset %zu of rank %d's "
                           "heap) are not allocated and have no memory; pass "
                           "memory from iris_malloc",
                           range->call, range->bytes, range->name, range->ptr,
                           offset, rank);
    }
    return IRIS_OK;
}

/* Checks memory that begins outside of every heap. It must not run into a heap,
 * must not begin on the guard page ahead of one, and must not leave a mapping
 * of iris_as_symmetric(). */
static iris_status_t check_off_heap(const struct iris_heap *heap,
                                    const struct iris_heap_range *range)
{
    uintptr_t start = (uintptr_t)range->ptr;
    size_t mapped = iris_i_heap_bytes_from(heap, range->ptr);

    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        uintptr_t base = (uintptr_t)heap->memory.bases[rank];
        size_t ahead = base - start;

        if (base > start && (ahead < range->bytes ||
                             ahead <= heap->memory.region.ahead_bytes)) {
            return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                               "%s: %zu bytes from %s %p begin %zu bytes ahead "
                               "of rank %d's heap; pass memory from "
                               "iris_malloc, or memory apart from it",
                               range->call, range->bytes, range->name,
                               range->ptr, ahead, rank);
        }
    }
    return mapped == 0 || mapped >= range->bytes
               ? IRIS_OK
               : iris_i_fail(heap->log, IRIS_ERR_INVALID,
                             "%s: %zu bytes from %s %p go past the end of "
                             "memory that iris_as_symmetric shares, %zu bytes "
                             "away; copy less",
                             range->call, range->bytes, range->name, range->ptr,
                             mapped);
}

static iris_status_t check_kernel_access(const struct iris_heap *heap,
                                         const struct iris_heap_range *range)
{
    iris_status_t status = check_off_heap(heap, range);
    char name[96];

    if (status != IRIS_OK) {
        return status;
    }
    snprintf(name, sizeof name, "%s: %s", range->call, range->name);
    return iris_i_fail_on(heap->log,
                          iris_i_memory_check_access(heap->memory.backend, name,
                                                     range->ptr, range->bytes));
}

iris_status_t iris_i_heap_check_range(const struct iris_heap *heap,
                                      const struct iris_heap_range *range)
{
    uintptr_t start = (uintptr_t)range->ptr;
    int rank;

    if (range->ptr == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s: %s is NULL; pass memory of %zu bytes",
                           range->call, range->name, range->bytes);
    }
    if (range->bytes > PTRDIFF_MAX / 2 || start > UINTPTR_MAX - range->bytes) {
        return iris_i_fail(heap->log, IRIS_ERR_INVALID,
                           "%s: %zu bytes from %s %p overflow the address "
                           "space; check the size",
                           range->call, range->bytes, range->name, range->ptr);
    }
    rank = owner_of(heap, start);
    return rank >= 0 ? check_on_heap(heap, range, rank)
           : range->by_kernel && iris_i_heap_bytes_from(heap, range->ptr) == 0
               ? check_kernel_access(heap, range)
               : check_off_heap(heap, range);
}

int iris_i_heap_locate(const struct iris_heap *heap, const void *address,
                       struct iris_location *place_p)
{
    size_t offset = 0;
    int rank = iris_i_heap_owner(&heap->memory, address, &offset);

    if (rank < 0) {
        return 0;
    }
    place_p->rank = rank;
    place_p->offset = offset;
    if (!iris_i_alloc_nearest(heap->names.alloc, offset, &place_p->start,
                              &place_p->bytes) ||
        iris_i_heap_is_own(&heap->names, place_p->start)) {
        place_p->bytes = 0; /* the library's own memory is no allocation */
    }
    return 1;
}
