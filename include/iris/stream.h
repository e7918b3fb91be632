/* SPDX-License-Identifier: MIT
 *
 * Streams: in-order queues of kernels, copies and fills of one rank.
 */
#ifndef IRIS_STREAM_H
#define IRIS_STREAM_H

#include <iris/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An in-order queue. Opaque. Where a call takes a stream, NULL means the
 *  context's own default stream. Any thread may enqueue. */
typedef struct iris_stream iris_stream_t;

/** Makes a stream, the caller's until iris_stream_destroy(). Local.
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_stream_create(iris_t *iris,
                                          iris_stream_t **stream_p);

/** Finishes the stream's work and frees it; blocks as
 *  iris_stream_synchronize() does. An error of that work is logged. Local. NULL
 *  is fine. */
IRIS_API void iris_stream_destroy(iris_t *iris, iris_stream_t *stream);

/** Blocks until everything enqueued so far is done, and returns the first
 *  error of that work, once.
 *
 *  IRIS_ERR_PEER_LOST    a kernel waited for a rank that died; the kernel was
 *                        ended
 *  IRIS_ERR_TIMEOUT      the deadline passed; waiting kernels were ended, and
 *                        the message says what they waited for */
IRIS_API iris_status_t iris_stream_synchronize(iris_t *iris,
                                               iris_stream_t *stream);

/** Copies `bytes` from src to dst on the stream; each is host memory, device
 *  memory or a mapped heap. They must not overlap. Asynchronous: both stay
 *  valid until the stream has got there. 0 bytes touch nothing. Local.
 *  IRIS_ERR_INVALID (NULL, or no stream of this context), IRIS_ERR_NO_MEMORY,
 *  IRIS_ERR_STATE */
IRIS_API iris_status_t iris_memcpy(iris_t *iris, void *dst, const void *src,
                                   size_t bytes, iris_stream_t *stream);

/** Fills `bytes` bytes at dst with the byte `value` on the stream.
 *  Asynchronous. 0 bytes touch nothing. Local. Statuses as iris_memcpy(). */
IRIS_API iris_status_t iris_memset(iris_t *iris, void *dst, int value,
                                   size_t bytes, iris_stream_t *stream);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_STREAM_H */
