/* SPDX-License-Identifier: MIT
 *
 * The schedule: only one workgroup of all ranks runs at a time. It is chosen
 * at each operation, from a seed or from a file. The same choices give the same
 * run.
 */
#ifndef IRIS_SRC_CHECK_WEAK_SCHEDULE_H
#define IRIS_SRC_CHECK_WEAK_SCHEDULE_H

#include "check/weak_choice.h"

struct iris_weak_schedule;
struct iris_weak_slot;

struct iris_weak_schedule_params {
    int num_ranks;
    unsigned threads; /* workgroups of one kernel that run at once */
    struct iris_weak_choices_params choices;
};

/* A run of a kernel. */
struct iris_weak_run {
    uint64_t id;
    unsigned grid;
    bool is_own; /* a kernel of the library */
};

/* IRIS_ERR_NO_MEMORY, and the statuses of iris_i_weak_choices_open(). */
iris_status_t
iris_i_weak_schedule_create(const struct iris_weak_schedule_params *params,
                            struct iris_weak_schedule **schedule_p);
void iris_i_weak_schedule_destroy(struct iris_weak_schedule *schedule);

/* Held around all calls below. */
void iris_i_weak_lock(struct iris_weak_schedule *schedule);
void iris_i_weak_unlock(struct iris_weak_schedule *schedule);

/* The choices, under the lock. */
struct iris_weak_choices *
iris_i_weak_choices(struct iris_weak_schedule *schedule);

/* Operations of a rank's host: no workgroup is chosen while it may still add
 * work. */
void iris_i_weak_enqueued(struct iris_weak_schedule *schedule, int rank,
                          const void *stream, int by);
void iris_i_weak_run_begins(struct iris_weak_schedule *schedule, int rank,
                            const void *stream,
                            const struct iris_weak_run *run);
void iris_i_weak_run_ends(struct iris_weak_schedule *schedule, int rank,
                          uint64_t run);
/* The host waits for the stream; NULL: it no longer waits. */
void iris_i_weak_host_waits(struct iris_weak_schedule *schedule, int rank,
                            const void *stream);
/* The host is in a call that all ranks make, the rank's `number`th; 0: it has
 * returned. */
void iris_i_weak_host_meets(struct iris_weak_schedule *schedule, int rank,
                            uint64_t number);
/* The host makes no more calls. */
void iris_i_weak_host_left(struct iris_weak_schedule *schedule, int rank);

/* A workgroup's thread enters, and returns when it is its turn; gives others a
 * turn; leaves. NULL: no memory, so it runs with the others. *is_own_p: the
 * kernel is the library's. */
struct iris_weak_slot *iris_i_weak_enter(struct iris_weak_schedule *schedule,
                                         int rank, uint64_t run,
                                         unsigned workgroup, bool *is_own_p);
void iris_i_weak_yield(struct iris_weak_schedule *schedule,
                       struct iris_weak_slot *slot, bool polls);
void iris_i_weak_exit(struct iris_weak_schedule *schedule,
                      struct iris_weak_slot *slot);

/* NULL: none. */
struct iris_weak_who iris_i_weak_who(const struct iris_weak_slot *slot);

/* Whether there is no workgroup. */
bool iris_i_weak_is_idle(const struct iris_weak_schedule *schedule);

#endif /* IRIS_SRC_CHECK_WEAK_SCHEDULE_H */
