/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's streams, as captures see them.
 */
#ifndef IRIS_TESTS_FAKEHIP_FAKE_STREAM_H
#define IRIS_TESTS_FAKEHIP_FAKE_STREAM_H

#include "fake.h"

/* Guards every stream and graph. */
extern pthread_mutex_t fake_streams_lock;
extern pthread_cond_t fake_progress; /* of any stream */

struct ihipStream_t {
    struct ihipStream_t *next;
    int device;
    pthread_cond_t work; /* for its threads: there may be some */
    struct fake_op *head;
    uint64_t submitted;
    uint64_t completed;
    unsigned held; /* operations that take room */
    unsigned threads;
    bool quit;
    bool hidden;        /* a graph's own */
    bool shares_queue;  /* with another */
    hipGraph_t capture; /* NULL: none */
    unsigned lane;      /* of that; 0: it began there */
    bool broken;        /* something came that cannot be captured */
    hipStreamCaptureMode mode;
    pthread_t capturer;
};

#define FAKE_LANES 16

/* Each stream of a capture is a lane. */
struct ihipGraph {
    struct fake_op *head;
    struct fake_op *last;
    unsigned lanes;
    uint64_t lengths[FAKE_LANES]; /* operations so far */
    uint64_t awaited[FAKE_LANES]; /* of them, that another lane waits for */
};

/* All of these with the lock held. The stream behind a handle, the device's
 * default one for NULL. */
hipError_t fake_stream_find(hipStream_t handle, hipStream_t *stream_p);

/* fake_graph.c; the operation is then the graph's. */
void fake_graph_append(hipGraph_t graph, struct fake_op *op);
void fake_graph_free(hipGraph_t graph);
extern int fake_graphs_live;
extern unsigned fake_nodes_live; /* in those made ready */

/* Whether what the stream captures forbids the calling thread what does not
 * belong in a capture. */
bool fake_is_forbidden(const struct ihipStream_t *stream);

/* fake_stream.c. Of what cannot be part of a capture, and voids it; the lock is
 * held if the first returns hipSuccess. */
hipError_t fake_stream_lock_idle(hipStream_t handle, hipStream_t *stream_p);
struct fake_op *fake_op_copy(const struct fake_op *op, const void *args);

/* For another stream of the calling thread's GPU, or graph of so many nodes. */
void fake_make_room(unsigned nodes);

/* All streams leave the capture. */
void fake_streams_leave(hipGraph_t capture);

/* A graph's own stream on a GPU, and a stream's end; the lock is held. */
hipStream_t fake_stream_hide(int device);
hipError_t fake_stream_destroy(hipStream_t stream);

/* ---- fake_late.c ---- */

/* A stream's copy, and its callback. */
void fake_copy(void *dst, const void *src, size_t bytes);
void fake_call_back(hipStream_t stream, const struct fake_op *op);

/* Waits for another stream. */
void fake_follow(const struct fake_op *op);

/* What a query says of so many operations; the lock is held. */
hipError_t fake_stream_done(const struct ihipStream_t *stream, uint64_t target);

#endif /* IRIS_TESTS_FAKEHIP_FAKE_STREAM_H */
