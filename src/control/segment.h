/* SPDX-License-Identifier: MIT
 *
 * The control segment: a small piece of shared memory with the boards of a
 * node's ranks and the places where they post.
 */
#ifndef IRIS_SRC_CONTROL_SEGMENT_H
#define IRIS_SRC_CONTROL_SEGMENT_H

#include "control/control.h"

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

#endif /* IRIS_SRC_CONTROL_SEGMENT_H */
