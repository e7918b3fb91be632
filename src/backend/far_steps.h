/* SPDX-License-Identifier: MIT
 *
 * How kernels on CPU threads reach ranks of other nodes: by this rank's proxy.
 */
#ifndef IRIS_SRC_BACKEND_FAR_STEPS_H
#define IRIS_SRC_BACKEND_FAR_STEPS_H

#include <iris/device/op.h>

#include <stddef.h>

struct iris_dev_ring;
struct iris_steps;

/* Threads that run kernels call the functions, which never wait. */
struct iris_far {
    struct iris_dev_ring *ring; /* for their requests; NULL: there are no such
                                 * ranks, and no proxy */
    struct iris_steps *steps;

    /* A request of `bytes` bytes was posted in the ring. */
    void (*posted)(struct iris_steps *steps, enum iris_op op, size_t bytes);

    /* Sends posted requests and takes messages of other nodes on the calling
     * thread. Returns their number; 0, too, if another thread does so now, or
     * if only the proxy's own thread may. */
    int (*carry)(struct iris_steps *steps);

    /* The calling thread will not carry() soon. */
    void (*leave)(struct iris_steps *steps);
};

#endif /* IRIS_SRC_BACKEND_FAR_STEPS_H */
