/* SPDX-License-Identifier: MIT
 *
 * Streams as the core sees them.
 */
#ifndef IRIS_SRC_QUEUE_STREAM_H
#define IRIS_SRC_QUEUE_STREAM_H

#include <iris/stream.h>

/* The stream a call means: NULL is the default one. IRIS_ERR_INVALID: a stream
 * of another context, or destroyed. */
iris_status_t iris_i_stream_resolve(iris_t *iris, iris_stream_t *stream,
                                    struct iris_stream **stream_p);

/* Waits for the stream's work; peers can see that this rank does. */
iris_status_t iris_i_stream_synchronize(iris_t *iris,
                                        struct iris_stream *stream);

/* Synchronises every stream of the context; the first error. */
iris_status_t iris_i_stream_synchronize_all(iris_t *iris);

#endif /* IRIS_SRC_QUEUE_STREAM_H */
