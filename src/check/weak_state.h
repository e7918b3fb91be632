/* SPDX-License-Identifier: MIT
 *
 * The state of a rank in the weak mode.
 */
#ifndef IRIS_SRC_CHECK_WEAK_STATE_H
#define IRIS_SRC_CHECK_WEAK_STATE_H

#include "check/weak.h"
#include "check/weak_model.h"
#include "check/weak_schedule.h"

#define IRIS_WEAK_GROUPS 64

/* The state that all ranks share. */
struct iris_weak_machine {
    struct iris_weak_schedule *schedule;
    struct iris_weak_model *model;
    int users; /* under the schedule's lock */
};

struct iris_weak {
    struct iris_weak_params params;
    struct iris_observer observer;
    struct iris_weak_machine *machine;
    int depth; /* number of nested collective calls in progress */
    uint64_t meets;
    struct {
        uint64_t key;
        uint64_t calls;
    } groups[IRIS_WEAK_GROUPS];
    uint64_t group, number; /* those of the call in progress */
};

#endif /* IRIS_SRC_CHECK_WEAK_STATE_H */
