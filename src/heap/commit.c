/* SPDX-License-Identifier: MIT
 *
 * Memory of the heap: committed when an allocation needs it and, on heaps that
 * peers map range by range, offered to every peer before anybody may use it.
 */
#include "config.h"

#include "heap/heap.h"

#include <unistd.h>

/* Free ranges from this size on give their memory back. */
#define GIVE_BACK_BYTES ((size_t)1 << 20)

/* Consecutive pieces. */
struct run {
    size_t first;
    size_t end;
};

/* Any thread may ask whether a range it enqueues work for is committed. */
static int has(const _Atomic uint64_t *bits, size_t piece)
{
    uint64_t word =
        atomic_load_explicit(&bits[piece / 64], memory_order_relaxed);

    return (int)(word >> (piece % 64) & 1);
}

static void flip(_Atomic uint64_t *bits, const struct run *run)
{
    for (size_t piece = run->first; piece < run->end; piece++) {
        atomic_fetch_xor_explicit(&bits[piece / 64],
                                  UINT64_C(1) << (piece % 64),
                                  memory_order_relaxed);
    }
}

/* The first run from run->end on, before `end`, of pieces whose bit is `value`;
 * 0: none. */
static int next_run(const _Atomic uint64_t *bits, int value, size_t end,
                    struct run *run)
{
    size_t first = run->end;

    while (first < end && has(bits, first) != value) {
        first++;
    }
    run->first = first;
    run->end = first;
    while (run->end < end && has(bits, run->end) == value) {
        run->end++;
    }
    return first < end;
}

static size_t num_pieces(const struct iris_heap *heap)
{
    return (heap->region.bytes - 1) / heap->piece_bytes + 1;
}

/* The heap may end within its last piece. A heap that grows does not mind. */
static size_t run_bytes(const struct iris_heap *heap, const struct run *run)
{
    size_t start = run->first * heap->piece_bytes;
    size_t bytes = (run->end - run->first) * heap->piece_bytes;

    return heap->region.commit == IRIS_COMMIT_SHARED &&
                   bytes > heap->region.bytes - start
               ? heap->region.bytes - start
               : bytes;
}

static void *run_at(const struct iris_heap *heap, const struct run *run)
{
    return (char *)heap->region.base + run->first * heap->piece_bytes;
}

static iris_status_t commit_run(struct iris_heap *heap, const struct run *run)
{
    return iris_i_memory_commit(heap->backend, run_at(heap, run),
                                run_bytes(heap, run));
}

iris_status_t iris_i_heap_commit(struct iris_heap *heap, size_t offset,
                                 size_t bytes)
{
    struct run run = {.end = offset / heap->piece_bytes};
    size_t end = (offset + bytes - 1) / heap->piece_bytes + 1;

    if (heap->region.commit == IRIS_COMMIT_NOTHING) {
        return IRIS_OK;
    }
    while (next_run(heap->committed, 0, end, &run)) {
        iris_status_t status = commit_run(heap, &run);

        if (status != IRIS_OK) {
            iris_i_heap_rollback(heap);
            return status;
        }
        flip(heap->committed, &run);
        heap->num_committed += run.end - run.first;
        flip(heap->fresh, &run);
        heap->num_fresh += run.end - run.first;
    }
    return IRIS_OK;
}

iris_status_t iris_i_heap_clear(struct iris_heap *heap, void *ptr, size_t bytes)
{
    size_t offset = (size_t)((char *)ptr - (char *)heap->region.base);
    size_t end = (offset + bytes - 1) / heap->piece_bytes + 1;
    struct run run = {.end = offset / heap->piece_bytes};
    iris_status_t status;

    if (heap->region.commit != IRIS_COMMIT_SHARED) {
        return iris_i_heap_zero(heap, offset, bytes);
    }
    status = iris_i_heap_commit(heap, offset, bytes);
    if (status != IRIS_OK) {
        return iris_i_fail_on(heap->log, status);
    }
    while (status == IRIS_OK && next_run(heap->fresh, 0, end, &run)) {
        size_t first = run.first * heap->piece_bytes;
        size_t last = run.end * heap->piece_bytes;

        first = first < offset ? offset : first;
        last = last > offset + bytes ? offset + bytes : last;
        status = iris_i_heap_zero(heap, first, last - first);
    }
    if (status == IRIS_OK) {
        iris_i_heap_keep(heap);
    } else {
        iris_i_heap_rollback(heap);
    }
    return status;
}

void iris_i_heap_unmap(struct iris_heap *heap, size_t offset)
{
    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        if (heap->bases != NULL && heap->bases[rank] != 0 &&
            iris_i_control_is_remote(heap->control, rank)) {
            iris_i_memory_decommit(
                heap->backend, (char *)(uintptr_t)heap->bases[rank] + offset,
                0);
        }
    }
    iris_i_memory_decommit(heap->backend, (char *)heap->region.base + offset,
                           0);
}

/* Takes the memory of a run away, which was committed in one go if peers map
 * what is committed one by one. */
