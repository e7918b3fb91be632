/* SPDX-License-Identifier: MIT
 *
 * The symmetric heap: collective allocation that gives every rank the same
 * offset, and translation of pointers on the host.
 */
#ifndef IRIS_HEAP_H
#define IRIS_HEAP_H

#include <iris/context.h>

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Alignment of iris_malloc() and iris_calloc(), in bytes. */
#define IRIS_ALIGNMENT 256

/** Largest alignment that iris_malloc_aligned() takes, in bytes. */
#define IRIS_ALIGNMENT_MAX ((size_t)2 << 20)

/** Figures of this rank's heap, in bytes unless named otherwise. Memory that
 *  iris_as_symmetric() shares counts nowhere. New figures come at the end. */
struct iris_heap_stats {
    size_t size;               /**< How much of the struct the library knows;
                                    what is behind it is 0. */
    size_t heap_bytes;         /**< Size of the heap. */
    size_t used_bytes;         /**< In live allocations, rounded up. */
    size_t free_bytes;         /**< Neither used nor the library's own. */
    size_t largest_free_bytes; /**< Largest allocation that would succeed. */
    size_t peak_bytes;         /**< Highest used_bytes so far. */
    size_t mapped_bytes;       /**< Backed by memory; with IRIS_ALLOCATOR=vmem
                                    it grows as allocations need it. */
    size_t reserved_bytes;     /**< Address space the heap may grow into: what
                                    IRIS_HEAP_SIZE says. */
    size_t metadata_bytes;     /**< The allocator's own, outside the heap. */
    size_t num_allocs;         /**< Live allocations, a count. */
    size_t num_deferred;       /**< What this rank has given to
                                    iris_free_later() and is not free yet, a
                                    count; the copies of iris_as_symmetric()
                                    and what it shares, too. */
};

/** Allocates `bytes` on every rank's heap, at the same offset, aligned to
 *  IRIS_ALIGNMENT, contents undefined. Collective over the job: every rank
 *  passes the same size; the ranks' calls are compared. Returns once every rank
 *  has the memory, so peers may be written at once. The memory is backed: a
 *  kernel never faults on it. Host call; with IRIS_ALLOCATOR=vmem a call that
 *  makes the heap grow has the device zero what is new, and waits for that.
 *
 *  IRIS_ERR_INVALID      bytes is 0, count * size overflows, ptr_p is NULL,
 *                        the alignment is no power of two or too large
 *  IRIS_ERR_NO_MEMORY    more than the heap has in one piece, or the system is
 *                        out of shared memory, or a GPU out of its own (on
 *                        any rank)
 *  IRIS_ERR_MISMATCH     ranks called differently: told what each called
 *  IRIS_ERR_DEVICE       a GPU could not map or zero what is new, on any rank
 *  IRIS_ERR_SYSTEM       what is new could not be told to the other processes
 *  IRIS_ERR_LIMIT        too many open descriptors, on any rank
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_malloc(iris_t *iris, size_t bytes, void **ptr_p);

/** iris_malloc() with an alignment: a power of two up to IRIS_ALIGNMENT_MAX.
 *  Statuses as iris_malloc(). */
IRIS_API iris_status_t iris_malloc_aligned(iris_t *iris, size_t bytes,
                                           size_t alignment, void **ptr_p);

/** iris_malloc() of count * size bytes, zeroed on every rank on return. Waits
 *  for this rank's default stream. Statuses as iris_malloc(), and the error of
 *  work on that stream. */
IRIS_API iris_status_t iris_calloc(iris_t *iris, size_t count, size_t size,
                                   void **ptr_p);

/** iris_calloc() with an alignment, as iris_malloc_aligned() takes it. Statuses
 *  as iris_calloc(). */
IRIS_API iris_status_t iris_calloc_aligned(iris_t *iris, size_t count,
                                           size_t size, size_t alignment,
                                           void **ptr_p);

/* Behind the two macros below. The pointer goes to its place as bytes, since
 * that place is no void pointer; a product that overflows is iris_calloc()'s
 * error. */
static inline iris_status_t iris_i_malloc_typed(iris_t *iris, int zeroed,
                                                size_t count, size_t size,
                                                void *ptr_p)
{
    void *ptr = NULL;
    void **place = ptr_p == NULL ? NULL : &ptr;
    iris_status_t status = zeroed || count > SIZE_MAX / size
                               ? iris_calloc(iris, count, size, place)
                               : iris_malloc(iris, count * size, place);

    if (status == IRIS_OK) {
        memcpy(ptr_p, &ptr, sizeof ptr);
    }
    return status;
}

