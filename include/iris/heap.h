/* SPDX-License-Identifier: MIT
 *
 * The symmetric heap. Collective allocation returns memory at the same offset
 * in every rank's heap, so that a kernel reaches a peer's copy of an
 * allocation by adding the difference of two heap bases.
 *
 *     float *inbox;
 *     status = iris_malloc_typed(iris, 1024, &inbox);  // all ranks call this
 *     ...
 *     status = iris_free(iris, inbox);                 // and this
 *
 * This header has allocation and release, memory of the program's own that
 * becomes symmetric (iris_as_symmetric()), and translation of pointers on the
 * host. Kernels translate pointers with iris_dev_as_remote().
 *
 * @use job; blocks; apart
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

/** Figures of this rank's heap, in bytes unless the comment says "count". No
 *  figure includes memory that iris_as_symmetric() shares. Later versions add
 *  figures at the end. */
struct iris_heap_stats {
    size_t size;       /**< How much of the struct the library fills
                                    in; it zeroes the rest. */
    size_t heap_bytes; /**< Size of the heap: IRIS_HEAP_SIZE, or the end of
                                    its last allocation if it has grown. */
    size_t used_bytes; /**< In live allocations, rounded up. */
    size_t free_bytes; /**< Of heap_bytes: neither allocated nor used by
                                    the library. */
    size_t largest_free_bytes; /**< Largest allocation that would succeed. */
    size_t peak_bytes;         /**< Highest used_bytes so far. */
    size_t mapped_bytes;       /**< Backed by memory. If heaps grow, as on CPUs
                                    and with IRIS_ALLOCATOR=vmem, allocations
                                    add to it. */
    size_t reserved_bytes;     /**< Address space that the heap may grow into:
                                    IRIS_HEAP_RESERVE, or IRIS_HEAP_SIZE. */
    size_t metadata_bytes;     /**< The allocator's records, which are outside
                                    the heap. */
    size_t num_allocs;         /**< Count of live allocations. */
    size_t num_deferred;       /**< Count of allocations that this rank has
                                    released with iris_free_later() and that
                                    are not freed yet. Includes memory that
                                    iris_as_symmetric() copied or shared. */
};

/** Allocates `bytes` bytes on every rank's heap, at the same offset, aligned to
 *  IRIS_ALIGNMENT, with undefined contents. Collective over the job: every rank
 *  passes the same size, and the library compares the ranks' calls. The call
 *  returns once every rank has the memory, so kernels may write to peers at
 *  once. Memory backs the allocation from the start: kernels never fault on it.
 *  With IRIS_ALLOCATOR=vmem the heap may have to grow; the device then zeroes
 *  the new memory, and the call waits for that. With IRIS_HEAP_RESERVE a heap
 *  grows beyond IRIS_HEAP_SIZE. No heap base changes, so running kernels may
 *  use the heap meanwhile.
 *
 *  IRIS_ERR_INVALID      bytes is 0, count * size overflows, ptr_p is NULL, or
 *                        the alignment is too large or not a power of two
 *  IRIS_ERR_NO_MEMORY    no free block of the heap is large enough, or the
 *                        system is out of shared memory, or a GPU is out of
 *                        memory (on any rank)
 *  IRIS_ERR_MISMATCH     the ranks made different calls; the message names them
 *  IRIS_ERR_DEVICE       a GPU could not map or zero new memory, on any rank
 *  IRIS_ERR_SYSTEM       a handle of new memory could not be sent to the other
 *                        processes
 *  IRIS_ERR_LIMIT        too many open descriptors, on any rank
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_malloc(iris_t *iris, size_t bytes, void **ptr_p);

/** iris_malloc() with an alignment, in bytes: a power of two up to
 *  IRIS_ALIGNMENT_MAX. Returns the statuses of iris_malloc().
 *  @param alignment  in bytes */
IRIS_API iris_status_t iris_malloc_aligned(iris_t *iris, size_t bytes,
                                           size_t alignment, void **ptr_p);

/** Allocates count * size bytes as iris_malloc() does, and zeroes them. When
 *  the call returns, they are zero on every rank. It waits for this rank's
 *  default stream. Returns the statuses of iris_malloc(), or the error of work
 *  on that stream.
 *  @use refused
 *  @param count, size  number of elements, and bytes of each */
IRIS_API iris_status_t iris_calloc(iris_t *iris, size_t count, size_t size,
                                   void **ptr_p);

/* Implements the two macros below. It copies the pointer's bytes, because ptr_p
 * does not point to a void pointer. If count * size overflows, iris_calloc()
 * returns the error. */
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

/** iris_malloc() and iris_calloc() of `count` elements of a pointer's type,
 *  without a cast. After `float *x;`
 *      status = iris_malloc_typed(iris, count, &x);
 *  The argument has to be the address of a pointer to a complete type. Each
 *  argument is evaluated once. They work in C and C++, and return the statuses
 *  of iris_calloc().
 *  @use refused
 *  @param ptr_p  address of a pointer, which receives the memory
 *  @param ptr  address that an allocation returned; NULL on all ranks does
 *     nothing */
