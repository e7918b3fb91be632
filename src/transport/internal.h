/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/transport: proxies, by which kernels reach ranks
 * of other nodes.
 */
#ifndef IRIS_SRC_TRANSPORT_INTERNAL_H
#define IRIS_SRC_TRANSPORT_INTERNAL_H

#include <iris/device/watch/op.h>

#include "base/base.h"
#include "heap/heap.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* ---- bell.c ---- */

/* A bell: a descriptor by which other threads end a thread's sleep. */

/* -1 and errno: no descriptor. The caller closes it. */
int iris_i_bell_open(void);

/* Ends the current or next wait. */
void iris_i_bell_ring(int bell);

/* Forgets earlier rings. */
void iris_i_bell_silence(int bell);

/* Waits for a ring, at most `ns`, and forgets it. 1: it was rung. */
int iris_i_bell_wait(int bell, int64_t ns);

/* ---- serve.c ---- */

/* Executes a request, with a put's data; never trusts it. Makes the answer and
 * its data, which stays in place. The caller sends the answer if *answer_p says
 * so (`answers`). Only one thread may be in such a call. */
void iris_i_serve(struct iris_heap *heap,
                  const struct iris_far_message *request, const void *data,
                  struct iris_far_message *answer_p, const void **data_p);

/* ---- steps.c ---- */

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

/* Ends the thread, about until `by_ns` unless this is 0. 0: it does not end. */
int iris_i_steps_stop(struct iris_steps *steps, int64_t by_ns);

/* The functions of struct iris_far. */
int iris_i_steps_carry(struct iris_steps *steps);
void iris_i_steps_posted(struct iris_steps *steps, enum iris_op op,
                         size_t bytes);
void iris_i_steps_leave(struct iris_steps *steps);

#endif /* IRIS_SRC_TRANSPORT_INTERNAL_H */