/** iris_malloc() and iris_calloc() of `count` elements of the type that a
 *  pointer has, without a cast: after `float *x;`
 *      status = iris_malloc_typed(iris, count, &x);
 *  Only the address of a pointer to a complete type compiles. Each argument is
 *  evaluated once. C and C++. Statuses as iris_calloc(). */
#define iris_malloc_typed(iris, count, ptr_p) \
    iris_i_malloc_typed((iris), 0, (count), sizeof **(ptr_p), (ptr_p))
#define iris_calloc_typed(iris, count, ptr_p) \
    iris_i_malloc_typed((iris), 1, (count), sizeof **(ptr_p), (ptr_p))

/** Frees an allocation on every rank. Collective: every rank passes its own
 *  address of the same allocation. The caller has synchronised the streams
 *  whose kernels use it. NULL on every rank is fine and does nothing.
 *
 *  What iris_as_symmetric() shares is unmapped, for which a GPU waits until all
 *  of this rank's kernels on it have ended, on whichever stream: none of them
 *  may wait for what this rank's host has yet to do, here or through a peer.
 *
 *  IRIS_ERR_INVALID      not the start of a live allocation of this heap
 *                        (foreign, interior or already freed)
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_free(iris_t *iris, void *ptr);

/** Frees an allocation once every rank has released it with this call. Ranks
 *  may release different allocations in different orders: a garbage collector,
 *  a destructor or a DLPack deleter cannot call iris_free(), which is
 *  collective. `ptr` is this rank's own address of an allocation that
 *  iris_malloc(), iris_as_symmetric() or a similar call returned. The program
 *  no longer uses it; kernels that were enqueued before still may. Local, never
 *  blocks, any thread, at any time up to the end of iris_finalize(), which
 *  frees everything. NULL is fine and does nothing.
 *
 *  Memory goes at a later collective call: an allocation, iris_free(),
 *  iris_as_symmetric(), or iris_barrier() of all ranks. Such a call frees what
 *  every rank has released, as soon as the work is done that each had on its
 *  streams when it did so; it does not wait for that, and costs nothing more
 *  where some rank has released nothing. Only an allocation that would fail
 *  for lack of memory waits for streams, as iris_free_deferred() does, and is
 *  then tried once more. A rank that never releases its own keeps that
 *  allocation on all ranks.
 *
 *  IRIS_ERR_INVALID      not the start of a live allocation of this heap, or
 *                        given to this call before: iris_free() then gives that
 *                        error, too
 *  IRIS_ERR_STATE        the context is being finalized, or has been
 *  IRIS_ERR_NO_MEMORY    no memory for a record; the allocation stays */
IRIS_API iris_status_t iris_free_later(iris_t *iris, void *ptr);

/** Names the allocation of this rank's heap that `ptr` is in, for messages and
 *  traces: iris_name(iris, inbox, "inbox"). The name is copied, has at most 47
 *  characters, and goes with the allocation; NULL takes it away. Not
 *  collective. Thread-safe.
 *
 *  IRIS_ERR_INVALID      nothing is allocated there, or the name is too long
 *  IRIS_ERR_NO_MEMORY */
IRIS_API iris_status_t iris_name(iris_t *iris, const void *ptr,
                                 const char *name);

