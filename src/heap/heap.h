/* SPDX-License-Identifier: MIT
 *
 * The symmetric heap of one rank: its memory, its peers' mappings, what is
 * allocated in it.
 */
#ifndef IRIS_SRC_HEAP_HEAP_H
#define IRIS_SRC_HEAP_HEAP_H

#include <pthread.h>
#include <stdatomic.h>

#include <iris/heap.h>

#include "backend/calls.h"
#include "base/hooks.h"
#include "control/agree.h"
#include "control/exchange.h"
#include "heap/alloc.h"

struct iris_external_range;

/* What this rank has released of its heap, by name, in that order; deferred.c
 * has it. Any thread appends; the rest is of the thread that makes collective
 * calls. compared <= done <= fenced <= count. */
struct iris_deferred {
    pthread_mutex_t lock; /* of the list and its end */
    int closed;
    size_t *names;
    size_t capacity;
    atomic_size_t count;
    size_t fenced;   /* so many were released before the latest fence */
    size_t done;     /* streams are past a fence behind so many */
    size_t compared; /* so many have been compared with all other ranks' */
};

/* How the heap learns that work on this rank's streams is done, which the queue
 * knows. */
struct iris_heap_fence {
    /* 1 if all is done that was enqueued before the fence; with `anew` the
     * fence is now. Never waits. */
    int (*query)(void *arg, int anew);
    void *arg;
};

struct iris_heap {
    const struct iris_log *log;
    struct iris_hooks *hooks; /* NULL: nobody watches */
    struct iris_backend *backend;
    struct iris_stream *stream;   /* for the heap's own copies and fills */
    struct iris_control *control; /* NULL before iris_i_heap_connect() */
    struct iris_members *world;   /* all ranks; the same */
    struct iris_heap_region region;
    int64_t *bases;           /* of each rank's heap, as mapped here; 0: not */
    unsigned char *reachable; /* 1: bases[rank] is not 0 */
    struct iris_observer guard; /* while there is an unreachable one: ends CPU
                                 * kernels that touch it */
    struct iris_alloc *alloc;
    size_t reserved_bytes; /* the library's own, at offset 0 */
    size_t red_zone_bytes; /* left free behind each allocation */

    /* Memory is committed in pieces. Bits of the committed ones, and of those
     * that an allocation under way has committed and may have to undo. */
    size_t piece_bytes;
    _Atomic uint64_t *committed;
    _Atomic uint64_t *fresh;
    atomic_size_t num_committed;
    size_t num_fresh;
    struct iris_offer *offers; /* one for every run of pieces */

    /* External memory, mapped into the window behind the heap. */
    struct iris_alloc *window; /* NULL: there is none */
    struct iris_external_range *externals;
    size_t num_shared; /* so far; the same on every rank */
    pthread_mutex_t externals_lock;

    struct iris_deferred deferred;
    struct iris_heap_fence fence;

    struct iris_heap_lives *lives; /* of allocations (name.c); NULL: none yet */
    struct iris_heap_freed *freed; /* NULL: none were */
    pthread_mutex_t names_lock;
};

/* Allocates this rank's heap and sets up the allocator, with memory committed
 * to the first `reserved_bytes`, which are the library's own. The caller closes
 * the heap, also if this fails. */
iris_status_t iris_i_heap_open(struct iris_heap *heap, size_t bytes,
                               size_t reserved_bytes);

/* Names the heap to the others; a descriptor in the handle is the caller's. */
iris_status_t iris_i_heap_export(const struct iris_heap *heap,
                                 struct iris_heap_handle *handle_p);

/* Maps every peer's heap from its handle, and looks whether it is the peer's:
 * at `id_offset` each has a word of its own. One that cannot be mapped
 * (IRIS_ERR_UNREACHABLE, or handle() gives NULL) has base 0; with `require_all`
 * that fails. IRIS_ERR_SYSTEM (other memory was mapped) */
struct iris_heap_peers {
    const struct iris_heap_handle *(*handle)(void *arg, int rank);
    uint64_t (*id)(void *arg, int rank);
    void *arg;
    size_t id_offset;
    int require_all;
};
iris_status_t iris_i_heap_connect(struct iris_heap *heap,
                                  struct iris_members *world,
                                  const struct iris_heap_peers *peers);

/* Collective, when all ranks have connected: whom a rank does not reach does
 * not reach it either, so that no barrier waits for what cannot come.
 * *changed_p: some peer has base 0 now. */
iris_status_t iris_i_heap_agree_on_reach(struct iris_heap *heap,
                                         int *changed_p);

