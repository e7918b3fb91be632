/* SPDX-License-Identifier: MIT
 *
 * Streams: in-order queues of kernels, copies and fills of one rank.
 */
#ifndef IRIS_STREAM_H
#define IRIS_STREAM_H

#include <iris/context.h>
#include <iris/device/tile_view.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An in-order queue. Opaque. Where a call takes a stream, NULL means the
 *  context's own default stream. Any thread may enqueue.
 *
 *  On a GPU none of them is ordered with the runtime's default stream (they are
 *  non-blocking), nor with each other, but for what iris_stream_wrap() makes.
 *  To order one behind another, signal and wait on them, or use events of the
 *  runtime on what iris_stream_native() gives.
 *
 *  On a GPU a stream is full when the work of some 500 calls is not done; of a
 *  capture's calls it takes any number. The next call then waits until half of
 *  the work is done, as iris_stream_synchronize() waits, and may return
 *  IRIS_ERR_PEER_LOST or IRIS_ERR_TIMEOUT for the same reasons, having enqueued
 *  nothing; the next iris_stream_synchronize() returns it, too, and until then
 *  this rank's waiting kernels end. So those calls must not wait for what this
 *  thread has yet to do. */
typedef struct iris_stream iris_stream_t;

/** Makes a stream, the caller's until iris_stream_destroy(). Local. Where a
 *  process has many streams and graphs on a GPU it may wait for kernels there
 *  (docs/kernels.md, "The residency rule").
 *
 *  IRIS_ERR_INVALID      stream_p is NULL
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_DEVICE, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_stream_create(iris_t *iris,
                                          iris_stream_t **stream_p);

/** Makes a stream around one of the GPU's own runtime: `native` is a
 *  hipStream_t or cudaStream_t of this rank's device, NULL its default stream.
 *  Work enqueued through either is in one order. The native stream stays the
 *  program's and outlives the result, which is the caller's until
 *  iris_stream_destroy(). On the CPU NULL gives the context's default stream.
 *  Local.
 *
 *  IRIS_ERR_UNSUPPORTED  no GPU, and native is not NULL
 *  IRIS_ERR_INVALID      not a stream of this device, or stream_p is NULL
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_DEVICE, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_stream_wrap(iris_t *iris, void *native,
                                        iris_stream_t **stream_p);

/** The hipStream_t or cudaStream_t behind a stream, still the context's; NULL
 *  on the CPU or a bad context or stream. What the program enqueues there by
 *  its runtime's own calls is in one order with the rest, and waited for by
 *  iris_stream_synchronize(); whether the stream is full it does not count.
 *  Local. */
IRIS_API void *iris_stream_native(iris_t *iris, iris_stream_t *stream);

/** Finishes the stream's work and frees it; blocks as
 *  iris_stream_synchronize() does. A capture of the stream, whoever began it,
 *  ends without a graph. An error of the work is logged. Local. NULL is fine.
 */
IRIS_API void iris_stream_destroy(iris_t *iris, iris_stream_t *stream);

/** Blocks until everything enqueued so far is done, and returns the error of
 *  the context's work: the first, on whichever stream. It ends this rank's
 *  kernels that wait, and every call that needs the device returns it from then
 *  on, with the same message, until iris_clear_error().
 *
 *  IRIS_ERR_PEER_LOST    a kernel waited for a rank that died; the kernel was
 *                        ended
 *  IRIS_ERR_TIMEOUT      the deadline passed; waiting kernels were ended. The
 *                        message says what they waited for; on a GPU if
 *                        IRIS_DEVICE_TIMEOUT_MS ended them
 *  IRIS_ERR_DEVICE       the GPU or its runtime failed; most such errors stay
 *  IRIS_ERR_INVALID      no stream of this context
 *  IRIS_ERR_STATE        also: the stream is being captured */
IRIS_API iris_status_t iris_stream_synchronize(iris_t *iris,
                                               iris_stream_t *stream);

