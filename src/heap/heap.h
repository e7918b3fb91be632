/* SPDX-License-Identifier: MIT
 *
 * The interface of src/heap: the symmetric heap; it knows no groups, and no
 * stream but its own.
 */
#ifndef IRIS_SRC_HEAP_HEAP_H
#define IRIS_SRC_HEAP_HEAP_H

#include <iris/heap.h>

#include "backend/backend.h"
#include "base/base.h"
#include "control/control.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

/* ---- memory.c ---- */

/* The heap's memory: the addresses of this rank's heap, its committed pieces,
 * and the addresses at which the peers' heaps are mapped. */

struct iris_heap_memory {
    const struct iris_log *log;
    struct iris_backend *backend;
    struct iris_stream *stream;   /* for the heap's own copies and fills */
    struct iris_control *control; /* NULL before iris_i_heap_connect() */
    struct iris_heap_region region;
    size_t size_bytes; /* of the region: IRIS_HEAP_SIZE */
    int64_t *bases;    /* address of each rank's heap, as mapped here; 0: not
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
    _Atomic uint64_t *starts; /* the first piece of each commit */
    atomic_size_t num_committed;
    size_t num_fresh;
    size_t first_fresh; /* no piece below it is fresh */
};

/* Commits memory to all uncommitted pieces of [offset, offset + bytes), or to
 * none. iris_i_heap_end_commit() must follow. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_commit(struct iris_heap_memory *memory, size_t offset,
                                 size_t bytes);

/* Keeps the commit, which peers have mapped or will map in another way; or undoes
 * it. */
void iris_i_heap_end_commit(struct iris_heap_memory *memory, int keep);

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

/* After `freed` was freed, and became part of the free range `joined`: decommits
 * whole pieces of that range, if that is worthwhile. Constant time for a small
 * allocation. */
void iris_i_heap_give_back(struct iris_heap_memory *memory,
                           const struct iris_heap_run *freed,
                           const struct iris_heap_run *joined);

/* Decommits the memory of a free range: whole pieces, or whole commits if peers
 * map each of them. */
