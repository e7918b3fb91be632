/* SPDX-License-Identifier: MIT
 *
 * The heap's making and unmaking: this rank's memory, every peer's mapping, and
 * the library's own corner at offset 0 (device context, device groups).
 */
#include "config.h"

#include <iris/device/layout.h>

#include "control/bootstrap.h"
#include "heap/heap.h"
#include "base/log.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t bytes)
{
    return (bytes + IRIS_ALIGNMENT - 1) / IRIS_ALIGNMENT * IRIS_ALIGNMENT;
}

static size_t context_bytes(int num_ranks)
{
    return round_up(IRIS_CONTEXT_ALL_WORDS(num_ranks) * sizeof(int64_t));
}

/* The groups are behind the context. */
IRIS_STATIC_ASSERT(IRIS_RANKS_MAX <= IRIS_CONTEXT_READABLE &&
                       IRIS_CONTEXT_READABLE <=
                           IRIS_GROUP_SLOTS * 2 * IRIS_DEV_GROUP_LANES,
                   "kernels read no heap base from behind the heap");

static size_t dev_group_bytes(int num_ranks)
{
    return round_up(iris_i_group_bytes((size_t)num_ranks));
}

size_t iris_i_heap_least(int num_ranks)
{
    return 2 * (context_bytes(num_ranks) +
                IRIS_GROUP_SLOTS * dev_group_bytes(num_ranks));
}

struct iris_dev_group *iris_i_heap_group(const iris_t *iris, int slot)
{
    return (void *)((char *)iris->heap.base + context_bytes(iris->num_ranks) +
                    (size_t)slot * dev_group_bytes(iris->num_ranks));
}

/* The allocator's first range is the library's own, with memory behind it. */
static iris_status_t reserve(iris_t *iris)
{
    size_t page = iris->device.page_bytes, pieces, offset;
    iris_status_t status = IRIS_OK;

    iris->piece_bytes = page > IRIS_COMMIT_BYTES ? page : IRIS_COMMIT_BYTES;
    pieces = iris->heap.bytes / iris->piece_bytes + 1;
    iris->backed = calloc(pieces / 64 + 1, sizeof(uint64_t));
    iris->fresh = calloc(pieces / 64 + 1, sizeof(uint64_t));
    iris->offers = calloc(pieces / 2 + 1, sizeof *iris->offers);
    if (iris->heap.window_bytes > 0) {
        status = iris_i_alloc_create(iris->heap.window_bytes, &iris->window);
    }
    if (status != IRIS_OK || iris->backed == NULL || iris->fresh == NULL ||
        iris->offers == NULL ||
        iris_i_alloc_create(iris->heap.bytes, &iris->alloc) != IRIS_OK ||
        iris_i_alloc_take(iris->alloc, iris->reserved_bytes, IRIS_ALIGNMENT,
                          &offset) != IRIS_OK) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the heap's own records");
    }
    if (iris->heap.commit == IRIS_COMMIT_NOTHING) {
        iris->num_backed = pieces;
        return IRIS_OK;
    }
    status = iris_i_heap_back(iris, 0, iris->reserved_bytes);
    if (status == IRIS_OK) { /* peers get it with the heap */
        iris_i_heap_keep(iris);
    }
    return status;
}

iris_status_t iris_i_heap_open(iris_t *iris, struct iris_hello *hello)
{
    size_t bytes = (size_t)iris->settings.heap_bytes.number;
    size_t own = iris_i_heap_least(iris->num_ranks) / 2;
    iris_status_t status;

    if (bytes < 2 * own) {
        return iris_i_fail(&iris->log, IRIS_ERR_CONFIG,
                           "a heap of %zu bytes is too small: the library "
                           "itself needs %zu for %d ranks; raise "
                           "IRIS_HEAP_SIZE",
                           bytes, own, iris->num_ranks);
    }
    iris->reserved_bytes = own;
    status = iris_i_memory_alloc(iris->backend, bytes, &iris->heap);
    if (status == IRIS_OK) {
        status = reserve(iris);
    }
    if (status == IRIS_OK && iris->heap.commit == IRIS_COMMIT_PRIVATE &&
        iris->num_ranks > 1) {
        status = iris_i_exchange_open(iris->num_ranks, hello->exchange,
                                      &iris->exchange);
    }
    if (status != IRIS_OK) {
        return status;
    }
    return iris_i_memory_export(iris->backend, &iris->heap, &hello->handle);
}

