/* SPDX-License-Identifier: MIT
 *
 * Streams: in-order queues of one rank's kernels, copies, fills, and remote
 * memory access from the host.
 *
 *     iris_stream_t *stream;
 *     status = iris_stream_create(iris, &stream);
 *     status = iris_put_signal_on_stream(iris, inbox, data, bytes, flag, 1,
 *                                        IRIS_SIGNAL_SET, peer, stream);
 *     status = iris_wait_on_stream(iris, flag, IRIS_CMP_GE, 1, stream);
 *     status = iris_stream_synchronize(iris, stream);
 *
 * @use local; blocks if full; captured; one node
 * @param dst  target
 * @param src  source
 */
#ifndef IRIS_STREAM_H
#define IRIS_STREAM_H

#include <iris/context.h>
#include <iris/device/wg/tile_view.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An in-order queue. Opaque. Where a call takes a stream, NULL means the
 *  context's own default stream. Any thread may enqueue.
 *
 *  On a GPU the streams are non-blocking: no order holds between them and the
 *  runtime's default stream, nor between two of them. The exception is a stream
 *  that iris_stream_wrap() made from the runtime's default stream. To order two
 *  streams, signal on one and wait on the other, or use the runtime's events on
 *  the result of iris_stream_native().
 *
 *  On a GPU a stream is full while the work of some 500 calls has not
 *  completed; a capture takes any number of calls. A call on a full stream
 *  waits until half of the work has completed. It waits as
 *  iris_stream_synchronize() does, and may return IRIS_ERR_PEER_LOST or
 *  IRIS_ERR_TIMEOUT for the same reasons; it has then enqueued nothing. The
 *  next iris_stream_synchronize() returns that error, too, and until then this
 *  rank's waiting kernels end. So the work on a full stream must not wait for
 *  something that this thread does later. */
typedef struct iris_stream iris_stream_t;

/** Makes a stream, which the caller owns until iris_stream_destroy(). Local. If
 *  the process has many streams and graphs on a GPU, the call may wait for
 *  kernels on that GPU (docs/kernels.md, "The residency rule").
 *
 *  IRIS_ERR_INVALID      stream_p is NULL
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_DEVICE, IRIS_ERR_STATE
 *  @use local; never blocks; apart; blocks at times; all nodes
 *  @param stream_p  receives the stream */
IRIS_API iris_status_t iris_stream_create(iris_t *iris,
                                          iris_stream_t **stream_p);

/** Makes a stream from one of the GPU's runtime: `native` is a hipStream_t or
 *  cudaStream_t of this rank's device; NULL is the device's default stream.
 *  Work enqueued through either stream is in one order. The program owns the
 *  native stream and keeps it until after iris_stream_destroy(). On the CPU,
 *  NULL gives the context's default stream. Local.
 *
 *  IRIS_ERR_UNSUPPORTED  no GPU, and native is not NULL
 *  IRIS_ERR_INVALID      not a stream of this device, or stream_p is NULL
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_DEVICE, IRIS_ERR_STATE
 *  @use local; never blocks; apart; all nodes
 *  @param native  a hipStream_t or cudaStream_t
 *  @param stream_p  receives the stream */
IRIS_API iris_status_t iris_stream_wrap(iris_t *iris, void *native,
                                        iris_stream_t **stream_p);

/** The hipStream_t or cudaStream_t of a stream, which the context still owns.
 *  NULL on the CPU, or on a bad context or stream. Work that the program
 *  enqueues there with the runtime's own calls is in one order with the rest,
 *  and iris_stream_synchronize() waits for it. It does not count towards a full
 *  stream. Local.
 *  @use local; never blocks; apart; all nodes */
IRIS_API void *iris_stream_native(iris_t *iris, iris_stream_t *stream);

/** Completes the stream's work and frees the stream; blocks as
 *  iris_stream_synchronize() does. A capture of the stream ends without a
 *  graph, even one that the program began with its runtime's own calls. An
 *  error of the work is logged. Local. NULL does nothing.
 *  @use local; never blocks; apart; blocks; all nodes */
IRIS_API void iris_stream_destroy(iris_t *iris, iris_stream_t *stream);

