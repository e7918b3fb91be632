/* SPDX-License-Identifier: MIT
 *
 * The memory model as a machine: the writes that a read may see
 * (docs/memory-model.md), from the latest writes to each word and each lane's
 * clock. It does not know kernels and threads.
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

/* The order and scope of an access or fence. */
struct iris_weak_how {
    bool atomic;
    bool update; /* the read of an atomic that also writes */
    iris_sem_t sem;
    iris_scope_t scope;
};

/* Chooses one of `count` results, from 0 to count - 1; 0 is the newest. */
struct iris_weak_chooser {
    unsigned (*choose)(void *arg, unsigned count);
    void *arg;
};

/* All lanes see a write at the latest `age` steps after it; 0: possibly never.
 * NULL: no memory. */
struct iris_weak_model *
iris_i_weak_model_create(struct iris_weak_chooser chooser, uint64_t age);
void iris_i_weak_model_destroy(struct iris_weak_model *model);

/* The lane begins and ends. It begins with the clock of its rank's host, and
 * adds its own clock to the host's at its end. `lane` < IRIS_WEAK_LANES. */
void iris_i_weak_begin(struct iris_weak_model *model, unsigned lane, int rank,
                       unsigned workgroup);
void iris_i_weak_end(struct iris_weak_model *model, unsigned lane);

/* A rank's host enters the group's call with this number, which orders all
 * members' hosts, and returns from it. */
void iris_i_weak_come(struct iris_weak_model *model, int rank, uint64_t group,
                      uint64_t number);
void iris_i_weak_leave(struct iris_weak_model *model, int rank, uint64_t group,
                       uint64_t number);

/* All lanes see all earlier writes. */
void iris_i_weak_flush(struct iris_weak_model *model);

/* Before any access of the lane: the current contents of memory. If memory was
 * written without the model, all lanes see that write. */
void iris_i_weak_look(struct iris_weak_model *model, unsigned lane,
                      const struct iris_weak_range *range, const void *memory);

/* A read: *seen gets the value that the lane sees, range->bytes long. Each
 * aligned word of 8 bytes is seen as a whole. Returns the number of writes that
 * are newer than the oldest word seen. */
unsigned iris_i_weak_read(struct iris_weak_model *model, unsigned lane,
                          const struct iris_weak_range *range,
                          const struct iris_weak_how *how, void *seen);

/* The latest read of that word acquires the release of its writer. */
void iris_i_weak_acquire(struct iris_weak_model *model, unsigned lane,
                         const struct iris_weak_range *range,
                         const struct iris_weak_how *how);

/* Call this after a write. */
void iris_i_weak_write(struct iris_weak_model *model, unsigned lane,
                       const struct iris_weak_range *range,
                       const struct iris_weak_how *how, const void *written);

void iris_i_weak_fence(struct iris_weak_model *model, unsigned lane,
                       const struct iris_weak_how *how);

#endif /* IRIS_SRC_CHECK_WEAK_MODEL_H */
