/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/queue: kernels and their launches, in C and in
 * C++ for GPUs.
 */
#ifndef IRIS_SRC_QUEUE_KERNELS_H
#define IRIS_SRC_QUEUE_KERNELS_H

#include <iris/group.h>
#include <iris/launch.h>

#include <stdbool.h>

/* ---- queue.c ---- */

/* Enqueues kernels on streams. C and C++: files with kernels are compiled for
 * GPUs, too. */

struct iris_queue;

/* A launch as the program requests it. */
struct iris_launch_request {
    const struct iris_kernel *kernel;
    unsigned grid;
    unsigned block;
    const void *args;
    size_t args_bytes;
    bool own; /* one of the library's kernels */
};

/* The work of iris_launch(). */
iris_status_t iris_i_launch(struct iris_queue *queue,
                            const struct iris_launch_request *request,
                            iris_stream_t *stream);

/* The device context for kernels. */
const int64_t *iris_i_queue_context(const struct iris_queue *queue);

/* 1: kernels are a GPU's, and there are ranks of other nodes. */
int iris_i_queue_is_far(const struct iris_queue *queue);

/* ---- far_kernels.c ---- */

/* Kernels in two versions, without and with ranks of other nodes. */
struct iris_stream_kernels {
    const struct iris_kernel *barrier;
    const struct iris_kernel *signal;
    const struct iris_kernel *signal_add;
    const struct iris_kernel *transfer;
};
extern const struct iris_stream_kernels iris_i_far_kernels;

/* Their arguments are struct iris_quiet_args and struct iris_update_args. */
extern const struct iris_kernel *const iris_i_quiet_kernel;
extern const struct iris_kernel *const iris_i_update_kernel;

/* ---- queue_kernels.c ---- */

struct iris_queue;

/* The kernel that iris_i_kernel_wait() launches. */
const struct iris_kernel *iris_i_wait_kernel(void);

iris_status_t iris_i_kernel_barrier(struct iris_queue *queue,
                                    struct iris_dev_group *group,
                                    iris_stream_t *stream);

/* A put, get, signal or wait. */
struct iris_transfer {
    const char *call; /* name of the public function */
    const char *name; /* name of its symmetric argument */
    void *symmetric;  /* on this rank's heap */
    void *other;      /* the near side of a put or get */
    size_t bytes;
    int rank;       /* the rank that owns the far side */
    int gets;       /* a get */
    int adds;       /* a signal: 1 adds its value to the word */
    uint64_t value; /* for a signal or a wait */
    iris_cmp_t cmp; /* of a wait */
};
iris_status_t iris_i_kernel_signal(struct iris_queue *queue,
                                   const struct iris_transfer *what,
                                   iris_stream_t *stream);
/* Sets `symmetric` on `rank` to the word at `other`, as it is when the stream
 * gets there. */
iris_status_t iris_i_kernel_forward(struct iris_queue *queue,
                                    const struct iris_transfer *what,
                                    iris_stream_t *stream);
/* Puts or gets to or from a rank of another node: the bytes of `what`, again
 * for each row. Steps are in bytes, from row to row. */
struct iris_transfer_rows {
    unsigned count;
    int64_t symmetric_step;
    int64_t other_step;
};
iris_status_t iris_i_kernel_transfer(struct iris_queue *queue,
                                     const struct iris_transfer *what,
                                     const struct iris_transfer_rows *rows,
                                     iris_stream_t *stream);
iris_status_t iris_i_kernel_wait(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t *stream);

#endif /* IRIS_SRC_QUEUE_KERNELS_H */