/* Unmaps the peers' heaps, which nothing of this rank uses any more. May be
 * called again. */
void iris_i_heap_disconnect(struct iris_heap *heap);

/* Undoes all of these, as far as they got. No peer uses this heap any more. */
void iris_i_heap_close(struct iris_heap *heap);

/* ---- Allocation (allocate.c) ---- */

/* Sizes of one collective allocation, as the caller asked for it. */
struct iris_heap_request {
    const struct iris_call_type *type; /* the call members compare */
    size_t bytes;
    size_t alignment;
    int zero;    /* fill it */
    int is_lazy; /* iris_i_heap_clear() puts memory behind its parts */
    iris_status_t checked; /* what the caller found wrong with it already */
    /* NULL, or enqueues what fills the memory, before the ranks agree: when the
     * call returns on any rank, all have. If they do not agree, end_fill()
     * waits for that work before the memory goes. */
    iris_status_t (*fill)(void *arg, void *ptr);
    void (*end_fill)(void *arg);
    void *arg;
};

/* Zeroes a range of this rank's heap, in order with its stream, and waits. */
iris_status_t iris_i_heap_zero(struct iris_heap *heap, size_t offset,
                               size_t bytes);

/* One allocation of all ranks. Nothing is taken, on any rank, unless all
 * succeed. */
iris_status_t iris_i_heap_allocate(struct iris_heap *heap,
                                   const struct iris_heap_request *request,
                                   void **ptr_p);

/* Frees an allocation on every rank: what iris_i_heap_allocate() or
 * iris_i_external_share() gave. Whole pieces of memory go back to the
 * system. `checked`: what the caller found wrong with it already. */
iris_status_t iris_i_heap_release(struct iris_heap *heap, void *ptr,
                                  iris_status_t checked);

/* This rank's part of it, once all ranks have agreed on the name. */
void iris_i_heap_give(struct iris_heap *heap, size_t name);

void iris_i_heap_stats(const struct iris_heap *heap,
                       struct iris_heap_stats *stats_p);

/* ---- Addresses (address.c) ---- */

/* Bytes from `ptr` to the end of this rank's heap, or of the external memory it
 * is in; 0: it is in neither. */
size_t iris_i_heap_bytes_from(const struct iris_heap *heap, const void *ptr);

/* What a live allocation of the program's is called, by one name on all ranks:
 * its heap offset; of external memory, which may be shared more than once at
 * one address, a number behind all of these that never comes again.
 *
 * The one that begins at `ptr` and has not been released before; of several the
 * newest or the oldest. Ranks release the oldest first, each at a time of its
 * own, so the newest is the same for all. `call` is for messages. Any thread.
 * IRIS_ERR_INVALID */
iris_status_t iris_i_heap_find_start(struct iris_heap *heap, const char *call,
                                     const void *ptr, int newest,
                                     size_t *name_p);

/* Sets the mark of an allocation, unless it is negative, and returns it; -1:
 * there is none of that name. Any thread. */
int iris_i_heap_mark(struct iris_heap *heap, size_t name, int mark);

/* Where `rank` keeps `ptr`, of this rank's heap. `call` is for messages.
 * IRIS_ERR_INVALID (rank out of range, ptr not on the heap),
 * IRIS_ERR_UNREACHABLE */
iris_status_t iris_i_heap_translate(const struct iris_heap *heap,
                                    const char *call, const void *ptr, int rank,
                                    void **remote_p);

/* IRIS_ERR_UNREACHABLE if the rank's heap is not mapped here. */
iris_status_t iris_i_heap_check_reachable(const struct iris_heap *heap,
                                          const char *call, int rank);

/* Fills *place_p, or returns 0: the address is on no rank's heap. For messages
 * about a kernel's fault, from its handler: heaps have their allocations in the
 * same places. The heap is connected. */
int iris_i_heap_locate(const struct iris_heap *heap, const void *address,
                       struct iris_location *place_p);

/* A range of memory that a call is to read or write. */
struct iris_heap_range {
    const char *call; /* the public function */
    const char *name; /* of its argument */
    const void *ptr;
    size_t bytes; /* not 0 */
    int writes;
};

/* IRIS_ERR_INVALID: the range is no memory. It may begin in or at the end of a
 * rank's heap, and then all of it has to be within that heap, committed and, if
 * it is written, not the library's own. Else it may not run into a heap. */
iris_status_t iris_i_heap_check_range(const struct iris_heap *heap,
                                      const struct iris_heap_range *range);

/* ---- Memory (commit.c) ---- */