/** Blocks until all work enqueued so far has completed. Returns the first error
 *  of the context's work on any stream. Such an error ends this rank's waiting
 *  kernels. Every later call that needs the device returns the same error, with
 *  the same message, until iris_clear_error().
 *
 *  IRIS_ERR_PEER_LOST    a kernel waited for a rank that died; Iris ended the
 *                        kernel
 *  IRIS_ERR_TIMEOUT      the deadline passed; Iris ended the waiting kernels.
 *                        The message names the words they waited for (on a GPU
 *                        only if IRIS_DEVICE_TIMEOUT_MS ended them).
 *  IRIS_ERR_DEVICE       the GPU or its runtime failed; most such errors stay
 *  IRIS_ERR_INVALID      not a stream of this context
 *  IRIS_ERR_STATE        also: the stream is being captured
 *  @use blocks; refused; all nodes */
IRIS_API iris_status_t iris_stream_synchronize(iris_t *iris,
                                               iris_stream_t *stream);

/** Copies `bytes` bytes from src to dst on the stream. Each of the two is host
 *  memory, device memory or a mapped heap; they must not overlap. Asynchronous:
 *  the program keeps both buffers valid, and does not change src, until the
 *  stream has made the copy. The copy sees all earlier work that Iris enqueued
 *  on this process's streams. It is ordered after the program's own GPU work
 *  only if src is pinned or device memory. With 0 bytes it touches no memory.
 *  Local.
 *
 *  One kind of copy blocks: between a GPU and host memory that is not pinned,
 *  if it has more than 4 MiB, or if earlier copies of this kind have not
 *  completed. The call then waits until the copy and all earlier work of the
 *  stream have completed, as iris_stream_synchronize() does. Do not enqueue such
 *  a copy on a stream that waits for something that this thread does later,
 *  directly or through a peer; use pinned memory (hipHostMalloc(),
 *  cudaHostAlloc()). If a peer dies meanwhile or the deadline passes, Iris ends
 *  the waiting kernels and makes the copy anyway, unless the stream was full.
 *  The next iris_stream_synchronize() returns IRIS_ERR_PEER_LOST or
 *  IRIS_ERR_TIMEOUT.
 *
 *  IRIS_ERR_INVALID      dst or src is NULL, a range goes past the end of a
 *                        heap, or not a stream of this context
 *  IRIS_ERR_STATE        also: a blocking copy found a kernel that cannot be
 *                        ended
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_DEVICE
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT  from a full stream (iris_stream_t)
 *  @use blocks at times */
IRIS_API iris_status_t iris_memcpy(iris_t *iris, void *dst, const void *src,
                                   size_t bytes, iris_stream_t *stream);

/** iris_memcpy() on the default stream, followed by a wait: blocks until the
 *  copy and all earlier work of the stream have completed. With 0 bytes it only
 *  waits. Local. Returns the statuses of iris_memcpy() and
 *  iris_stream_synchronize(). While the default stream is being captured it
 *  returns IRIS_ERR_STATE and captures nothing.
 *  @use blocks; refused */
IRIS_API iris_status_t iris_memcpy_sync(iris_t *iris, void *dst,
                                        const void *src, size_t bytes);

/** Fills `bytes` bytes at dst with the byte `value` on the stream.
 *  Asynchronous. With 0 bytes it touches no memory. Local. Returns the statuses
 *  of iris_memcpy().
 *  @param value  the byte, 0 to 255 */
IRIS_API iris_status_t iris_memset(iris_t *iris, void *dst, int value,
                                   size_t bytes, iris_stream_t *stream);

/* ---- Remote memory access from the host, in stream order --------------------
 *
 * On a GPU, copy engines put and get. The stream signals and waits in hardware
 * if it can. It launches a kernel of one lane instead
 *   - during a capture,
 *   - for every wait on AMD,
 *   - for a wait beyond the 64th since iris_stream_synchronize() was last
 *     called on the stream,
 *   - for a wait whose comparison is not EQ, and not GE with a value below
 *     2^63. A signal that such a GE waits for must stay below 2^63.
 * Every stream and kernel that waits for a signal sees the work that the
 * signalling rank's stream did before it. All calls are local and asynchronous.
 * Puts and gets of large pageable memory block as iris_memcpy() does.
 *
 * IRIS_ERR_INVALID      a pointer that must be symmetric is not on this rank's
 *                       heap, a range goes past its end, a signal is
 *                       misaligned, there is no such rank or comparison, or not
 *                       a stream of this context
 * IRIS_ERR_UNREACHABLE  that rank's heap is not mapped here
 * IRIS_ERR_STATE        for puts and gets: see iris_memcpy()
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_DEVICE
 * IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT  from a full stream (iris_stream_t)
 *
 * @use CPU nodes
 * @param value  number that the signal is set to, increased by or compared with */

