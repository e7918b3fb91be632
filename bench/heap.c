/* SPDX-License-Identifier: MIT
 *
 * Measures malloc and free with many live allocations: in the allocator alone,
 * and in the collective calls.
 */
#include "config.h"

#include "heap/heap.h"
#include "bench.h"

#include <stdlib.h>

#define MAX_SAMPLES 20000
/* Collective calls take longer than the allocator. */
#define MAX_COLLECTIVE 5000
#define WARM_ROUNDS 200
#define LEAST_BYTES 16

enum { MALLOC, FREE, MALLOC_LOCAL, FREE_LOCAL };

static const char *const heap_names[] = {"malloc", "free", "malloc_local",
                                         "free_local", NULL};

struct block {
    size_t offset;
    size_t bytes;
};

struct heap {
    struct iris_alloc *alloc; /* NULL: use the public calls */
    struct bench *b;
    struct block *blocks;
    size_t live;
    char *base; /* start of the heap, for offsets */
    uint64_t seed;
};

/* Gives the same numbers on every rank (xorshift64*). */
static uint64_t next_size(struct heap *heap)
{
    heap->seed ^= heap->seed >> 12;
    heap->seed ^= heap->seed << 25;
    heap->seed ^= heap->seed >> 27;
    return heap->seed * UINT64_C(2685821657736338717);
}

/* Returns a size from 16 bytes to 4 KiB. Sizes from 16 to 32 are as likely as
 * sizes from 2048 to 4096. */
static size_t next_bytes(struct heap *heap)
{
    size_t least = (size_t)LEAST_BYTES << (next_size(heap) >> 61);

    return least + next_size(heap) % least;
}

static iris_status_t take_block(struct heap *heap, struct block *block)
{
    void *ptr;
    iris_status_t status;

    block->bytes = next_bytes(heap);
    if (heap->alloc != NULL) {
        return iris_i_alloc_take(heap->alloc, block->bytes, IRIS_ALIGNMENT,
                                 &block->offset);
    }
    status = iris_malloc(heap->b->iris, block->bytes, &ptr);
    if (status == IRIS_OK) {
        block->offset = (size_t)((char *)ptr - heap->base);
    }
    return status;
}

static iris_status_t give_block(struct heap *heap, const struct block *block)
{
    return heap->alloc != NULL
               ? iris_i_alloc_give(heap->alloc, block->offset)
               : iris_free(heap->b->iris, heap->base + block->offset);
}

static int by_offset(const void *a, const void *b)
{
    const struct block *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Checks that no two live blocks overlap, and that every rank has them at the
 * same offsets. */
static iris_status_t verify_heap(struct heap *heap, uint64_t *wrong_p)
{
    struct block *blocks = heap->blocks;
    double hash[2] = {0, 0};
    iris_status_t status;

    qsort(blocks, heap->live, sizeof *blocks, by_offset);
    for (size_t i = 0; i < heap->live; i++) {
        *wrong_p += blocks[i].offset % IRIS_ALIGNMENT != 0;
        *wrong_p += i > 0 && blocks[i].offset <
                                 blocks[i - 1].offset + blocks[i - 1].bytes;
        hash[0] += (double)(blocks[i].offset % 65521) * (double)(i % 251 + 1);
    }
    hash[1] = -hash[0];
    status = bench_max(heap->b, hash, 2);
    *wrong_p += status == IRIS_OK && hash[0] != -hash[1];
    return status == IRIS_OK ? bench_sum(heap->b, wrong_p) : status;
}

/* Frees a random live block and allocates one of another size, again and again.
 * Times the frees or the allocations. */
static iris_status_t sample_heap(struct heap *heap, bool frees, double *samples,
                                 size_t count)
{
    iris_status_t status = IRIS_OK;

    for (size_t i = 0; i < count + WARM_ROUNDS && status == IRIS_OK; i++) {
        struct block *block = &heap->blocks[next_size(heap) % heap->live];
        int64_t begin = bench_now_ns(), middle, end;

        status = give_block(heap, block);
        middle = bench_now_ns();
        if (status == IRIS_OK) {
            status = take_block(heap, block);
        }
        end = bench_now_ns();
        if (i >= WARM_ROUNDS) {
            samples[i - WARM_ROUNDS] =
                (double)(frees ? middle - begin : end - middle) / 1e3;
        }
    }
    return status;
}

static iris_status_t measure_heap(struct heap *heap, bool frees,
                                  struct bench_row *row_p)
{
    size_t count = heap->alloc != NULL ? MAX_SAMPLES : MAX_COLLECTIVE;
    double *samples = malloc(count * sizeof *samples);
    iris_status_t status = IRIS_OK;
    size_t live;

    if (samples == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    for (live = 0; live < heap->live && status == IRIS_OK; live++) {
        status = take_block(heap, &heap->blocks[live]);
    }
    if (status == IRIS_OK) {
        status = sample_heap(heap, frees, samples, count);
    }
    if (status == IRIS_OK) {
        status = verify_heap(heap, &row_p->wrong);
    }
    if (status == IRIS_OK) {
        status = bench_sampled(heap->b, samples, count, row_p);
    }
    for (size_t i = 0; i < live && status == IRIS_OK; i++) {
        status = give_block(heap, &heap->blocks[i]);
    }
    free(samples);
    return status;
}

static iris_status_t run_heap(struct bench *b, size_t op,
                              struct bench_row *row_p)
{
    struct heap heap = {
        .b = b,
        .live = b->options.live,
        .base = (char *)(uintptr_t)iris_heap_bases(b->iris)[b->rank],
        .seed = 88172645463325252u};
    struct iris_heap_stats stats;
    iris_status_t status = iris_heap_stats(b->iris, &stats);

    heap.blocks = calloc(heap.live, sizeof *heap.blocks);
    if (heap.blocks == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    if (status == IRIS_OK && op >= MALLOC_LOCAL) {
        status = iris_i_alloc_create(stats.heap_bytes, &heap.alloc);
    }
    if (status == IRIS_OK) {
        status = measure_heap(&heap, op == FREE || op == FREE_LOCAL, row_p);
    }
    iris_i_alloc_destroy(heap.alloc);
    free(heap.blocks);
    return status;
}

const struct bench_group bench_heap = {
    .name = "heap",
    .text = "16 bytes to 4 KiB among --live allocations; malloc, free: the "
            "collective calls; malloc_local, free_local: their allocator alone",
    .ops = heap_names,
    .axis = BENCH_ONCE,
    .run = run_heap,
};
