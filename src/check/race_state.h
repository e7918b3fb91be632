/* SPDX-License-Identifier: MIT
 *
 * What a rank keeps of its own while races are looked for.
 */
#ifndef IRIS_SRC_CHECK_RACE_STATE_H
#define IRIS_SRC_CHECK_RACE_STATE_H

#include "check/race_memory.h"
#include "check/race_shadow.h"
#include "check/race_site.h"
#include "check/race_suppress.h"
#include "heap/heap_parts.h"

/* Workgroups of a launch that are told apart; those so far apart count as one.
 */
#define IRIS_RACE_WGS 256

/* A collective call by its group's number and its own; number 0: none. */
struct iris_race_call {
    uint32_t group;
    uint64_t number;
};

/* A collective on a stream: where others hear of this rank's work, and where it
 * hears of theirs. */
struct iris_race_exchange {
    bool is_one;
    struct iris_race_call tells;
    struct iris_race_call hears;
};

/* The buffers of a collective that is enqueued. */
struct iris_race_buffers {
    const void *in;
    size_t in_bytes; /* 0: it reads none, or none that is known */
    const void *out;
    size_t out_bytes;
    uint32_t site; /* of the call */
};

/* Work that is enqueued. */
struct iris_race_work {
    uint64_t id; /* of the host's event */
    enum iris_host_op op;
    uint32_t site; /* of the call; 0: its kernel is the program's */
    struct iris_race_clock clock;       /* the host's then */
    struct iris_race_exchange exchange; /* that it is part of */
    struct iris_race_buffers buffers;   /* of its first kernel */
};

struct iris_race_stream {
    const void *stream;
    uint32_t number;              /* from 1 */
    struct iris_race_clock clock; /* of what has run */
    uint64_t run;                 /* of the kernel that runs; 0: none */
    bool shares_lanes;            /* it has more workgroups than lanes */
    uint32_t site;                /* of the call that enqueued what runs */
    struct iris_race_exchange exchange;
    struct iris_race_buffers buffers; /* of that kernel */
    uint32_t lanes[IRIS_RACE_WGS];    /* + 1 */
    struct iris_race_work *work;      /* first in, first out */
    size_t num_work;
    size_t capacity;
};

struct iris_race {
    uint64_t serial; /* of the checkers of this process, from 1 */
    const struct iris_heap *heap;
    const void *default_stream;
    uint64_t (*group_key)(const void *group);
    const char *prefix;            /* of the file of races; empty: none */
    const char *suppressions_path; /* empty: none */
    struct iris_race_suppressions suppressions;
    struct iris_observer observer;
    struct iris_race_memory memory;
    struct iris_race_sites sites;
    uint32_t host; /* its lane */
    struct iris_race_stream **streams;
    uint32_t num_streams;
    uint64_t calls[IRIS_RACE_GROUPS]; /* so many were made */
    unsigned depth;                   /* of collective calls under way */
    struct iris_race_call call;       /* the outermost */
    bool allocates; /* one allocates: fills that nobody enqueued are its own */
    struct iris_race_exchange enqueuing;
    struct iris_race_buffers buffers; /* that its first kernel is to use */
    uint32_t outer;    /* site of the call under way that may launch kernels */
    size_t free_bytes; /* of the allocation that is being freed */
    atomic_uint num_seen; /* races that were looked at for printing */
};

#endif /* IRIS_SRC_CHECK_RACE_STATE_H */
