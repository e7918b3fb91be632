/* SPDX-License-Identifier: MIT
 *
 * Memory of the heap. It is committed when an allocation needs it.
 */
#include "config.h"

#include "heap/heap.h"

#include "backend/calls.h"

#include <stdlib.h>

/* Free ranges of at least this size give their memory back. */
#define GIVE_BACK_BYTES ((size_t)1 << 20)

/* Consecutive pieces. */
struct run {
    size_t first;
    size_t end;
};

iris_status_t iris_i_heap_memory_open(struct iris_heap_memory *memory,
                                      size_t bytes)
{
    struct iris_device_info info;
    iris_status_t status =
        iris_i_memory_alloc(memory->backend, bytes, &memory->region);
    size_t pieces;

    if (status != IRIS_OK) {
        return status;
    }
    iris_i_device_info(memory->backend, &info);
    memory->piece_bytes = info.page_bytes > IRIS_COMMIT_BYTES
                              ? info.page_bytes
                              : IRIS_COMMIT_BYTES;
    pieces = memory->region.bytes / memory->piece_bytes + 1;
    memory->committed = calloc(pieces / 64 + 1, sizeof memory->committed[0]);
    memory->fresh = calloc(pieces / 64 + 1, sizeof memory->fresh[0]);
    if (memory->region.commit == IRIS_COMMIT_NOTHING) {
        memory->num_committed = pieces;
    }
    return memory->committed == NULL || memory->fresh == NULL
               ? iris_i_fail(memory->log, IRIS_ERR_NO_MEMORY,
                             "no memory for the heap's own records")
               : IRIS_OK;
}

void iris_i_heap_memory_close(struct iris_heap_memory *memory)
{
    if (memory->region.base != NULL) {
        iris_i_memory_free(memory->backend, &memory->region);
    }
    free(memory->fresh);
    free(memory->committed);
    free(memory->reachable);
    free(memory->bases);
    free(memory->nodes);
}

/* ---- Pieces ---- */

/* Any thread may check whether the range of its work is committed. */
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

/* Finds the first run, after run->end and before `end`, of pieces whose bit is
 * `value`. Returns 1, or 0 if no piece has it. */
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

/* The piece after the range that ends at `offset`, which is not 0. */
static size_t end_of(const struct iris_heap_memory *memory, size_t offset)
{
    return (offset - 1) / memory->piece_bytes + 1;
}

/* The heap may end within its last piece. A heap that grows is not affected. */
static size_t run_bytes(const struct iris_heap_memory *memory,
                        const struct run *run)
{
    size_t start = run->first * memory->piece_bytes;
    size_t bytes = (run->end - run->first) * memory->piece_bytes;

    return memory->region.commit == IRIS_COMMIT_SHARED &&
                   bytes > memory->region.bytes - start
               ? memory->region.bytes - start
               : bytes;
}

static void *run_at(const struct iris_heap_memory *memory,
                    const struct run *run)
{
    return iris_i_heap_base(memory) + run->first * memory->piece_bytes;
}

iris_status_t iris_i_heap_commit(struct iris_heap_memory *memory, size_t offset,
                                 size_t bytes)
{
    struct run run = {.end = offset / memory->piece_bytes};

    if (memory->region.commit == IRIS_COMMIT_NOTHING) {
        return IRIS_OK;
    }
    while (
        next_run(memory->committed, 0, end_of(memory, offset + bytes), &run)) {
        iris_status_t status = iris_i_memory_commit(
            memory->backend, run_at(memory, &run), run_bytes(memory, &run));

        if (status != IRIS_OK) {
            iris_i_heap_rollback(memory);
            return status;
        }
        flip(memory->committed, &run);
        memory->num_committed += run.end - run.first;
        flip(memory->fresh, &run);
        memory->num_fresh += run.end - run.first;
    }
    return IRIS_OK;
}

void iris_i_heap_unmap(struct iris_heap_memory *memory, size_t offset)
{
    for (int rank = 0; rank < memory->log->num_ranks; rank++) {
        if (memory->bases != NULL && memory->bases[rank] != 0 &&
            iris_i_control_is_remote(memory->control, rank)) {
            iris_i_memory_decommit(
                memory->backend,
                (char *)(uintptr_t)memory->bases[rank] + offset, 0);
        }
    }
    iris_i_memory_decommit(memory->backend, iris_i_heap_base(memory) + offset,
                           0);
}

/* Decommits a run. If peers map each commit, one commit made the whole run. */
static void decommit_run(struct iris_heap_memory *memory, const struct run *run)
{
    if (memory->region.commit == IRIS_COMMIT_PRIVATE) {
        iris_i_heap_unmap(memory, run->first * memory->piece_bytes);
    } else {
        iris_i_memory_decommit(memory->backend, run_at(memory, run),
                               run_bytes(memory, run));
    }
    flip(memory->committed, run);
    memory->num_committed -= run->end - run->first;
}

/* Marks no piece as fresh any more. */
static void end_commit(struct iris_heap_memory *memory, int keep)
{
    struct run run = {.end = 0};

    while (memory->num_fresh != 0) {
        (void)next_run(memory->fresh, 1, end_of(memory, memory->region.bytes),
                       &run);
        if (!keep) {
            decommit_run(memory, &run);
        }
        flip(memory->fresh, &run);
        memory->num_fresh -= run.end - run.first;
    }
}