/** Copies `bytes` from src to dst on the stream; each is host memory, device
 *  memory or a mapped heap. They must not overlap. Asynchronous: both stay
 *  valid, and the program leaves src as it is, until the stream has got there.
 *  The copy sees all earlier work that Iris enqueued on this process's streams.
 *  It is ordered after the program's own GPU work only if src is pinned or
 *  device memory. 0 bytes touch nothing. Local.
 *
 *  One exception: between a GPU and host memory that is not pinned, a copy of
 *  more than 4 MiB, or of less while others of that kind have not been made,
 *  blocks until the stream has done all before it, as iris_stream_synchronize()
 *  does, and the copy as well. So a stream that waits for what this thread has
 *  yet to do, here or through a peer, must not be given one: copy from or to
 *  pinned memory (hipHostMalloc(), cudaHostAlloc()). If a peer dies meanwhile
 *  or the deadline passes, kernels that wait are ended, and the copy is made
 *  all the same, unless it had no room yet; the next iris_stream_synchronize()
 *  returns IRIS_ERR_PEER_LOST or IRIS_ERR_TIMEOUT.
 *
 *  IRIS_ERR_INVALID      dst or src is NULL, a range goes past the end of a
 *                        heap, no stream of this context
 *  IRIS_ERR_STATE        also: such a copy found a kernel that cannot be ended
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_DEVICE
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT  from a full stream (iris_stream_t) */
IRIS_API iris_status_t iris_memcpy(iris_t *iris, void *dst, const void *src,
                                   size_t bytes, iris_stream_t *stream);

/** iris_memcpy() on the default stream that is done on return: blocks until all
 *  that the stream did before and the copy are. 0 bytes only wait. Local.
 *  Statuses as iris_memcpy() and iris_stream_synchronize(); in a capture of
 *  the default stream IRIS_ERR_STATE, and nothing is captured. */
IRIS_API iris_status_t iris_memcpy_sync(iris_t *iris, void *dst,
                                        const void *src, size_t bytes);

/** Fills `bytes` bytes at dst with the byte `value` on the stream.
 *  Asynchronous. 0 bytes touch nothing. Local. Statuses as iris_memcpy(). */
IRIS_API iris_status_t iris_memset(iris_t *iris, void *dst, int value,
                                   size_t bytes, iris_stream_t *stream);

/** Sets the words of this rank's device context that are about tracing, for
 *  kernels that read them, as upstream's do: `words` has
 *  IRIS_CONTEXT_TAIL_WORDS, 17, from IRIS_CONTEXT_TRACE_ENABLED on, in the
 *  order of <iris/device/layout.h>. They are 0 at the start, which means no
 *  tracing. In stream order: work enqueued on the stream earlier reads the old
 *  words, later work reads the new ones. Kernels on other streams may meanwhile
 *  read some of either. Blocks until it is done. Local.
 *
 *  IRIS_ERR_INVALID      words is NULL, or not a stream of this context
 *  IRIS_ERR_STATE        also: the stream is being captured
 *
 *  Also returns the error of work on the stream. */
IRIS_API iris_status_t iris_device_context_set_tracing(iris_t *iris,
                                                       const int64_t *words,
                                                       iris_stream_t *stream);

/* ---- Remote memory access from the host, in stream order --------------------
 *
 * On a GPU copy engines put and get. The stream signals and waits in hardware
 * if it can. It launches a kernel of one lane instead
 *   - during a capture,
 *   - for every wait on AMD,
 *   - for a wait beyond the 64th since iris_stream_synchronize() was last
 *     called on the stream,
 *   - for a wait whose comparison is not EQ, and not GE with a value below
 *     2^63. A signal that such a GE waits for must stay below 2^63.
 * The work of a rank's stream before a signal is visible to every stream and
 * kernel that waits for that signal. All calls are local and asynchronous;
 * puts and gets treat large copies of pageable memory as iris_memcpy() does.
 *
 * IRIS_ERR_INVALID      a pointer that must be symmetric is not on this rank's
 *                       heap, a size goes past it, a signal is misaligned, no
 *                       such rank or comparison, no stream of this context
 * IRIS_ERR_UNREACHABLE  that rank's heap is not mapped here
 * IRIS_ERR_STATE        of puts and gets: see iris_memcpy()
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_DEVICE
 * IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT  from a full stream (iris_stream_t) */

/** Copies `bytes` from this rank's `src` (any memory iris_memcpy() takes) to
 *  where to_rank keeps `dst`, which is symmetric. 0 bytes touch nothing. */