/** Frees now what every rank has given to iris_free_later(). Collective. Waits
 *  for this rank's streams, as far as they had work when something was
 *  released: none of that may wait for what this rank's host has yet to do.
 *
 *  IRIS_ERR_NO_MEMORY    no memory to compare what the ranks have released;
 *                        nothing is freed
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_free_deferred(iris_t *iris);

/** Makes memory of the program's own symmetric: `bytes` bytes at `ptr`, memory
 *  of any device or of the host that this rank's device can copy from.
 *  Collective over the job: every rank passes the same size and memory of its
 *  own. *symmetric_p is then an address on the heap, at the same offset on
 *  every rank, which the caller frees with iris_free().
 *
 *  Where it can be, that is the same memory, mapped a second time: writes
 *  through either address are seen through the other, between kernels; and the
 *  program may free its own whenever it likes, the memory stays until
 *  iris_free() or iris_finalize(). *shared_p is 1. It can be if, on every rank,
 *  IRIS_ALLOCATOR is vmem; the memory is this rank's device's, made by the
 *  runtime's virtual memory calls (hipMemCreate, cuMemCreate) with a handle
 *  that can be exported as a file descriptor, and mapped in one piece; `ptr` is
 *  equally far into it; and the largest allocation fits into address space as
 *  large as the heap's own, which all shared memory has together. Peers map the
 *  whole allocation that contains `ptr`, once. Sharing any part of it again
 *  returns an address in the same mapping; call iris_free() once per share.
 *
 *  Otherwise it is memory as iris_malloc() gives, to which the contents are
 *  copied once, on the default stream, which this call waits for. *shared_p is
 *  0. The pool allocator and the CPU always copy.
 *
 *  The caller has synchronised the streams that write to the memory. shared_p
 *  may be NULL.
 *
 *  IRIS_ERR_INVALID      ptr is NULL or on the heap already, bytes is 0,
 *                        symmetric_p is NULL
 *  IRIS_ERR_NO_MEMORY    the copy does not fit (see iris_malloc()), or the
 *                        system has no memory for records
 *  IRIS_ERR_DEVICE       mapping or copying failed on some rank; nothing is
 *                        shared, the program's memory is as it was
 *  IRIS_ERR_LIMIT        too many open descriptors, on some rank
 *  IRIS_ERR_SYSTEM       what is shared could not be told to other processes
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_as_symmetric(iris_t *iris, const void *ptr,
                                         size_t bytes, void **symmetric_p,
                                         int *shared_p);

/** Fills *stats_p for this rank. Local, does not block.
 *  IRIS_ERR_INVALID (stats_p is NULL), IRIS_ERR_STATE */
#define iris_heap_stats(iris, stats_p) \
    iris_heap_stats_sized((iris), (stats_p), sizeof *(stats_p))

/** iris_heap_stats() for a struct of `size` bytes, as the caller's header has
 *  it. IRIS_ERR_INVALID also if iris_config_init_sized() would not take that
 *  size. */
IRIS_API iris_status_t iris_heap_stats_sized(const iris_t *iris,
                                             struct iris_heap_stats *stats_p,
                                             size_t size);

/** 1 if `ptr` lies in this rank's own heap or in memory that
 *  iris_as_symmetric() has added to it, 0 if not (or on a bad context).
 *  Local, does not block. */
IRIS_API int iris_is_symmetric(const iris_t *iris, const void *ptr);

/** 1 if this rank maps `rank`'s heap, as it always does its own. 0 if that rank
 *  is on another node, or on a device that this rank's device cannot access;
 *  the rank's base in iris_heap_bases() is then 0.
 *
 *  A heap that is not mapped has no address here. If it is on another node,
 *  kernels on CPUs and calls on streams reach it through the transport, unless
 *  IRIS_TRANSPORT=none. Otherwise host calls on it return
 *  IRIS_ERR_UNREACHABLE, and kernels must not touch it. Local, does not
 *  block. */
IRIS_API int iris_is_reachable(const iris_t *iris, int rank);

/** Translates `ptr`, in this rank's heap, to `rank`'s heap:
 *  ptr - heap_bases[own] + heap_bases[rank]. Local, does not block.
 *
 *  IRIS_ERR_INVALID      ptr is not in this rank's heap, rank out of range,
 *                        remote_p is NULL
 *  IRIS_ERR_UNREACHABLE  that heap is not mapped here
 *  IRIS_ERR_STATE */
IRIS_API iris_status_t iris_as_remote(const iris_t *iris, const void *ptr,
                                      int rank, void **remote_p);

/** Translates `ptr` from from_rank's heap, as this rank maps it, to to_rank's:
 *  ptr - heap_bases[from_rank] + heap_bases[to_rank]. If from_rank is this
 *  rank, this is iris_as_remote(). Local, does not block.
 *
 *  IRIS_ERR_INVALID      ptr is not in from_rank's heap, a rank is out of
 *                        range, there_p is NULL
 *  IRIS_ERR_UNREACHABLE  one of the heaps is not mapped here
 *  IRIS_ERR_STATE */
IRIS_API iris_status_t iris_translate(const iris_t *iris, const void *ptr,
                                      int from_rank, int to_rank,
                                      void **there_p);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_HEAP_H */