void iris_i_heap_trim(struct iris_heap_memory *memory, size_t offset,
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

/* This rank's heap, and the size that all heaps may grow to. */
static inline char *iris_i_heap_base(const struct iris_heap_memory *memory)
{
    return memory->region.base;
}

static inline size_t iris_i_heap_bytes(const struct iris_heap_memory *memory)
{
    return memory->region.bytes;
}

/* The size of all heaps before they grow. */
static inline size_t iris_i_heap_size(const struct iris_heap_memory *memory)
{
    return memory->size_bytes;
}

/* Bytes of the heap that have memory. */
static inline size_t iris_i_heap_backed(const struct iris_heap_memory *memory)
{
    size_t backed = memory->num_committed * memory->piece_bytes;

    return backed > memory->region.bytes ? memory->region.bytes : backed;
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

/* ---- alloc.c ---- */

struct iris_alloc;

/* Manages offsets [0, bytes). One thread at a time may take and give; any
 * thread may make the other calls. The caller destroys it.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_alloc_create(size_t bytes, struct iris_alloc **alloc_p);
void iris_i_alloc_destroy(struct iris_alloc *alloc);

/* Finds `bytes` at a multiple of `alignment` (a power of two). Sizes and
 * offsets are rounded to IRIS_ALIGNMENT. Constant time.
 *
 *   IRIS_ERR_INVALID    bytes is 0, alignment is no power of two
 *   IRIS_ERR_NO_MEMORY  no free range that large, or no memory for the record;
 *                       the caller sets the message */
iris_status_t iris_i_alloc_take(struct iris_alloc *alloc, size_t bytes,
                                size_t alignment, size_t *offset_p);

/* Frees an allocation of iris_i_alloc_take(), joins free neighbours, and
 * returns the resulting free range. IRIS_ERR_INVALID: no live allocation starts
 * at `offset`. */
iris_status_t iris_i_alloc_give_joined(struct iris_alloc *alloc, size_t offset,
                                       size_t *start_p, size_t *bytes_p);

static inline iris_status_t iris_i_alloc_give(struct iris_alloc *alloc,
                                              size_t offset)
{
    size_t start, bytes;

    return iris_i_alloc_give_joined(alloc, offset, &start, &bytes);
}

/* Undoes the latest iris_i_alloc_take(), which returned `offset`, if no other
 * call has followed. Unlike iris_i_alloc_give(), it restores the previous state
 * exactly, so that later results do not depend on the take. */
void iris_i_alloc_untake(struct iris_alloc *alloc, size_t offset);

/* A mark for the allocator's user on a live allocation: 0 to 3, initially 0.
 * Sets it unless `mark` is negative, and returns it; -1: no allocation starts
 * at `offset`. Constant time. */
int iris_i_alloc_mark(struct iris_alloc *alloc, size_t offset, int mark);

/* The live allocation that contains `offset`: its start and size. For messages
 * and traces; may be slow. IRIS_ERR_INVALID: no allocation contains it. */
iris_status_t iris_i_alloc_find(struct iris_alloc *alloc, size_t offset,
                                size_t *start_p, size_t *bytes_p);

/* Calls `call` for each live allocation, in the order of their starts. `call`
 * must not use the allocator. */
void iris_i_alloc_each(struct iris_alloc *alloc,
                       void (*call)(void *arg, size_t start, size_t bytes),
                       void *arg);

/* The live allocation that contains `offset`, else the one that ends or begins
 * nearest to it. 0: nothing is allocated, or another call is changing them. May
 * be called from any thread, and from the handler of a fault outside the
 * allocator. */
int iris_i_alloc_nearest(struct iris_alloc *alloc, size_t offset,
                         size_t *start_p, size_t *bytes_p);

/* Fills heap, used, free, largest_free, peak, metadata bytes and num_allocs.
 * Returns the offset behind the last live allocation. */
size_t iris_i_alloc_stats(struct iris_alloc *alloc,
                          struct iris_heap_stats *stats_p);

/* ---- heap_names.c ---- */

#define IRIS_NAME_BYTES 48

struct iris_heap_names {
    const struct iris_heap_memory *memory; /* the memory whose offsets are
                                            * handed out */
    struct iris_alloc *alloc;
    size_t reserved_bytes; /* the library's own bytes, at offset 0 */
    size_t red_zone_bytes; /* bytes left free behind each allocation */
    pthread_mutex_t lock;
    /* Lifetimes of allocations; NULL: none yet. */
    struct iris_heap_lives *lives IRIS_GUARDED_BY(lock);
    /* Freed allocations; NULL: none. */
    struct iris_heap_freed *freed IRIS_GUARDED_BY(lock);
};

/* Sets up the allocator. Its first range is the library's own. The caller
 * closes it even if this fails. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_names_open(struct iris_heap_names *names,
                                     const struct iris_heap_memory *memory);
void iris_i_heap_names_close(struct iris_heap_names *names);

/* Whether the program's memory can be at this offset of the heap. */
static inline int iris_i_heap_is_own(const struct iris_heap_names *names,
                                     size_t offset)
{
    return offset < names->reserved_bytes;
}

/* Finds the program's live allocation that contains `offset`. Returns 1, or 0 if
 * no such allocation exists. */
int iris_i_heap_find(const struct iris_heap_names *names, size_t offset,
                     size_t *start_p, size_t *bytes_p);

/* Names the allocation that contains `ptr`. NULL or an empty name removes the
 * name. IRIS_ERR_INVALID, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_set_name(struct iris_heap_names *names,
                                   const void *ptr, const char *text);

/* ' "inbox"', for messages, or an empty text. Returns `text`. */
const char *iris_i_heap_describe(const struct iris_heap_names *names,
                                 size_t start, char text[IRIS_NAME_BYTES + 4]);

/* Record that all ranks have agreed on the allocation at `start`; record that
 * it is about to be freed. */
void iris_i_heap_note_alloc(struct iris_heap_names *names, size_t start);
void iris_i_heap_note_free(struct iris_heap_names *names, size_t start);

/* Writes <prefix>_rank_<r>_heap_bases.json, completely or not at all. The bytes
 * are those of Python's json.dump(..., indent=2). */
iris_status_t iris_i_bases_write(const struct iris_heap_memory *memory,
                                 const char *prefix);

/* Prints metadata events of a trace, each after a comma: the address of each
 * rank's heap, the live allocations and the latest freed ones. Times count from
 * `start_ns` of this host. */
void iris_i_heap_list(struct iris_heap_names *names, FILE *file,
                      int64_t start_ns);

/* ---- memory.c: the window ---- */

struct iris_alloc;

/* A part of an allocation of the program that is mapped in the window. There
 * may be several parts of one allocation, and the same part more than once. The
 * allocation is mapped once, as long as any part remains. */
struct iris_external_range {
    struct iris_external_range *next;
    size_t start;       /* offset of the whole allocation in the window */
    size_t offset;      /* offset of the requested part in the window */
    size_t bytes;       /* of that */
    const void *cookie; /* identifies the allocation */
    size_t name;
    int mark;
};

struct iris_heap_window {
    struct iris_heap_memory *memory;
    struct iris_alloc *alloc; /* NULL: there is no window */
    size_t num_shared;    /* number of shared parts so far; the same on every
                        * rank */
    pthread_mutex_t lock; /* for changes of the list, and for other threads than
                           * the one of the collective calls, which makes them */
    struct iris_external_range *ranges;
};

/* Adds the mapping at record->start, gives it a name, and returns its
 * address. */
void *iris_i_window_add(struct iris_heap_window *window,
                        struct iris_external_range *record);

/* The name of external memory that begins at `ptr`, the newest or the oldest,
 * and its mark. The mark is 0 unless all parts that begin there have one. -1:
 * nothing begins there. Any thread. */
int iris_i_window_find(struct iris_heap_window *window, const void *ptr,
                       int newest, size_t *name_p);

/* Sets the mark of external memory unless it is negative, and returns it. */
int iris_i_window_mark(struct iris_heap_window *window, size_t name, int mark);

/* The address of existing external memory. */
void *iris_i_window_address(const struct iris_heap_window *window, size_t name);

/* Removes it, after all ranks have agreed on that. */
void iris_i_window_release(struct iris_heap_window *window, size_t name);

/* Bytes from `offset` in the window to the end of the external memory there, or
 * 0 without such memory. */
size_t iris_i_window_bytes_from(const struct iris_heap_window *window,
                                size_t offset);

/* ---- Heap parts ---- */

/* The symmetric heap of one rank: its memory, the allocations in it and in the
 * window behind it, and the collective operations. Other folders pass a part to
 * the functions of its header and do not access its fields. */

/* The names of this rank's released allocations, in the order of their release;
 * used by malloc.c. Any thread appends; the thread that makes collective
 * calls does the rest. compared <= done <= fenced <= count. */
struct iris_deferred {
    pthread_mutex_t lock; /* guards the count, too, which may be read without */
    int closed IRIS_GUARDED_BY(lock);
    size_t *names IRIS_GUARDED_BY(lock);
    size_t capacity IRIS_GUARDED_BY(lock);
    atomic_size_t count;
    size_t fenced;   /* number released before the latest fence */
    size_t done;     /* number before the latest fence that the streams have
                      * passed */
    size_t compared; /* number compared with all other ranks' */
};

/* Asks the queue whether work on this rank's streams is done. */
struct iris_heap_fence {
    /* 1 if all work enqueued before the fence is done. With `anew`, sets the
     * fence now. Never waits. */
    int (*query)(void *arg, int anew);
    void *arg;
};

struct iris_heap {
    const struct iris_log *log;
    struct iris_heap_memory memory;
    struct iris_heap_names names;
    struct iris_heap_window window;

    struct iris_hooks *hooks;   /* NULL: no observers */
    struct iris_members *world; /* all ranks; NULL: not connected yet */
    int has_proxy; /* a proxy lets kernels reach ranks of other nodes */
    struct iris_observer guard; /* used while some rank cannot be reached:
                                 * ends CPU kernels that access its heap */
    struct iris_offer *offers;  /* one for each run of pieces */
    struct iris_deferred deferred;
    struct iris_heap_fence fence;
};

/* One collective allocation, with the sizes that the caller asked for. */
struct iris_heap_request {
    const struct iris_call_type *type; /* the call, which members compare */
    size_t bytes;
    size_t alignment;
    int zero;    /* fill it */
    int is_lazy; /* iris_i_heap_clear() commits memory to its parts later */
    iris_status_t checked; /* status of the caller's own checks */
    /* NULL, or enqueues a fill of the memory before the ranks agree: when the
     * call returns on any rank, all ranks have done so. If the ranks do not
     * agree, end_fill() waits for that work before the memory is freed. */
    iris_status_t (*fill)(void *arg, void *ptr);
    void (*end_fill)(void *arg);
    void *arg;
};

/* ---- malloc.c ---- */

/* Frees an allocation without the other ranks, which do the same. */
void iris_i_heap_drop(struct iris_heap *heap, const void *ptr);

/* The number of live allocations, and a hash of their offsets and sizes. */
void iris_i_heap_digest(const struct iris_heap *heap, uint64_t digest_p[2]);

/* ---- memory.c ---- */

/* Unmaps the heaps of the other ranks, and renumbers the survivors. Lists of
 * released allocations are compared anew. The log's numbers change after that. */
void iris_i_heap_shrink(struct iris_heap *heap, const uint64_t *survivors);

/* ---- heap_address.c ---- */

/* Addresses on the symmetric heap: translation on the host, checks of a call's
 * memory ranges, and the names of allocations. */

/* Bytes from `ptr` to the end of this rank's heap or of the external memory
 * around it; 0: `ptr` is in neither. */
size_t iris_i_heap_bytes_from(const struct iris_heap *heap, const void *ptr);

/* Address of the memory on `rank` that corresponds to `ptr` on this rank's
 * heap. `call` is for messages. IRIS_ERR_INVALID (rank out of range, ptr not on
 * the heap), IRIS_ERR_UNREACHABLE */
iris_status_t iris_i_heap_translate(const struct iris_heap *heap,
                                    const char *call, const void *ptr, int rank,
                                    void **remote_p);

/* The reverse: the address on this rank's heap that corresponds to `ptr` on
 * `rank`'s. Same statuses. */
iris_status_t iris_i_heap_untranslate(const struct iris_heap *heap,
                                      const char *call, const void *ptr,
                                      int rank, void **own_p);

/* Whether the rank exists and only this rank's proxy reaches it. */
int iris_i_heap_is_by_proxy(const struct iris_heap *heap, int rank);

/* IRIS_ERR_INVALID if the job has no such rank. */
iris_status_t iris_i_heap_check_rank(const struct iris_heap *heap, int rank);

/* IRIS_ERR_UNREACHABLE if the rank's heap is not mapped here. */
iris_status_t iris_i_heap_check_reachable(const struct iris_heap *heap,
                                          const char *call, int rank);

/* Fills *place_p, or returns 0 if the address is on no rank's heap. For
 * messages about a kernel's fault, called from the fault handler: all heaps
 * have their allocations at the same offsets. The heap is connected. */
int iris_i_heap_locate(const struct iris_heap *heap, const void *address,
                       struct iris_location *place_p);

/* A range of memory that a call will read or write. */
struct iris_heap_range {
    const char *call; /* the public function */
    const char *name; /* name of the argument */
    const void *ptr;
    size_t bytes; /* not 0 */
    int writes;
    int by_kernel; /* a kernel accesses it, and not a copy engine */
};

/* IRIS_ERR_INVALID: the range is not valid memory.
 * - If the range begins in or at the end of a rank's heap, all of it has to be
 *   within that heap and committed. If it is written, it must not be the
 *   library's own memory.
 * - Otherwise it must not run into a heap.
 * - If a kernel accesses memory outside of heaps, it must be able to. */
iris_status_t iris_i_heap_check_range(const struct iris_heap *heap,
                                      const struct iris_heap_range *range);

/* ---- malloc.c ---- */

/* Whether this rank's streams have done all work that was enqueued before the
 * last call with `anew` set, including this call. Never waits. */
static inline int iris_i_heap_is_idle(const struct iris_heap *heap, int anew)
{
    return heap->fence.query(heap->fence.arg, anew);
}

/* The part about deferred frees in a rank's post of a collective call. */
struct iris_deferred_post {
    uint64_t count; /* released, and no longer used by its streams */
    uint64_t fresh; /* among these, not yet compared with the other ranks' */
};

/* The steps that follow one collective call of all ranks; the same on all. */
struct iris_deferred_plan {
    struct iris_deferred_post post; /* this rank's */
    int waits;    /* waits for streams: there is nothing else to free, or
                   * memory is short */
    int lister;   /* the rank that lists its releases; -1: nothing follows */
    size_t count; /* number of names in the list */
};

/* Releases an allocation. Any thread; never blocks. IRIS_ERR_INVALID,
 * IRIS_ERR_STATE (the heap is closed), IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_deferred_add(struct iris_heap *heap, void *ptr);

/* An agreement of all ranks whose payload is about deferred frees: makes the
 * plan of the steps that follow if it succeeds. */
iris_status_t iris_i_deferred_agree(struct iris_heap *heap,
                                    struct iris_call *call,
                                    struct iris_deferred_plan *plan);

/* The steps that follow, collectively: frees the allocations that all ranks
 * have released, and returns their number. The next call reports errors that
 * occur here. */
size_t iris_i_deferred_follow(struct iris_heap *heap,
                              const struct iris_deferred_plan *plan);

/* Collective: waits until this rank's streams no longer use its released
 * allocations, then frees those that all ranks have released. */
iris_status_t iris_i_deferred_free(struct iris_heap *heap, size_t *freed_p);

/* Frees an allocation of iris_i_heap_allocate() or iris_i_external_share() on
 * every rank. Whole pieces of memory go back to the system. `checked`: the
 * status of the caller's own checks. */
iris_status_t iris_i_heap_release(struct iris_heap *heap, void *ptr,
                                  iris_status_t checked);

/* One allocation by all ranks. Unless it succeeds on all of them, no rank takes
 * anything. */
iris_status_t iris_i_heap_allocate(struct iris_heap *heap,
                                   const struct iris_heap_request *request,
                                   void **ptr_p);

void iris_i_heap_stats(const struct iris_heap *heap,
                       struct iris_heap_stats *stats_p);

/* Collective: frees allocations that all ranks have released, and gives back
 * memory that no allocation uses. *freed_p: the bytes on this rank. */
iris_status_t iris_i_heap_trim_all(struct iris_heap *heap, size_t *freed_p);

/* Makes memory of the program symmetric, on all ranks: shared if possible, else
 * copied; *shared_p says which. `request` is the same as for an allocation. */
iris_status_t iris_i_external_share(struct iris_heap *heap,
                                    const struct iris_heap_request *request,
                                    const void *ptr, void **symmetric_p,
                                    int *shared_p);

/* ---- memory.c: the beginning and the end ---- */

/* Opens and closes the heap: this rank's memory, its records, and the mappings
 * of the peers. */

/* The parameters of a heap. */
struct iris_heap_params {
    const struct iris_log *log;
    struct iris_backend *backend;
    struct iris_stream *stream; /* for the heap's own copies and fills */
    struct iris_hooks *hooks;   /* NULL: no observers */
    size_t bytes;               /* size that the heap may grow to */
    size_t size_bytes;          /* size before it grows; at most `bytes` */
    size_t reserved_bytes;      /* the library's own bytes, at offset 0 */
    size_t red_zone_bytes;      /* bytes left free behind each allocation */
};

/* Allocates this rank's heap, sets up the allocator, and commits the library's
 * own memory. The caller closes the heap even if this fails. */
iris_status_t iris_i_heap_open(struct iris_heap *heap,
                               const struct iris_heap_params *params);

/* Makes a handle of the heap for the peers. The caller closes a descriptor in
 * the handle. */
iris_status_t iris_i_heap_export(const struct iris_heap *heap,
                                 struct iris_heap_handle *handle_p);

/* Maps every peer's heap from its handle, and checks that it is the peer's:
 * each heap has a unique word at `id_offset`. A heap that cannot be mapped
 * (IRIS_ERR_UNREACHABLE, or on another node) gets base 0; with `require_all`
 * this fails. IRIS_ERR_SYSTEM (other memory was mapped) */
struct iris_heap_peers {
    const struct iris_heap_handle *(*handle)(void *arg, int rank);
    uint64_t (*id)(void *arg, int rank);
    int (*same_node)(void *arg, int rank, int other);
    void *arg;
    size_t id_offset;
    int require_all;
};
iris_status_t iris_i_heap_connect(struct iris_heap *heap,
                                  struct iris_members *world,
                                  const struct iris_heap_peers *peers);

/* Collective, after all ranks have connected. If one rank does not reach
 * another, the other no longer reaches it either, so that no barrier waits in
 * vain. *changed_p: another peer has base 0 now. */
iris_status_t iris_i_heap_agree_on_reach(struct iris_heap *heap,
                                         int *changed_p);

/* Unmaps the peers' heaps, which this rank no longer uses. May be called
 * again. */
void iris_i_heap_disconnect(struct iris_heap *heap);

/* Undoes the functions above, as far as they succeeded. No peer uses this heap
 * any more. */
void iris_i_heap_close(struct iris_heap *heap);

#endif /* IRIS_SRC_HEAP_HEAP_H */
