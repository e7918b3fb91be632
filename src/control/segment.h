/* SPDX-License-Identifier: MIT
 *
 * The control segment: a small piece of shared memory with the records of a
 * node's ranks, followed by the places where they post.
 */
#ifndef IRIS_SRC_CONTROL_SEGMENT_H
#define IRIS_SRC_CONTROL_SEGMENT_H

#include "control/place.h"
#include "control/records.h"

/* This process's reference to the segment. Threads that are ranks share one, so
 * that they share addresses, too. */
struct iris_segment {
    atomic_int refs;
    int num_ranks;
    int fd; /* -1: private */
    size_t bytes;
    void *base;
    struct iris_records records; /* at its start */
};

/* Makes the segment for a job of num_ranks, with one reference.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_segment_create(int num_ranks,
                                    struct iris_segment **segment_p);

/* Memory of this rank alone, with the layout of a segment: its copy of the
 * others' published states and posts. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_segment_private(int num_ranks,
                                     struct iris_segment **segment_p);

/* Maps a segment of another process; takes over `fd` on success. */
iris_status_t iris_i_segment_attach(int fd, int num_ranks,
                                    struct iris_segment **segment_p);

void iris_i_segment_retain(struct iris_segment *segment, int refs);

/* Drops a reference; the last one unmaps. `segment` may be NULL. */
void iris_i_segment_release(struct iris_segment *segment);

struct iris_place *iris_i_segment_place(struct iris_segment *segment,
                                        int place);

/* Commits memory to a place; the first place has it from the start.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_segment_commit_place(struct iris_segment *segment,
                                          int place);

#endif /* IRIS_SRC_CONTROL_SEGMENT_H */
