/* SPDX-License-Identifier: MIT
 *
 * The state of one rank while it looks for races.
 */
#ifndef IRIS_SRC_CHECK_RACE_STATE_H
#define IRIS_SRC_CHECK_RACE_STATE_H

#include "check/race_memory.h"
#include "check/race_shadow.h"
#include "check/race_site.h"
#include "check/race_suppress.h"
#include "heap/heap_parts.h"

/* Workgroups of a launch that are distinguished. Those whose ids differ by a
 * multiple of this count as one. */
#define IRIS_RACE_WGS 256

/* A collective call, by its group's number and its own number; number 0: no
 * call. */
struct iris_race_call {
    uint32_t group;
    uint64_t number;
};

/* A collective on a stream: the meeting by which others learn of this rank's
 * work, and the one by which this rank learns of theirs. */
struct iris_race_exchange {
    bool is_one;
    struct iris_race_call tells;
    struct iris_race_call hears;
};

/* The buffers of an enqueued collective. */
struct iris_race_buffers {
    const void *in;
    size_t in_bytes; /* 0: it reads no buffer, or an unknown one */
    const void *out;
    size_t out_bytes;
    uint32_t site; /* of the call */
};

/* Enqueued work. */
struct iris_race_work {
    uint64_t id; /* id of the host's event */
    enum iris_host_op op;
    uint32_t site; /* site of the call; 0: its kernel is the program's */
    struct iris_race_clock clock;       /* the host's clock at the call */
    struct iris_race_exchange exchange; /* the collective that it is part of */
    struct iris_race_buffers buffers;   /* buffers of its first kernel */
};

struct iris_race_stream {
    const void *stream;
    uint32_t number;              /* from 1 */
    struct iris_race_clock clock; /* clock of the finished work */
    uint64_t run;                 /* id of the running kernel; 0: none */
    bool shares_lanes;            /* it has more workgroups than lanes */
    uint32_t site;                /* site of the call that enqueued the
                                   * running work */
    struct iris_race_exchange exchange;
    struct iris_race_buffers buffers; /* buffers of the running kernel */
    uint32_t lanes[IRIS_RACE_WGS];    /* + 1 */
    struct iris_race_work *work;      /* first in, first out */
    size_t num_work;
    size_t capacity;
};

struct iris_race {
    uint64_t serial; /* number among the checkers of this process, from 1 */
    const struct iris_heap *heap;
    const void *default_stream;
    uint64_t (*group_key)(const void *group);
    const char *prefix;            /* prefix of the files of races; empty: no
                                    * files */
    const char *suppressions_path; /* empty: none */
    struct iris_race_suppressions suppressions;
    struct iris_observer observer;
    struct iris_race_memory memory;
    struct iris_race_sites sites;
    uint32_t host; /* its lane */
    struct iris_race_stream **streams;
    uint32_t num_streams;
    uint64_t calls[IRIS_RACE_GROUPS]; /* number of calls made */
    unsigned depth;                   /* number of nested collective calls in
                                       * progress */
    struct iris_race_call call;       /* the outermost one */
    bool
        allocates; /* a nested call allocates: fills that nobody enqueued belong
                     * to it */
    struct iris_race_exchange enqueuing;
    struct iris_race_buffers buffers; /* buffers for its first kernel */
    uint32_t outer;       /* site of the current call that may launch kernels */
    size_t free_bytes;    /* size of the allocation that is being freed */
    atomic_uint num_seen; /* races already considered for printing */
};

#endif /* IRIS_SRC_CHECK_RACE_STATE_H */