/* Commits memory to every piece of [offset, offset + bytes) that lacks it, or
 * to none. One of the next three must follow. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_commit(struct iris_heap *heap, size_t offset,
                                 size_t bytes);

/* Zeroes a part of an allocation that was lazy, after putting memory behind it
 * where a heap can do so by itself, and waits for that. What is new is zero
 * already, and not touched. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_clear(struct iris_heap *heap, void *ptr,
                                size_t bytes);

/* Takes that memory away again. */
void iris_i_heap_rollback(struct iris_heap *heap);

/* Or keeps it: peers have it, or will have it by another way. */
void iris_i_heap_keep(struct iris_heap *heap);

/* Or, collectively, once all ranks have agreed that each has committed it: maps
 * it everywhere. If that fails on one rank, all take it away. */
iris_status_t iris_i_heap_settle(struct iris_heap *heap);

/* Gives whole pieces of the free range around `offset` back to the system, if
 * it is worth it. */
void iris_i_heap_give_back(struct iris_heap *heap, size_t offset);

/* Whether every piece of the range has memory. */
int iris_i_heap_is_committed(const struct iris_heap *heap, size_t offset,
                             size_t bytes);

/* Offers every other process memory of this rank's, and maps theirs: what
 * iris_i_exchange() does and returns, with handles made and closed here. */
iris_status_t iris_i_heap_share(struct iris_heap *heap,
                                struct iris_offer *offers, size_t num_offers,
                                iris_status_t status);

/* Takes away what is mapped at a heap offset, here and for every peer. */
void iris_i_heap_unmap(struct iris_heap *heap, size_t offset);

/* ---- External memory (external.c) ---- */

/* The memory of a program, made symmetric by all ranks: shared where that can
 * be, else copied; *shared_p says which. `request` as for an allocation. */
iris_status_t iris_i_external_share(struct iris_heap *heap,
                                    const struct iris_heap_request *request,
                                    const void *ptr, void **symmetric_p,
                                    int *shared_p);

/* What external memory that begins at `ptr` is called, as
 * iris_i_heap_find_start() chooses, and its mark, not 0 if all that begins
 * there has one; -1: nothing begins there. Any thread. */
int iris_i_external_find(struct iris_heap *heap, const void *ptr, int newest,
                         size_t *name_p);

/* What iris_i_heap_mark() does for external memory. */
int iris_i_external_mark(struct iris_heap *heap, size_t name, int mark);

/* Where it is; it is there. */
void *iris_i_external_address(struct iris_heap *heap, size_t name);

/* Its end, after an agreement of all ranks about it. */
void iris_i_external_release(struct iris_heap *heap, size_t name);

/* Bytes from `offset` in the window to the end of the external memory there; 0:
 * there is none. */
size_t iris_i_external_bytes_from(const struct iris_heap *heap, size_t offset);

/* Forgets what is left; the backend unmaps it. */
void iris_i_external_close(struct iris_heap *heap);

/* ---- Names and lives (name.c) ---- */

#define IRIS_NAME_BYTES 48

/* Names the allocation that `ptr` is in; NULL or empty: takes the name away.
 * IRIS_ERR_INVALID, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_set_name(struct iris_heap *heap, const void *ptr,
                                   const char *text);

/* ' "inbox"', for messages, or an empty text. Returns `text`. */
const char *iris_i_heap_describe(const struct iris_heap *heap, size_t start,
                                 char text[IRIS_NAME_BYTES + 4]);

/* All ranks have agreed on the allocation at `start`; the one at `offset` is
 * about to be freed. */
void iris_i_heap_note_alloc(struct iris_heap *heap, size_t start);
void iris_i_heap_note_free(struct iris_heap *heap, size_t offset);
void iris_i_heap_names_close(struct iris_heap *heap);

/* Writes the allocations, live ones and the latest that were freed, to the
 * file, whole or not at all. Times count from `start_ns` of this host. */
iris_status_t iris_i_allocations_write(struct iris_heap *heap, const char *path,
                                       int64_t start_ns);

/* ---- Contents and files ---- */

/* Copies between host memory and a heap, and waits for it. */
iris_status_t iris_i_heap_copy(struct iris_heap *heap, void *dst,
                               const void *src, size_t bytes);

/* Waits for the heap's stream; peers can see that this rank does. */
iris_status_t iris_i_heap_synchronize(struct iris_heap *heap);

/* Writes <prefix>_rank_<r>_heap_bases.json, whole or not at all. */
iris_status_t iris_i_bases_write(const struct iris_heap *heap,
                                 const char *prefix);

#endif /* IRIS_SRC_HEAP_HEAP_H */
