/* SPDX-License-Identifier: MIT
 *
 * Memory behind the heap: put there when an allocation needs it and, on heaps
 * that are addresses first, told to every peer before anybody may use it.
 */
#include "config.h"

#include "heap/heap.h"

#include "base/log.h"

#include <string.h>
#include <unistd.h>

/* Consecutive pieces. */
struct run {
    size_t first;
    size_t end;
};

static int has(const uint64_t *bits, size_t piece)
{
    return (int)(bits[piece / 64] >> (piece % 64) & 1);
}

static void flip(uint64_t *bits, const struct run *run)
{
    for (size_t piece = run->first; piece < run->end; piece++) {
        bits[piece / 64] ^= UINT64_C(1) << (piece % 64);
    }
}

/* The first run from run->end on, before `end`, of pieces whose bit is `value`;
 * 0: none. */
static int next_run(const uint64_t *bits, int value, size_t end,
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

static size_t num_pieces(const iris_t *iris)
{
    return (iris->heap.bytes - 1) / iris->piece_bytes + 1;
}

/* The heap may end within its last piece. A heap that grows does not mind. */
static size_t run_bytes(const iris_t *iris, const struct run *run)
{
    size_t start = run->first * iris->piece_bytes;
    size_t bytes = (run->end - run->first) * iris->piece_bytes;

    return iris->heap.commit == IRIS_COMMIT_SHARED &&
                   bytes > iris->heap.bytes - start
               ? iris->heap.bytes - start
               : bytes;
}

static void *run_at(const iris_t *iris, const struct run *run)
{
    return (char *)iris->heap.base + run->first * iris->piece_bytes;
}

static iris_status_t back_run(iris_t *iris, const struct run *run)
{
    return iris_i_memory_commit(iris->backend, run_at(iris, run),
                                run_bytes(iris, run));
}

iris_status_t iris_i_heap_back(iris_t *iris, size_t offset, size_t bytes)
{
    struct run run = {.end = offset / iris->piece_bytes};
    size_t end = (offset + bytes - 1) / iris->piece_bytes + 1;

    if (iris->heap.commit == IRIS_COMMIT_NOTHING) {
        return IRIS_OK;
    }
    while (next_run(iris->backed, 0, end, &run)) {
        iris_status_t status = back_run(iris, &run);

        if (status != IRIS_OK) {
            iris_i_heap_unback(iris);
            return status;
        }
        flip(iris->backed, &run);
        iris->num_backed += run.end - run.first;
        if (iris->heap.commit == IRIS_COMMIT_PRIVATE) {
            flip(iris->fresh, &run);
            iris->num_fresh += run.end - run.first;
        }
    }
    return IRIS_OK;
}

void iris_i_heap_unmap(iris_t *iris, size_t offset)
{
    for (int rank = 0; rank < iris->num_ranks; rank++) {
        if (iris_i_exchange_has(iris->exchange, rank)) {
            iris_i_memory_decommit(
                iris->backend,
                (char *)(uintptr_t)iris->heap_bases[rank] + offset, 0);
        }
    }
    iris_i_memory_decommit(iris->backend, (char *)iris->heap.base + offset, 0);
}

void iris_i_heap_unback(iris_t *iris)
{
    struct run run = {.end = 0};

    while (iris->num_fresh != 0) {
        (void)next_run(iris->fresh, 1, num_pieces(iris), &run);
        iris_i_heap_unmap(iris, run.first * iris->piece_bytes);
        flip(iris->fresh, &run);
        flip(iris->backed, &run);
        iris->num_fresh -= run.end - run.first;
        iris->num_backed -= run.end - run.first;
    }
}

void iris_i_heap_keep(iris_t *iris)
{
    memset(iris->fresh, 0, (num_pieces(iris) / 64 + 1) * sizeof(uint64_t));
    iris->num_fresh = 0;
}

static iris_status_t take_offer(iris_t *iris, int rank,
                                const struct iris_offer *offer)
{
    char *at = (char *)(uintptr_t)iris->heap_bases[rank] + offer->offset;

    return iris_i_fail_on(
        &iris->log, iris_i_memory_import_range(iris->backend, at, offer->bytes,
                                               &offer->handle));
}

iris_status_t iris_i_heap_share(iris_t *iris, struct iris_offer *offers,
                                size_t num_offers, iris_status_t status)
{
    for (size_t i = 0; i < num_offers; i++) {
        offers[i].handle.fd = -1;
        if (status == IRIS_OK) {
            status = iris_i_memory_export_range(
                iris->backend, (char *)iris->heap.base + offers[i].offset,
                &offers[i].handle);
        }
    }
    status = iris_i_exchange(iris, offers, num_offers,
                             iris_i_fail_on(&iris->log, status), take_offer);
    for (size_t i = 0; i < num_offers; i++) {
        if (offers[i].handle.fd >= 0) {
            close(offers[i].handle.fd);
        }
    }
    return status;
}

/* This rank's fresh runs; what they are depends only on what all ranks have
 * agreed on. */
static iris_status_t share_fresh(iris_t *iris, struct iris_call *call)
{
    struct iris_offer *offers = iris->offers;
    struct run run = {.end = 0};
    size_t count = 0;

    while (next_run(iris->fresh, 1, num_pieces(iris), &run)) {
        offers[count].offset = run.first * iris->piece_bytes;
        offers[count].bytes = run_bytes(iris, &run);
        call->args[1] += offers[count].bytes;
        count++;
    }
    call->args[0] = offers[0].offset;
    return iris_i_heap_share(iris, offers, count, IRIS_OK);
}

iris_status_t iris_i_heap_settle(iris_t *iris)
{
    struct iris_call call = {.kind = IRIS_CALL_GROW};
    iris_status_t status = IRIS_OK;

    if (iris->num_fresh == 0) {
        return IRIS_OK;
    }
    if (iris->exchange != NULL) {
        iris_i_meet_begin(iris, call.kind);
        call.status = share_fresh(iris, &call);
        status = iris_i_meet(iris, iris->world, &call);
    }
    if (status != IRIS_OK) {
        iris_i_heap_unback(iris);
        return status;
    }
    iris_i_heap_keep(iris);
    return IRIS_OK;
}
