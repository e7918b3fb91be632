/* SPDX-License-Identifier: MIT
 *
 * The control segment: a small piece of shared memory with the boards of a
 * node's ranks and the places where they post.
 */
#ifndef IRIS_SRC_CONTROL_SEGMENT_H
#define IRIS_SRC_CONTROL_SEGMENT_H

#include "control/control.h"
#include "control/record.h"

#define IRIS_SEGMENT_MAGIC UINT64_C(0x6c72746373697269) /* "irisctrl" */
#define IRIS_SEGMENT_VERSION 2u

/* The first page: what a reader that has only a descriptor goes by. All other
 * places follow from num_ranks. */
struct iris_segment_header {
    uint64_t magic;
    uint32_t version; /* of the layout of all that follows */
    uint32_t num_ranks;
    uint64_t bytes;
    uint64_t record_bytes;
    int64_t start_ns;          /* monotonic */
    _Atomic uint64_t reported; /* who reports the incident, + 1; 0: nobody */
    _Atomic uint64_t num_reports;
    _Atomic int64_t last_ns; /* of the last report that was not an incident's */
};

/* Where one group's members post. */
struct iris_place {
    _Alignas(4096) atomic_uint users; /* ranks that hold the group */
    atomic_uint wakes;                /* futex: bumped when all have posted */
    atomic_uint sleepers;             /* ranks asleep on it */
    atomic_ullong num_posts;          /* so far; an agreement adds `count` */
    atomic_uint failed;               /* set once; 0: not */
    struct iris_post posts[];         /* [2 * rank + seq % 2] */
};

/* This process's hold on the segment; rank threads share one, so that they
 * share addresses too. */
struct iris_segment {
    atomic_int refs;
    int num_ranks;
    int fd;
    size_t bytes;
    void *base;
};

/* Makes the segment for a job of num_ranks, with one reference.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_segment_create(int num_ranks,
                                    struct iris_segment **segment_p);

/* Maps a segment another process made; takes over `fd` on success. */
iris_status_t iris_i_segment_attach(int fd, int num_ranks,
                                    struct iris_segment **segment_p);

void iris_i_segment_retain(struct iris_segment *segment, int refs);

/* Drops a reference; the last one unmaps. NULL is fine. */
void iris_i_segment_release(struct iris_segment *segment);

struct iris_board *iris_i_segment_board(struct iris_segment *segment, int rank);
struct iris_place *iris_i_segment_place(struct iris_segment *segment,
                                        int place);

/* Commits memory to a place; the first has it from the start.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_segment_commit_place(struct iris_segment *segment,
                                          int place);

/* The record of a rank, for its owner alone. NULL: there is no memory for it,
 * and the rank goes on without; this thread's message says why. */
struct iris_record *iris_i_segment_open_record(struct iris_segment *segment,
                                               int rank);
struct iris_segment_header *iris_i_segment_header(struct iris_segment *segment);

/* Where these are, from the start of the segment, and how long it is. */
size_t iris_i_segment_board_at(int rank);
size_t iris_i_segment_record_at(int num_ranks, int rank);
size_t iris_i_segment_bytes(int num_ranks);

#endif /* IRIS_SRC_CONTROL_SEGMENT_H */
