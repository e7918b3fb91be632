/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=weak: kernels see values as old as the memory model allows, of all
 * ranks of a job that are threads of one process (docs/checking.md).
 */
#ifndef IRIS_SRC_CHECK_WEAK_H
#define IRIS_SRC_CHECK_WEAK_H

#include "check/weak_choice.h"
#include "heap/heap_parts.h"

struct iris_weak;

struct iris_weak_params {
    const struct iris_heap *heap; /* connected; without allocations */
    const void *default_stream;
    /* A number that is equal for groups of the same ranks in the same order. */
    uint64_t (*group_key)(const void *group);
    int (*group_size)(const void *group);
    unsigned threads; /* workgroups of one kernel that run at once */
    struct iris_weak_choices_params choices;
};

/* Collective over the job. The caller keeps the objects in `params` until
 * iris_i_weak_destroy(). Returns IRIS_ERR_UNSUPPORTED if ranks are processes,
 * and the statuses of iris_i_weak_choices_open(). */
iris_status_t iris_i_weak_create(const struct iris_weak_params *params,
                                 struct iris_weak **weak_p);

/* The rank makes no more calls except those that end it. `weak` may be NULL. */
void iris_i_weak_last_call(struct iris_weak *weak);

/* No kernel of the context is running. `weak` may be NULL. */
void iris_i_weak_destroy(struct iris_weak *weak);

#endif /* IRIS_SRC_CHECK_WEAK_H */