static void decommit_run(struct iris_heap *heap, const struct run *run)
{
    if (heap->region.commit == IRIS_COMMIT_PRIVATE) {
        iris_i_heap_unmap(heap, run->first * heap->piece_bytes);
    } else {
        iris_i_memory_decommit(heap->backend, run_at(heap, run),
                               run_bytes(heap, run));
    }
    flip(heap->committed, run);
    heap->num_committed -= run->end - run->first;
}

void iris_i_heap_rollback(struct iris_heap *heap)
{
    struct run run = {.end = 0};

    while (heap->num_fresh != 0) {
        (void)next_run(heap->fresh, 1, num_pieces(heap), &run);
        decommit_run(heap, &run);
        flip(heap->fresh, &run);
        heap->num_fresh -= run.end - run.first;
    }
}

/* Memory that small allocations come and go in is kept: to commit it takes
 * longer than to allocate. A GPU's stays too, since to unmap it can wait for
 * kernels. */
void iris_i_heap_give_back(struct iris_heap *heap, size_t offset)
{
    size_t start = 0, bytes = 0, end;
    struct run run;

    (void)iris_i_alloc_give_joined(heap->alloc, offset, &start, &bytes);
    if (bytes < GIVE_BACK_BYTES || heap->region.commit != IRIS_COMMIT_SHARED) {
        return;
    }
    run.end = (start - 1) / heap->piece_bytes + 1;
    end = (start + bytes) / heap->piece_bytes;
    while (run.end < end && next_run(heap->committed, 1, end, &run)) {
        decommit_run(heap, &run);
    }
}

int iris_i_heap_is_committed(const struct iris_heap *heap, size_t offset,
                             size_t bytes)
{
    struct run run = {.end = offset / heap->piece_bytes};

    return heap->region.commit == IRIS_COMMIT_NOTHING ||
           !next_run(heap->committed, 0,
                     (offset + bytes - 1) / heap->piece_bytes + 1, &run);
}

void iris_i_heap_keep(struct iris_heap *heap)
{
    struct run run = {.end = 0};

    while (heap->num_fresh != 0) {
        (void)next_run(heap->fresh, 1, num_pieces(heap), &run);
        flip(heap->fresh, &run);
        heap->num_fresh -= run.end - run.first;
    }
}

static iris_status_t take_offer(void *arg, int rank,
                                const struct iris_offer *offer)
{
    struct iris_heap *heap = arg;
    char *at = (char *)(uintptr_t)heap->bases[rank] + offer->offset;

    return iris_i_fail_on(
        heap->log, iris_i_memory_import_range(heap->backend, at, offer->bytes,
                                              &offer->handle));
}

iris_status_t iris_i_heap_share(struct iris_heap *heap,
                                struct iris_offer *offers, size_t num_offers,
                                iris_status_t status)
{
    const struct iris_exchange exchange = {.control = heap->control,
                                           .seq = heap->world->seq,
                                           .offers = offers,
                                           .num_offers = num_offers,
                                           .reachable = heap->reachable,
                                           .take = take_offer,
                                           .arg = heap};

    for (size_t i = 0; i < num_offers; i++) {
        offers[i].handle.fd = -1;
        if (status == IRIS_OK) {
            status = iris_i_memory_export_range(
                heap->backend, (char *)heap->region.base + offers[i].offset,
                &offers[i].handle);
        }
    }
    status = iris_i_exchange(&exchange, iris_i_fail_on(heap->log, status));
    for (size_t i = 0; i < num_offers; i++) {
        if (offers[i].handle.fd >= 0) {
            close(offers[i].handle.fd);
        }
    }
    return status;
}

/* This rank's fresh runs; what they are depends only on what all ranks have
 * agreed on. */
static iris_status_t share_fresh(struct iris_heap *heap, struct iris_call *call)
{
    struct iris_offer *offers = heap->offers;
    struct run run = {.end = 0};
    size_t count = 0;

    while (next_run(heap->fresh, 1, num_pieces(heap), &run)) {
        offers[count].offset = run.first * heap->piece_bytes;
        offers[count].bytes = run_bytes(heap, &run);
        call->fields[1] += offers[count].bytes;
        count++;
    }
    call->fields[0] = offers[0].offset;
    return iris_i_heap_share(heap, offers, count, IRIS_OK);
}

static const struct iris_call_type settle_call = {
    .name = "iris_malloc",
    .fields = {{.name = "offset"}, {.name = "bytes"}},
};

/* Whether peers have to map what is committed: some rank is of another
 * process, which all ranks see alike. */
static int is_shared_by_offers(const struct iris_heap *heap)
{
    int remote = 0;

    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        remote |= iris_i_control_is_remote(heap->control, rank);
    }
    return remote && heap->region.commit == IRIS_COMMIT_PRIVATE;
}

iris_status_t iris_i_heap_settle(struct iris_heap *heap)
{
    struct iris_call call = {.type = &settle_call};
    iris_status_t status = IRIS_OK;

    if (heap->num_fresh == 0) {
        return IRIS_OK;
    }
    if (is_shared_by_offers(heap)) {
        iris_i_agree_begin(heap->control, call.type);
        call.status = share_fresh(heap, &call);
        status = iris_i_agree(heap->world, &call);
    }
    if (status != IRIS_OK) {
        iris_i_heap_rollback(heap);
        return status;
    }
    iris_i_heap_keep(heap);
    return IRIS_OK;
}