#define iris_malloc_typed(iris, count, ptr_p) \
    iris_i_malloc_typed((iris), 0, (count), sizeof **(ptr_p), (ptr_p))
#define iris_calloc_typed(iris, count, ptr_p) \
    iris_i_malloc_typed((iris), 1, (count), sizeof **(ptr_p), (ptr_p))

/** Frees an allocation on every rank. Collective: every rank passes its own
 *  address of the same allocation. Synchronize the streams whose kernels use
 *  the memory first. The call does nothing if every rank passes NULL.
 *
 *  If iris_as_symmetric() shared the memory, the call unmaps it. A GPU then
 *  waits until all of this rank's kernels have ended, on all streams. So no
 *  running kernel may wait for something that this rank's host does after this
 *  call, directly or through a peer.
 *
 *  IRIS_ERR_INVALID      not the start of a live allocation of this heap
 *                        (foreign, interior or already freed)
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_free(iris_t *iris, void *ptr);

/** Frees an allocation once every rank has released it with this call. Ranks
 *  may release different allocations in different orders. Use it in garbage
 *  collectors, destructors and DLPack deleters, which cannot call the
 *  collective iris_free(). `ptr` is this rank's own address of an allocation
 *  that iris_malloc(), iris_as_symmetric() or a similar call returned. The
 *  program must not use the memory in later calls; kernels that it has already
 *  enqueued may still use it. Local and thread-safe; never blocks. Threads may
 *  call it until iris_finalize() returns, which frees everything. NULL does
 *  nothing.
 *
 *  A later collective call frees the memory: an allocation, iris_free(),
 *  iris_as_symmetric(), or iris_barrier() of all ranks. Each of these frees an
 *  allocation if every rank has released it, and the work that the ranks'
 *  streams held at release has completed. The call does not wait for that work.
 *  It costs no extra time unless every rank has released something. Only an
 *  allocation that would otherwise fail for lack of memory waits for the
 *  streams, as iris_free_deferred() does, and then tries again. If one rank
 *  never releases an allocation, all ranks keep it.
 *
 *  IRIS_ERR_INVALID      not the start of a live allocation of this heap, or
 *                        already released by this rank (iris_free() returns
 *                        this error for such an allocation, too)
 *  IRIS_ERR_STATE        the context is finalized, or another thread is
 *                        finalizing it
 *  IRIS_ERR_NO_MEMORY    no memory for a record; the allocation stays
 *  @use local; never blocks; apart
 *  @param ptr  address that an allocation returned; NULL does nothing */
IRIS_API iris_status_t iris_free_later(iris_t *iris, void *ptr);

/** Names the allocation of this rank's heap that contains `ptr`, for messages
 *  and traces: iris_name(iris, inbox, "inbox"). The call copies the name, which
 *  has at most 47 characters. The name lasts as long as the allocation; NULL
 *  removes it. Not collective. Thread-safe.
 *
 *  IRIS_ERR_INVALID      nothing is allocated there, or the name is too long
 *  IRIS_ERR_NO_MEMORY
 *  @use local; never blocks; apart
 *  @param name  up to 47 characters, copied; NULL removes the name */
IRIS_API iris_status_t iris_name(iris_t *iris, const void *ptr,
                                 const char *name);

/** Frees now all allocations that every rank has released with
 *  iris_free_later(). Collective. The call waits for the work that this rank's
 *  streams held when it released them. That work must not wait for something
 *  that this rank's host does after this call.
 *
 *  IRIS_ERR_NO_MEMORY    no memory to compare the ranks' lists of released
 *                        allocations; nothing is freed
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_free_deferred(iris_t *iris);

/** Gives the memory that no allocation uses back to the system, on every rank.
 *  Collective. The heap keeps its addresses, and an allocation backs them with
 *  memory again. First frees allocations that all ranks have released, as
 *  iris_free_deferred() does, and waits for the same work.
 *
 *  On CPUs, memory goes back in pieces of 64 KiB; iris_free() itself gives back
 *  free ranges of 1 MiB or more. With IRIS_ALLOCATOR=vmem, the memory that one
 *  allocation added goes back as a whole, once nothing is allocated in it; if
 *  kernels are running, it goes after them. The pool allocator gives back
 *  nothing.
 *
 *  IRIS_ERR_NO_MEMORY    no memory to compare the ranks' lists of released
 *                        allocations; nothing is given back
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *  @param freed_p  receives the bytes that this rank gave back; may be NULL */
IRIS_API iris_status_t iris_heap_trim(iris_t *iris, size_t *freed_p);

