/* SPDX-License-Identifier: MIT
 *
 * Passive target: the window is locked once, as long as it is open. MPI orders
 * puts by flushes only, so a block that overlaps an earlier one waits for a
 * flush.
 */
#include "config.h"

#include "transport/mpi_internal.h"

#if HAVE_MPI

#include <iris/device/core/ring.h>

#include "heap/heap.h"

#include <stdlib.h>
#include <string.h>

/* Smaller puts go by messages: a packet holds many of them, and they need no
 * flush. */
#define BLOCK_BYTES 1024

/* Number of copies of blocks in flight. */
#define NUM_COPIES 64

/* The range of the heap to which blocks have gone since the last flush. */
struct unflushed {
    uint64_t begin;
    uint64_t end; /* 0: no block */
};

struct iris_mpi_window {
    struct iris_heap *heap;
    MPI_Win win;
    struct unflushed *unflushed; /* for each rank */
    unsigned char *copies;       /* NUM_COPIES of IRIS_RING_BYTES */
    unsigned num_copies;         /* copies in use */
};

/* 1 if `good` holds on all ranks. */
static int agree_on(MPI_Comm comm, int good)
{
    int all = 0;

    return MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm) ==
               MPI_SUCCESS &&
           all;
}

/* Leaves no window on failure, unless MPI made one on some ranks only: freeing
 * it takes all ranks. */
static int open_win(void *base, size_t bytes, MPI_Comm comm, MPI_Win *win_p)
{
    int made, good;

    made = MPI_Win_create(base, (MPI_Aint)bytes, 1, MPI_INFO_NULL, comm,
                          win_p) == MPI_SUCCESS;
    if (!agree_on(comm, made)) {
        return 0;
    }
    MPI_Win_set_errhandler(*win_p, MPI_ERRORS_RETURN);
    good = MPI_Win_lock_all(MPI_MODE_NOCHECK, *win_p) == MPI_SUCCESS;
    if (agree_on(comm, good)) {
        return 1;
    }
    if (good) {
        MPI_Win_unlock_all(*win_p);
    }
    MPI_Win_free(win_p);
    return 0;
}

static void close_win(MPI_Win *win)
{
    MPI_Win_unlock_all(*win);
    MPI_Win_free(win);
}

static int holds_heap(const unsigned char *bytes, unsigned char value)
{
    for (size_t i = 0; i < IRIS_RING_BYTES; i++) {
        if (bytes[i] != value) {
            return 0;
        }
    }
    return 1;
}

/* Tests the window: each rank puts two blocks to the next, which must have
 * arrived after a flush. */
static int blocks_arrive(MPI_Win win, MPI_Comm comm, unsigned char *memory)
{
    unsigned char *source = memory + 2 * IRIS_RING_BYTES;
    int rank, num_ranks, good, next, last;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &num_ranks);
    next = (rank + 1) % num_ranks;
    last = (rank + num_ranks - 1) % num_ranks;
    memset(source, 1 + rank % 255, IRIS_RING_BYTES);
    good = 1;
    for (size_t i = 0; i < 2; i++) {
        good &= MPI_Put(source, IRIS_RING_BYTES, MPI_BYTE, next,
                        (MPI_Aint)(i * IRIS_RING_BYTES), IRIS_RING_BYTES,
                        MPI_BYTE, win) == MPI_SUCCESS;
    }
    good &= MPI_Win_flush(next, win) == MPI_SUCCESS;
    good = agree_on(comm, good);
    MPI_Win_sync(win);
    good &= holds_heap(memory, (unsigned char)(1 + last % 255));
    good &=
        holds_heap(memory + IRIS_RING_BYTES, (unsigned char)(1 + last % 255));
    return agree_on(comm, good);
}

static int try_window(MPI_Comm comm)
{
    unsigned char *memory = calloc(3, IRIS_RING_BYTES);
    int good = agree_on(comm, memory != NULL);
    MPI_Win win;

    good = good && open_win(memory, (size_t)2 * IRIS_RING_BYTES, comm, &win);
    if (good) {
        good = blocks_arrive(win, comm, memory);
        close_win(&win);
    }
    free(memory);
    return good;
}

struct iris_mpi_window *iris_i_mpi_window_open(struct iris_heap *heap,
                                               MPI_Comm comm)
{
    struct iris_mpi_window *window = calloc(1, sizeof *window);
    int good = window != NULL;

    if (good) {
        window->heap = heap;
        window->unflushed =
            calloc((size_t)heap->log->num_ranks, sizeof window->unflushed[0]);
        window->copies = malloc((size_t)NUM_COPIES * IRIS_RING_BYTES);
        good = window->unflushed != NULL && window->copies != NULL;
    }
    if (agree_on(comm, good) && try_window(comm) &&
        open_win(iris_i_heap_base(&heap->memory),
                 iris_i_heap_bytes(&heap->memory), comm, &window->win)) {
        return window;
    }
    if (window != NULL) {
        free(window->unflushed);
        free(window->copies);
    }
    free(window);
    return NULL;
}

int iris_i_mpi_window_put(struct iris_mpi_window *window, int rank,
                          uint64_t offset, const void *data, size_t bytes)
{
    const struct iris_heap_memory *memory = &window->heap->memory;
    size_t heap_bytes = iris_i_heap_bytes(memory);
    struct unflushed *range = &window->unflushed[rank];
    unsigned char *copy;

    if (bytes < BLOCK_BYTES || bytes > heap_bytes ||
        offset > heap_bytes - bytes ||
        !iris_i_heap_is_committed(memory, (size_t)offset, bytes)) {
        return 0;
    }
    if (range->end > offset && range->begin < offset + bytes &&
        !iris_i_mpi_window_flush(window, rank)) {
        return 0;
    }
    if (window->num_copies == NUM_COPIES) {
        if (MPI_Win_flush_local_all(window->win) != MPI_SUCCESS) {
            return 0;
        }
        window->num_copies = 0;
    }
    copy = window->copies + (size_t)window->num_copies * IRIS_RING_BYTES;
    memcpy(copy, data, bytes);
    if (MPI_Put(copy, (int)bytes, MPI_BYTE, rank, (MPI_Aint)offset, (int)bytes,
                MPI_BYTE, window->win) != MPI_SUCCESS) {
        return 0;
    }
    window->num_copies++;
    range->begin =
        range->end == 0 || offset < range->begin ? offset : range->begin;
    range->end = offset + bytes > range->end ? offset + bytes : range->end;
    return 1;
}

int iris_i_mpi_window_flush(struct iris_mpi_window *window, int rank)
{
    if (window->unflushed[rank].end != 0 &&
        MPI_Win_flush(rank, window->win) != MPI_SUCCESS) {
        return 0;
    }
    window->unflushed[rank].end = 0;
    return 1;
}

void iris_i_mpi_window_see(struct iris_mpi_window *window)
{
    MPI_Win_sync(window->win);
}

void iris_i_mpi_window_close(struct iris_mpi_window *window)
{
    if (window == NULL) {
        return;
    }
    close_win(&window->win);
    free(window->unflushed);
    free(window->copies);
    free(window);
}

#endif
