/* SPDX-License-Identifier: MIT
 *
 * The heap's memory: the addresses of this rank's heap, the pieces of it that
 * have memory, and where the peers' heaps are mapped.
 */
#ifndef IRIS_SRC_HEAP_HEAP_MEMORY_H
#define IRIS_SRC_HEAP_HEAP_MEMORY_H

#include <stdatomic.h>

#include "backend/backend.h"
#include "control/control.h"

struct iris_heap_memory {
    const struct iris_log *log;
    struct iris_backend *backend;
    struct iris_stream *stream;   /* for the heap's own copies and fills */
    struct iris_control *control; /* NULL before iris_i_heap_connect() */
    struct iris_heap_region region;
    int64_t *bases; /* of each rank's heap, as mapped here; 0: not. NULL before
                     * iris_i_heap_connect() */
    unsigned char *reachable; /* 1: bases[rank] is not 0 */
    int *nodes;               /* each rank's node; NULL, too, before that */
    int num_nodes;            /* that the job's ranks are on */

    /* Memory is committed in pieces. Bits of the committed ones, and of those
     * that an allocation under way has committed and may have to undo. */
    size_t piece_bytes;
    _Atomic uint64_t *committed;
    _Atomic uint64_t *fresh;
    atomic_size_t num_committed;
    size_t num_fresh;
};

/* Allocates this rank's heap, of `bytes`. The caller closes it, also if this
 * fails. */
iris_status_t iris_i_heap_memory_open(struct iris_heap_memory *memory,
                                      size_t bytes);
void iris_i_heap_memory_close(struct iris_heap_memory *memory);

/* Commits memory to every piece of [offset, offset + bytes) that lacks it, or
 * to none. iris_i_heap_rollback() or iris_i_heap_keep() must follow.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_commit(struct iris_heap_memory *memory, size_t offset,
                                 size_t bytes);

/* Takes that memory away again. */
void iris_i_heap_rollback(struct iris_heap_memory *memory);

/* Or keeps it: peers have it, or will have it by another way. */
void iris_i_heap_keep(struct iris_heap_memory *memory);

/* Consecutive pieces. */
struct iris_heap_run {
    size_t offset;
    size_t bytes;
};

/* The first run behind *run, before `end`, that the latest commit has put
 * memory behind, or, with `fresh` 0, that had it before; 0: there is none. */
int iris_i_heap_next_run(const struct iris_heap_memory *memory, int fresh,
                         size_t end, struct iris_heap_run *run);

/* Gives whole pieces of a free range back to the system, if it is worth it. */
void iris_i_heap_give_back(struct iris_heap_memory *memory, size_t offset,
                           size_t bytes);

/* Whether every piece of the range has memory. */
int iris_i_heap_is_committed(const struct iris_heap_memory *memory,
                             size_t offset, size_t bytes);

/* Takes away what is mapped at a heap offset, here and for every peer. */
void iris_i_heap_unmap(struct iris_heap_memory *memory, size_t offset);

/* Waits for the heap's stream; peers can see that this rank does. */
iris_status_t iris_i_heap_synchronize(struct iris_heap_memory *memory);

/* Copies between host memory and a heap, and waits for it. */
iris_status_t iris_i_heap_copy(struct iris_heap_memory *memory, void *dst,
                               const void *src, size_t bytes);

/* Zeroes a range of this rank's heap, in order with its stream, and waits. */
iris_status_t iris_i_heap_zero(struct iris_heap_memory *memory, size_t offset,
                               size_t bytes);

/* Zeroes a part of an allocation that was lazy, after putting memory behind it
 * where a heap can do so by itself, and waits for that. What is new is zero
 * already, and not touched. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_clear(struct iris_heap_memory *memory, void *ptr,
                                size_t bytes);

/* Whose heap the address is on, as mapped here, and where; -1: nobody's. */
int iris_i_heap_owner(const struct iris_heap_memory *memory,
                      const void *address, size_t *offset_p);

/* This rank's heap, and all heaps' size. */
static inline char *iris_i_heap_base(const struct iris_heap_memory *memory)
{
    return memory->region.base;
}

static inline size_t iris_i_heap_bytes(const struct iris_heap_memory *memory)
{
    return memory->region.bytes;
}

/* An address as an offset from this rank's heap; not less than the heap's size
 * if it is not on it. */
static inline size_t iris_i_heap_offset(const struct iris_heap_memory *memory,
                                        const void *address)
{
    return (size_t)((uintptr_t)address - (uintptr_t)memory->region.base);
}

/* The node of a rank, by number: nodes are numbered by their first rank. */
static inline int iris_i_heap_node(const struct iris_heap_memory *memory,
                                   int rank)
{
    return memory->nodes[rank];
}

/* Whether the rank is on another node than this one. */
static inline int iris_i_heap_is_far(const struct iris_heap_memory *memory,
                                     int rank)
{
    return iris_i_heap_node(memory, rank) !=
           iris_i_heap_node(memory, memory->log->rank);
}

/* Whether peers map what is committed by handles of its own. */
static inline int
iris_i_heap_needs_handles(const struct iris_heap_memory *memory)
{
    return memory->region.commit == IRIS_COMMIT_PRIVATE;
}

static inline struct iris_control *
iris_i_heap_control(const struct iris_heap_memory *memory)
{
    return memory->control;
}

/* Where each rank's heap is mapped here; 0: it is not. */
static inline const int64_t *
iris_i_heap_bases(const struct iris_heap_memory *memory)
{
    return memory->bases;
}

#endif /* IRIS_SRC_HEAP_HEAP_MEMORY_H */