/** Copies `bytes` bytes from this rank's `src` (any memory that iris_memcpy()
 *  takes) to to_rank's copy of `dst`, which is symmetric. With 0 bytes it
 *  touches no memory.
 *  @use blocks at times */
IRIS_API iris_status_t iris_put_on_stream(iris_t *iris, void *dst,
                                          const void *src, size_t bytes,
                                          int to_rank, iris_stream_t *stream);

/** Copies `bytes` bytes from from_rank's copy of `src`, which is symmetric, to
 *  this rank's `dst` (any memory that iris_memcpy() takes). With 0 bytes it
 *  touches no memory.
 *  @use blocks at times */
IRIS_API iris_status_t iris_get_on_stream(iris_t *iris, void *dst,
                                          const void *src, size_t bytes,
                                          int from_rank, iris_stream_t *stream);

/** The direction of iris_tiles_on_stream(). */
typedef enum iris_direction {
    IRIS_PUT, /**< from this rank's `src` to the rank's copy of `dst` */
    IRIS_GET, /**< from the rank's copy of `src` to this rank's `dst` */
} iris_direction_t;

/** Copies `count` tiles in order: src[i] to dst[i]. The tiles on the rank's side
 *  are symmetric. The call copies the rows and columns that both tiles have.
 *  Both have elements of the same size, and any strides. No two elements of
 *  dst[i] share memory, and src[i] and dst[i] do not overlap. The call ignores
 *  the data pointer of a tile without elements. If an argument is wrong, the
 *  call enqueues nothing. It reads the arrays before it returns.
 *
 *  If the elements of each row are adjacent in both tiles, or those of each
 *  column are, the copy engine copies the tile at once. Otherwise it copies each
 *  element by itself, which is slow: pass tiles with the same order. A GPU
 *  copies row by row if the memory is not pinned, or if a stride is 2 GiB or
 *  more; each row then counts as a call on the stream.
 *  @param direction  IRIS_PUT or IRIS_GET
 *  @param dst, src  arrays of `count` tiles
 *  @param count  number of tiles */
IRIS_API iris_status_t iris_tiles_on_stream(
    iris_t *iris, iris_direction_t direction, const iris_tile_t *dst,
    const iris_tile_t *src, size_t count, int rank, iris_stream_t *stream);

/** Sets to_rank's `signal`, which is symmetric, to `value` when the stream
 *  reaches the call. This is a release at system scope of all earlier work on
 *  the stream. */
IRIS_API iris_status_t iris_signal_on_stream(iris_t *iris, uint64_t *signal,
                                             uint64_t value, int to_rank,
                                             iris_stream_t *stream);

/** iris_put_on_stream(), followed by its signal: the stream sets to_rank's
 *  `signal`, which is symmetric, to `value`, or adds `value` to it with a kernel
 *  of one lane. With ADD, many senders can share a signal
 *  (<iris/device/core/signal.h> says how). With 0 bytes the call only signals, and
 *  ignores dst and src. After an error of an argument, nothing is enqueued.
 *  After an error of a full stream or a failed device, the put may be enqueued
 *  without its signal. Also IRIS_ERR_INVALID: no such signal_op.
 *  @use blocks at times
 *  @param signal_op  IRIS_SIGNAL_SET or IRIS_SIGNAL_ADD */
IRIS_API iris_status_t iris_put_signal_on_stream(
    iris_t *iris, void *dst, const void *src, size_t bytes, uint64_t *signal,
    uint64_t value, iris_signal_op_t signal_op, int to_rank,
    iris_stream_t *stream);

/** Makes the stream wait until this rank's own `signal` compares with `value`
 *  as `cmp` says. This is an acquire at system scope for all later work on the
 *  stream. If the signal never comes, iris_stream_synchronize() returns the
 *  error. A wait in hardware, without a kernel (see above), ignores
 *  IRIS_DEVICE_TIMEOUT_MS and obeys IRIS_TIMEOUT_MS. Iris ends such a wait by
 *  writing a value to the signal that ends it. The stream then runs the work
 *  behind the wait, so do not trust that work's results. Set the signal again
 *  after iris_clear_error(). */
IRIS_API iris_status_t iris_wait_on_stream(iris_t *iris, uint64_t *signal,
                                           iris_cmp_t cmp, uint64_t value,
                                           iris_stream_t *stream);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_STREAM_H */
