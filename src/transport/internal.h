/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/transport: proxies, by which kernels reach ranks
 * of other nodes.
 */
#ifndef IRIS_SRC_TRANSPORT_INTERNAL_H
#define IRIS_SRC_TRANSPORT_INTERNAL_H

#include <iris/device/core/ring.h>
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

/* ---- channel_packets.c ---- */

/* A packet holds one message of the largest size, or many small ones. */
#define IRIS_PACKET_BYTES (sizeof(struct iris_far_message) + IRIS_RING_BYTES)

struct iris_packet {
    struct iris_packet *next;
    void *request; /* the engine's */
    size_t bytes;
    unsigned char data[IRIS_PACKET_BYTES];
};

struct iris_engine;

/* An engine carries packets between any two ranks, in each sender's order. enter()
 * and leave() are around stretches of the others but wait() and close(). */
struct iris_engine_ops {
    const char *name; /* for messages */

    /* 1: it may be called. */
    int (*enter)(struct iris_engine *engine);
    void (*leave)(struct iris_engine *engine);

    /* Begins to send. 0: it has failed. */
    int (*send)(struct iris_engine *engine, int rank,
                struct iris_packet *packet);

    /* 1: a packet of send() may be used again; 0: not yet; -1: it is lost, and may
     * be used. */
    int (*is_sent)(struct iris_engine *engine, struct iris_packet *packet);

    /* Receives a packet of any rank; packets arrive in the order of these calls.
     * 0: it has failed. */
    int (*receive)(struct iris_engine *engine, struct iris_packet *packet);

    /* 1: the packet has arrived, its size is set, and *rank_p is the sender's rank
     * (-1: no rank's); 0: not yet; -1: nothing will ever arrive. */
    int (*is_received)(struct iris_engine *engine, struct iris_packet *packet,
                       int *rank_p);

    /* Only with a window. Puts a copy of a block, which arrives by the next flush;
     * 0: it has to go by a message. Waits until all blocks have arrived at the
     * rank; 0: the engine has failed. */
    int (*put)(struct iris_engine *engine, int rank, uint64_t offset,
               const void *data, size_t bytes);
    int (*flush)(struct iris_engine *engine, int rank);

    /* Whether nothing more will come from the rank or go to it. */
    int (*is_broken)(const struct iris_engine *engine, int rank);

    /* The reason of a failure, for messages. */
    const char *(*explain)(const struct iris_engine *engine, int rank);

    /* Waits until a packet may have come, or for the bell, at most `timeout_ms`. */
    void (*wait)(struct iris_engine *engine, int bell, int timeout_ms);

    /* Withdraws the receives. `is_clean`: no packet is under way from this rank.
     * 0: the engine may still use the packets' memory. */
    int (*close)(struct iris_engine *engine, int is_clean,
                 struct iris_packet **receives, int count);
};

/* The first member of every engine. */
struct iris_engine {
    const struct iris_engine_ops *ops;
    int has_window;
    int was_busy; /* since the last wait() */
};

/* Takes over the engine. IRIS_ERR_NO_MEMORY, IRIS_ERR_SYSTEM */
iris_status_t iris_i_channel_packets_open(const struct iris_log *log,
                                          struct iris_engine *engine,
                                          struct iris_channel **channel_p);

/* ---- serve.c ---- */

/* This rank as the target of requests, and how to access its heap: an
 * interface, with one implementation for memory that the CPU may access and one
 * for that of other devices. */

struct iris_target {
    const struct iris_target_ops *ops;
    struct iris_heap *heap;

    /* For memory of another device. */
    struct iris_stream *stream;
    unsigned pending; /* accesses since a wait for the stream */
    int is_late;      /* the last wait did not end in time */
    const struct iris_kernel *update;
    struct iris_far_shared *shared;
    struct iris_pinned pinned; /* its memory */
};

/* Copies to a device's heap for whose end the proxy does not wait. */
#define IRIS_FAR_PENDING 64

/* Memory of the host that a device and its proxy share. */
struct iris_far_shared {
    struct iris_dev_requests requests;
    uint64_t old; /* the result of an update */
    unsigned char down[IRIS_RING_BYTES];
    unsigned char up[IRIS_FAR_PENDING][IRIS_RING_BYTES];
};

/* All slots are filled. One thread at a time calls them. `at` is on the heap.
 * Each call comes after all earlier ones, for a reader that acquires the word of a
 * write_word or fetch_word. A failure refuses the request. */
struct iris_target_ops {
    /* Copies data to the heap. An aligned element of at most 8 bytes arrives
     * undivided. The data may change once this returns. */
    iris_status_t (*copy_up)(struct iris_target *target, char *at,
                             const void *data, size_t bytes);

    /* Copies from the heap, or finds the data there. *data_p is valid until the
     * next call. */
    iris_status_t (*copy_down)(struct iris_target *target, const char *at,
                               size_t bytes, const void **data_p);

    /* Stores a word of 1, 2, 4 or 8 bytes, and releases. */
    iris_status_t (*write_word)(struct iris_target *target, char *at,
                                uint64_t value, size_t bytes);

    /* Updates or loads a word, and stores its old value in *old_p. */
    iris_status_t (*fetch_word)(struct iris_target *target, char *at,
                                const struct iris_far_message *request,
                                uint64_t *old_p);

    /* Waits until all earlier calls have had their effect. */
    iris_status_t (*settle)(struct iris_target *target);
};

extern const struct iris_target_ops iris_i_target_cpu;

/* Whether it is a word of an atomic's size. */
int iris_i_target_is_word(const char *at, size_t bytes);

/* Executes a request, with a put's data; never trusts it. Makes the answer and
 * its data, which stays valid until the next call. The caller sends the answer
 * if *answer_p says so (`answers`). Only one thread may be in such a call. */
void iris_i_serve(struct iris_target *target,
                  const struct iris_far_message *request, const void *data,
                  struct iris_far_message *answer_p, const void **data_p);

/* ---- serve_device.c ---- */

/* Opens a target whose memory is that of the heap's device: a stream of its own,
 * and what it shares. The caller has set `heap` and `update`. IRIS_ERR_NO_MEMORY,
 * IRIS_ERR_LIMIT, IRIS_ERR_DEVICE */
iris_status_t iris_i_target_device_open(struct iris_target *target);

/* Also if it was opened only in part. */
void iris_i_target_device_close(struct iris_target *target);

/* ---- steps.c ---- */

struct iris_steps {
    struct iris_channel *channel;
    int polls;                  /* 1: lanes cannot wake the thread */
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

/* Starts the thread. The caller has filled in the first five members.
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
