/* SPDX-License-Identifier: MIT
 *
 * The steps of a proxy, which its thread and waiting lanes take, one at a time.
 * A step sends posted requests and takes messages.
 */
#ifndef IRIS_SRC_TRANSPORT_STEPS_H
#define IRIS_SRC_TRANSPORT_STEPS_H

#include <iris/device/op.h>

#include "base/error.h"
#include "transport/channel.h"

#include <pthread.h>
#include <stdatomic.h>

struct iris_steps {
    struct iris_channel *channel;
    int (*step)(void *arg);     /* a step; returns the number of requests and
                                 * messages */
    int (*has_work)(void *arg); /* whether a step would send something */
    void *arg;
    atomic_int stepping;    /* 1: a thread is in a step */
    atomic_uint lane_steps; /* that lanes began */
    atomic_int naps;        /* 1: the thread naps, since lanes take steps */
    atomic_int listens;     /* 1: the thread sleeps until a message comes */
    atomic_int quit;
    pthread_t thread;
};

/* Starts the thread. The caller has filled in the first four members.
 * IRIS_ERR_LIMIT */
iris_status_t iris_i_steps_start(struct iris_steps *steps);

/* Ends the thread. 0: it does not end. */
int iris_i_steps_stop(struct iris_steps *steps);

/* The functions of struct iris_far. */
int iris_i_steps_carry(struct iris_steps *steps);
void iris_i_steps_posted(struct iris_steps *steps, enum iris_op op,
                         size_t bytes);
void iris_i_steps_leave(struct iris_steps *steps);

#endif /* IRIS_SRC_TRANSPORT_STEPS_H */
