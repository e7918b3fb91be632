/* SPDX-License-Identifier: MIT
 *
 * The memory model as a machine: which writes a read may see
 * (docs/memory-model.md), by the latest writes to each word and by what each
 * lane knows of the others. It knows nothing of kernels and threads.
 */
#ifndef IRIS_SRC_CHECK_WEAK_MODEL_H
#define IRIS_SRC_CHECK_WEAK_MODEL_H

#include "check/weak_word.h"

struct iris_weak_model;

/* A place on a rank's heap. */
struct iris_weak_range {
    int rank;
    size_t offset;
    size_t bytes;
};

/* How an access or fence is ordered. */
struct iris_weak_how {
    bool atomic;
    bool update; /* a read that a write of the same atomic follows */
    iris_sem_t sem;
    iris_scope_t scope;
};

/* Chooses one of `count` results, 0 to count - 1, where 0 is the newest. */
struct iris_weak_chooser {
    unsigned (*choose)(void *arg, unsigned count);
    void *arg;
};

/* A write is seen by everybody at the latest `age` steps after it; 0: that may
 * be never. NULL: no memory. */
struct iris_weak_model *
iris_i_weak_model_create(struct iris_weak_chooser chooser, uint64_t age);
void iris_i_weak_model_destroy(struct iris_weak_model *model);

/* The lane begins and ends: it knows what its rank's host knows, and leaves
 * that what it knows itself. `lane` < IRIS_WEAK_LANES. */
void iris_i_weak_begin(struct iris_weak_model *model, unsigned lane, int rank,
                       unsigned workgroup);
void iris_i_weak_end(struct iris_weak_model *model, unsigned lane);

/* A rank's host enters the group's call with this number, which orders all
 * members' hosts, and returns from it. */
void iris_i_weak_come(struct iris_weak_model *model, int rank, uint64_t group,
                      uint64_t number);
void iris_i_weak_leave(struct iris_weak_model *model, int rank, uint64_t group,
                       uint64_t number);

/* Everybody sees all that has been written so far. */
void iris_i_weak_flush(struct iris_weak_model *model);

/* Before any access of the lane: what memory holds there now. What somebody
 * wrote past the model is seen by everybody. */
void iris_i_weak_look(struct iris_weak_model *model, unsigned lane,
                      const struct iris_weak_range *range, const void *memory);

/* A read: puts what is seen in *seen, of range->bytes. Each aligned word of 8
 * bytes is seen as a whole. Returns how many writes too old the oldest word is.
 */
unsigned iris_i_weak_read(struct iris_weak_model *model, unsigned lane,
                          const struct iris_weak_range *range,
                          const struct iris_weak_how *how, void *seen);

/* The latest read of that word takes what its writer released. */
void iris_i_weak_acquire(struct iris_weak_model *model, unsigned lane,
                         const struct iris_weak_range *range,
                         const struct iris_weak_how *how);

/* A write, after it. */
void iris_i_weak_write(struct iris_weak_model *model, unsigned lane,
                       const struct iris_weak_range *range,
                       const struct iris_weak_how *how, const void *written);

void iris_i_weak_fence(struct iris_weak_model *model, unsigned lane,
                       const struct iris_weak_how *how);

#endif /* IRIS_SRC_CHECK_WEAK_MODEL_H */