/* Milliseconds from the end of a process's memory to the end of it. */
#define DEATH_MS 100

/* A peer that died has taken its memory with it. */
static iris_status_t fail_import(iris_t *iris, iris_status_t status)
{
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t lost = IRIS_OK;

    snprintf(message, sizeof message, "%s", iris_last_error());
    for (int ms = 0; lost == IRIS_OK && ms < DEATH_MS; ms++) {
        poll(NULL, 0, ms > 0);
        lost = iris_i_peers_check_all(iris);
    }
    return lost != IRIS_OK ? lost : iris_i_fail_again(status, message);
}

static iris_status_t map_peers(iris_t *iris, const struct iris_meeting *meeting)
{
    for (int rank = 0; rank < iris->num_ranks; rank++) {
        void *base = iris->heap.base;
        iris_status_t status = IRIS_OK;

        if (rank != iris->rank) {
            status = iris_i_memory_import(iris->backend,
                                          &meeting->hellos[rank].handle,
                                          iris->heap.bytes, &base);
        }
        if (status != IRIS_OK) {
            return fail_import(iris, status);
        }
        iris->heap_bases[rank] = (int64_t)(uintptr_t)base;
    }
    return IRIS_OK;
}

static iris_status_t write_context(iris_t *iris)
{
    size_t bytes = IRIS_CONTEXT_ALL_WORDS(iris->num_ranks) * sizeof(int64_t);
    int64_t *own, *words = calloc(1, bytes);
    iris_status_t status;

    if (words == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY, "no memory");
    }
    words[IRIS_CONTEXT_RANK] = iris->rank;
    words[IRIS_CONTEXT_NUM_RANKS] = iris->num_ranks;
    memcpy(&words[IRIS_CONTEXT_HEAP_BASES], iris->heap_bases,
           (size_t)iris->num_ranks * sizeof(int64_t));
    own = words + IRIS_CONTEXT_WORDS(iris->num_ranks);
    own[IRIS_CONTEXT_OWN_WATCH] = (int64_t)iris->device.watch;
    own[IRIS_CONTEXT_OWN_TIMEOUT] =
        iris->settings.device_timeout_ms.number * iris->device.clock_khz;
    iris->device_context = iris->heap.base;
    status = iris_i_heap_write(iris, iris->device_context, words, bytes);
    free(words);
    return status;
}

iris_status_t iris_i_heap_connect(iris_t *iris,
                                  const struct iris_meeting *meeting)
{
    iris_status_t status;

    iris->heap_bases = calloc((size_t)iris->num_ranks, sizeof(int64_t));
    if (iris->heap_bases == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY, "no memory");
    }
    if (iris->exchange != NULL &&
        !iris_i_exchange_connect(iris->exchange, meeting)) {
        iris_i_exchange_close(iris->exchange);
        iris->exchange = NULL;
    }
    status = map_peers(iris, meeting);
    return status == IRIS_OK ? write_context(iris) : status;
}

void iris_i_heap_disconnect(iris_t *iris)
{
    for (int rank = 0; iris->heap_bases != NULL && rank < iris->num_ranks;
         rank++) {
        if (rank != iris->rank && iris->heap_bases[rank] != 0) {
            iris_i_memory_unimport(iris->backend,
                                   (void *)(uintptr_t)iris->heap_bases[rank],
                                   iris->heap.bytes);
            iris->heap_bases[rank] = 0;
        }
    }
}

void iris_i_heap_close(iris_t *iris)
{
    iris_i_heap_disconnect(iris);
    if (iris->heap.base != NULL) {
        iris_i_memory_free(iris->backend, &iris->heap);
    }
    iris_i_exchange_close(iris->exchange);
    iris_i_adopted_close(iris);
    iris_i_alloc_destroy(iris->window);
    iris_i_alloc_destroy(iris->alloc);
    free(iris->offers);
    free(iris->fresh);
    free(iris->backed);
    free(iris->heap_bases);
}