/** Makes memory that the program allocated itself symmetric: `bytes` bytes at
 *  `ptr`, on the host or on any device that this rank's device can copy from.
 *  Collective over the job: every rank passes the same size and its own memory.
 *  *symmetric_p receives an address on the heap, at the same offset on every
 *  rank. The caller frees it with iris_free(). Synchronize the streams that
 *  write to the memory first. shared_p may be NULL.
 *
 *  If possible, the call maps the same memory a second time and sets *shared_p
 *  to 1. Kernels then see writes through either address, at kernel boundaries.
 *  The program may free its own mapping at any time; the memory stays until
 *  iris_free() or iris_finalize(). Sharing is possible if all of the following
 *  hold on every rank:
 *   - IRIS_ALLOCATOR is vmem;
 *   - the memory is on this rank's device, and was made in one piece by the
 *     runtime's virtual memory calls (hipMemCreate, cuMemCreate) with a handle
 *     that can be exported as a file descriptor;
 *   - `ptr` has the same offset within that piece on all ranks;
 *   - the address space for shared memory, which is as large as the heap's, has
 *     room for the largest of the ranks' pieces.
 *  Peers map the whole allocation that contains `ptr`, once. Sharing any part
 *  of it again returns an address in the same mapping; call iris_free() once
 *  per share.
 *
 *  Otherwise the call allocates memory as iris_malloc() does, copies the
 *  contents once on the default stream, waits for that, and sets *shared_p to
 *  0. The pool allocator and the CPU always copy.
 *
 *  IRIS_ERR_INVALID      ptr is NULL or on the heap already, bytes is 0,
 *                        symmetric_p is NULL
 *  IRIS_ERR_NO_MEMORY    the copy does not fit (see iris_malloc()), or the
 *                        system has no memory for records
 *  IRIS_ERR_DEVICE       mapping or copying failed on some rank; nothing is
 *                        shared, and the program's memory is unchanged
 *  IRIS_ERR_LIMIT        too many open descriptors, on some rank
 *  IRIS_ERR_SYSTEM       a handle could not be sent to the other processes
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *  @use refused
 *  @param ptr  the program's own memory, not on the heap */
IRIS_API iris_status_t iris_as_symmetric(iris_t *iris, const void *ptr,
                                         size_t bytes, void **symmetric_p,
                                         int *shared_p);

/** Fills *stats_p for this rank. Local, does not block.
 *  IRIS_ERR_INVALID (stats_p is NULL), IRIS_ERR_STATE
 *  @use local; never blocks; apart
 *  @param stats_p  receives the figures */
#define iris_heap_stats(iris, stats_p) \
    iris_heap_stats_sized((iris), (stats_p), sizeof *(stats_p))

/** iris_heap_stats() for a struct of `size` bytes, which is the size in the
 *  caller's header. IRIS_ERR_INVALID also for a size that
 *  iris_config_init_sized() would refuse.
 *  @use local; never blocks; apart
 *  @param stats_p  receives the figures */
IRIS_API iris_status_t iris_heap_stats_sized(const iris_t *iris,
                                             struct iris_heap_stats *stats_p,
                                             size_t size);

/** 1 if `ptr` lies in this rank's own heap or in memory that
 *  iris_as_symmetric() has added to it, 0 if not (or on a bad context).
 *  Local, does not block.
 *  @use local; never blocks; apart
 *  @param ptr  any address */
IRIS_API int iris_is_symmetric(const iris_t *iris, const void *ptr);

/** 1 if this rank maps `rank`'s heap; it always maps its own. 0 if that rank
 *  is on another node, or on a device that this rank's device cannot access;
 *  the rank's base in iris_heap_bases() is then 0.
 *
 *  A heap that is not mapped has no address here. If it is on another node,
 *  kernels on CPUs and calls on streams reach it through the transport, unless
 *  IRIS_TRANSPORT=none. Otherwise host calls on it return
 *  IRIS_ERR_UNREACHABLE, and kernels must not touch it. Local, does not
 *  block.
 *  @use local; never blocks; apart */
IRIS_API int iris_is_reachable(const iris_t *iris, int rank);

/** Translates `ptr`, in this rank's heap, to `rank`'s heap:
 *  ptr - heap_bases[own] + heap_bases[rank]. Local, does not block.
 *
 *  IRIS_ERR_INVALID      ptr is not in this rank's heap, rank out of range,
 *                        remote_p is NULL
 *  IRIS_ERR_UNREACHABLE  that heap is not mapped here
 *  IRIS_ERR_STATE
 *  @use local; never blocks; apart; one node
 *  @param remote_p  receives the address on `rank` */
IRIS_API iris_status_t iris_as_remote(const iris_t *iris, const void *ptr,
                                      int rank, void **remote_p);

/** Translates `ptr` from from_rank's heap, as this rank maps it, to to_rank's:
 *  ptr - heap_bases[from_rank] + heap_bases[to_rank]. If from_rank is this
 *  rank, this is iris_as_remote(). Local, does not block.
 *
 *  IRIS_ERR_INVALID      ptr is not in from_rank's heap, a rank is out of
 *                        range, there_p is NULL
 *  IRIS_ERR_UNREACHABLE  one of the heaps is not mapped here
 *  IRIS_ERR_STATE
 *  @use local; never blocks; apart; one node
 *  @param ptr  address in from_rank's heap, as mapped here
 *  @param there_p  receives the address on to_rank */
IRIS_API iris_status_t iris_translate(const iris_t *iris, const void *ptr,
                                      int from_rank, int to_rank,
                                      void **there_p);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_HEAP_H */