void iris_i_heap_rollback(struct iris_heap_memory *memory)
{
    end_commit(memory, 0);
}

void iris_i_heap_keep(struct iris_heap_memory *memory)
{
    end_commit(memory, 1);
}

int iris_i_heap_next_run(const struct iris_heap_memory *memory, int fresh,
                         size_t end, struct iris_heap_run *run)
{
    struct run pieces = {.end = run->bytes == 0
                                    ? run->offset / memory->piece_bytes
                                    : end_of(memory, run->offset + run->bytes)};
    int found = next_run(memory->fresh, fresh, end_of(memory, end), &pieces);

    run->offset = pieces.first * memory->piece_bytes;
    run->bytes = run_bytes(memory, &pieces);
    return found;
}

/* Keeps memory in which small allocations come and go: committing takes longer
 * than allocating. Keeps a GPU's memory, too, since unmapping it can wait for
 * kernels. */
void iris_i_heap_give_back(struct iris_heap_memory *memory, size_t offset,
                           size_t bytes)
{
    size_t end = (offset + bytes) / memory->piece_bytes;
    struct run run;

    if (bytes < GIVE_BACK_BYTES ||
        memory->region.commit != IRIS_COMMIT_SHARED) {
        return;
    }
    run.end = end_of(memory, offset);
    while (run.end < end && next_run(memory->committed, 1, end, &run)) {
        decommit_run(memory, &run);
    }
}

int iris_i_heap_is_committed(const struct iris_heap_memory *memory,
                             size_t offset, size_t bytes)
{
    struct run run = {.end = offset / memory->piece_bytes};

    return memory->region.commit == IRIS_COMMIT_NOTHING ||
           !next_run(memory->committed, 0, end_of(memory, offset + bytes),
                     &run);
}

/* ---- Contents ---- */

iris_status_t iris_i_heap_synchronize(struct iris_heap_memory *memory)
{
    iris_status_t status;

    iris_i_control_wait_stream(memory->control, 1);
    status = iris_i_queue_synchronize(memory->stream);
    iris_i_control_wait_stream(memory->control, -1);
    return iris_i_fail_on(memory->log, status);
}

iris_status_t iris_i_heap_copy(struct iris_heap_memory *memory, void *dst,
                               const void *src, size_t bytes)
{
    iris_status_t status = iris_i_heap_synchronize(memory);

    if (status == IRIS_OK) { /* so that nothing delays the copy for long */
        status = iris_i_queue_copy(memory->stream, dst, src, bytes);
    }
    return status != IRIS_OK ? iris_i_fail_on(memory->log, status)
                             : iris_i_heap_synchronize(memory);
}

/* Waits for work twice. During a capture of the default stream, the first wait
 * fails; otherwise the fill would become part of the capture. */
iris_status_t iris_i_heap_zero(struct iris_heap_memory *memory, size_t offset,
                               size_t bytes)
{
    iris_status_t status = iris_i_heap_synchronize(memory);

    if (status == IRIS_OK) {
        status = iris_i_queue_set(memory->stream,
                                  iris_i_heap_base(memory) + offset, 0, bytes);
    }
    return status != IRIS_OK ? iris_i_fail_on(memory->log, status)
                             : iris_i_heap_synchronize(memory);
}

iris_status_t iris_i_heap_clear(struct iris_heap_memory *memory, void *ptr,
                                size_t bytes)
{
    size_t offset = iris_i_heap_offset(memory, ptr);
    struct iris_heap_run run = {.offset = offset};
    iris_status_t status;

    if (memory->region.commit != IRIS_COMMIT_SHARED) {
        return iris_i_heap_zero(memory, offset, bytes);
    }
    status = iris_i_heap_commit(memory, offset, bytes);
    if (status != IRIS_OK) {
        return iris_i_fail_on(memory->log, status);
    }
    while (status == IRIS_OK &&
           iris_i_heap_next_run(memory, 0, offset + bytes, &run)) {
        size_t first = run.offset, last = run.offset + run.bytes;

        first = first < offset ? offset : first;
        last = last > offset + bytes ? offset + bytes : last;
        status = iris_i_heap_zero(memory, first, last - first);
    }
    if (status == IRIS_OK) {
        iris_i_heap_keep(memory);
    } else {
        iris_i_heap_rollback(memory);
    }
    return status;
}

/* ---- Peers ---- */

/* Starts with this rank's own heap, which is the likeliest. */
int iris_i_heap_owner(const struct iris_heap_memory *memory,
                      const void *address, size_t *offset_p)
{
    int num_ranks = memory->bases == NULL ? 0 : memory->log->num_ranks;

    for (int i = 0; i < num_ranks; i++) {
        int rank = (memory->log->rank + i) % num_ranks;
        uintptr_t base = (uintptr_t)memory->bases[rank];

        *offset_p = (size_t)((uintptr_t)address - base);
        if (base != 0 && *offset_p < memory->region.bytes) {
            return rank;
        }
    }
    return -1;
}
