/* SPDX-License-Identifier: MIT
 *
 * The heap's memory: the addresses of this rank's heap, its committed pieces,
 * and the addresses at which the peers' heaps are mapped.
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
    int64_t *bases; /* address of each rank's heap, as mapped here; 0: not
                     * mapped. NULL before iris_i_heap_connect() */
    unsigned char *reachable; /* 1: bases[rank] is not 0 */
    int *nodes;               /* each rank's node; NULL before
                               * iris_i_heap_connect() */
    int num_nodes;            /* number of nodes in the job */

    /* Memory is committed in pieces. One set of bits marks the committed
     * pieces. The other marks those that the current allocation has committed
     * and may have to undo. */
    size_t piece_bytes;
    _Atomic uint64_t *committed;
    _Atomic uint64_t *fresh;
    atomic_size_t num_committed;
    size_t num_fresh;
};

/* Allocates this rank's heap, of `bytes`. The caller closes it even if this
 * fails. */
iris_status_t iris_i_heap_memory_open(struct iris_heap_memory *memory,
                                      size_t bytes);
void iris_i_heap_memory_close(struct iris_heap_memory *memory);

/* Commits memory to all uncommitted pieces of [offset, offset + bytes), or to
 * none. iris_i_heap_rollback() or iris_i_heap_keep() must follow.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_commit(struct iris_heap_memory *memory, size_t offset,
                                 size_t bytes);

/* Undoes the commit. */
void iris_i_heap_rollback(struct iris_heap_memory *memory);

/* Keeps the commit: peers have mapped it, or will map it in another way. */
void iris_i_heap_keep(struct iris_heap_memory *memory);

/* Consecutive pieces. */
struct iris_heap_run {
    size_t offset;
    size_t bytes;
};

/* The next run after *run and before `end`: pieces that the latest commit has
 * committed or, with `fresh` 0, pieces committed before it. 0: there is
 * none. */
int iris_i_heap_next_run(const struct iris_heap_memory *memory, int fresh,
                         size_t end, struct iris_heap_run *run);

/* Decommits the whole pieces of a free range, if that is worthwhile. */
void iris_i_heap_give_back(struct iris_heap_memory *memory, size_t offset,
                           size_t bytes);

/* Whether every piece of the range has memory. */
int iris_i_heap_is_committed(const struct iris_heap_memory *memory,
                             size_t offset, size_t bytes);

/* Unmaps the memory at a heap offset, here and on every peer. */
void iris_i_heap_unmap(struct iris_heap_memory *memory, size_t offset);

/* Waits for the heap's stream. Peers can see that this rank waits. */
iris_status_t iris_i_heap_synchronize(struct iris_heap_memory *memory);

/* Copies between host memory and a heap, and waits for it. */
iris_status_t iris_i_heap_copy(struct iris_heap_memory *memory, void *dst,
                               const void *src, size_t bytes);

/* Zeroes a range of this rank's heap, in order with its stream, and waits. */
iris_status_t iris_i_heap_zero(struct iris_heap_memory *memory, size_t offset,
                               size_t bytes);

/* Zeroes a part of a lazy allocation. If the heap can commit memory by itself,
 * it commits that part first. Waits for both. New memory is zero already and is
 * not touched. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_clear(struct iris_heap_memory *memory, void *ptr,
                                size_t bytes);

/* The rank whose heap contains the address, as mapped here, and the offset; -1:
 * none. */
int iris_i_heap_owner(const struct iris_heap_memory *memory,
                      const void *address, size_t *offset_p);

/* This rank's heap, and the size of all heaps. */
static inline char *iris_i_heap_base(const struct iris_heap_memory *memory)
{
    return memory->region.base;
}

static inline size_t iris_i_heap_bytes(const struct iris_heap_memory *memory)
{
    return memory->region.bytes;
}

/* The offset of an address in this rank's heap. If the address is not on the
 * heap, the result is at least the heap's size. */
static inline size_t iris_i_heap_offset(const struct iris_heap_memory *memory,
                                        const void *address)
{
    return (size_t)((uintptr_t)address - (uintptr_t)memory->region.base);
}

/* The number of a rank's node. Nodes are numbered by their first rank. */
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

/* Whether peers map each commit by a separate handle. */
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

/* The address of each rank's heap, as mapped here; 0: not mapped. */
static inline const int64_t *
iris_i_heap_bases(const struct iris_heap_memory *memory)
{
    return memory->bases;
}

#endif /* IRIS_SRC_HEAP_HEAP_MEMORY_H */