IRIS_API iris_status_t iris_put_on_stream(iris_t *iris, void *dst,
                                          const void *src, size_t bytes,
                                          int to_rank, iris_stream_t *stream);

/** Copies `bytes` from where from_rank keeps `src`, which is symmetric, to this
 *  rank's `dst` (any memory iris_memcpy() takes). 0 bytes touch nothing. */
IRIS_API iris_status_t iris_get_on_stream(iris_t *iris, void *dst,
                                          const void *src, size_t bytes,
                                          int from_rank, iris_stream_t *stream);

/** Copies from this rank's `src` to to_rank's copy of `dst`, which is
 *  symmetric. Copies the rows and columns that both tiles have: the lesser
 *  number of each. Both have elements of the same size, and any strides. dst
 *  has no element twice, and src and dst do not overlap. The data of a tile
 *  without elements is not looked at.
 *
 *  If the elements of the rows, or those of the columns, are adjacent in both
 *  tiles, the tile is one copy of the engine. Otherwise each element is a row
 *  of its own, so pass tiles that agree. Rows are copied one by one on a GPU if
 *  the memory is not pinned, or if a stride is 2 GiB or more; each row then
 *  counts as a call of the stream. */
IRIS_API iris_status_t iris_put_tile_on_stream(iris_t *iris,
                                               const iris_tile_t *dst,
                                               const iris_tile_t *src,
                                               int to_rank,
                                               iris_stream_t *stream);

/** Copies from from_rank's copy of `src`, which is symmetric, to this rank's
 *  `dst`. Otherwise as iris_put_tile_on_stream(). */
IRIS_API iris_status_t iris_get_tile_on_stream(iris_t *iris,
                                               const iris_tile_t *dst,
                                               const iris_tile_t *src,
                                               int from_rank,
                                               iris_stream_t *stream);

/** Copy `count` tiles as the two calls above do, in order: src[i] to dst[i]. If
 *  an argument is wrong, nothing is enqueued. The arrays are read before the
 *  call returns. */
IRIS_API iris_status_t iris_put_tiles_on_stream(iris_t *iris,
                                                const iris_tile_t *dst,
                                                const iris_tile_t *src,
                                                size_t count, int to_rank,
                                                iris_stream_t *stream);
IRIS_API iris_status_t iris_get_tiles_on_stream(iris_t *iris,
                                                const iris_tile_t *dst,
                                                const iris_tile_t *src,
                                                size_t count, int from_rank,
                                                iris_stream_t *stream);

/** Sets to_rank's `signal`, symmetric, to `value` when the stream gets there:
 *  release at system scope of all the stream did before. */
IRIS_API iris_status_t iris_signal_on_stream(iris_t *iris, uint64_t *signal,
                                             uint64_t value, int to_rank,
                                             iris_stream_t *stream);

/** iris_put_on_stream(), then its signal: to_rank's `signal`, symmetric, is set
 *  to `value`, or `value` is added to it, which is a kernel of one lane. With
 *  ADD many senders can share a signal (<iris/device/signal.h> says how). Of 0
 *  bytes it is the signal alone, and dst and src are not looked at. Where it
 *  fails for a wrong argument nothing is enqueued; of a full stream or a failed
 *  device the put may have been, without its signal. Also IRIS_ERR_INVALID: no
 *  such signal_op. */
IRIS_API iris_status_t iris_put_signal_on_stream(
    iris_t *iris, void *dst, const void *src, size_t bytes, uint64_t *signal,
    uint64_t value, iris_signal_op_t signal_op, int to_rank,
    iris_stream_t *stream);

/** Holds the stream until this rank's own `signal` is CMP `value`: acquire at
 *  system scope for all that follows. A signal that never comes is an error of
 *  iris_stream_synchronize(): where the stream itself waits, without a kernel
 *  (above), IRIS_DEVICE_TIMEOUT_MS does not count, only IRIS_TIMEOUT_MS. Iris
 *  ends such a wait by writing to the signal what is waited for: set it anew
 *  after iris_clear_error(). What comes after the wait runs though the signal
 *  never came: trust nothing it wrote. */
IRIS_API iris_status_t iris_wait_on_stream(iris_t *iris, uint64_t *signal,
                                           iris_cmp_t cmp, uint64_t value,
                                           iris_stream_t *stream);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_STREAM_H */
