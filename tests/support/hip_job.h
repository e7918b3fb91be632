/* SPDX-License-Identifier: MIT
 *
 * What the tests of the GPU backend over the fake HIP runtime share: a job of
 * one rank that uses every call of that runtime, and what may not be left of
 * it.
 */
#ifndef IRIS_TESTS_HIP_JOB_H
#define IRIS_TESTS_HIP_JOB_H

#include "support/harness.h"

#include "fakehip/fakehip.h"
#include "support/leaks.h"

/* Group setup: backend hip, 8 fake GPUs, no failures, short deadlines. */
int hip_setup(void **state);

/* What this process holds, of the runtime and otherwise. */
struct hip_held {
    struct fakehip_counts counts;
    struct leaks leaks;
};

void hip_note(struct hip_held *held_p);

/* 1, and a line on stderr, if it holds more than it did. */
int hip_found(const struct hip_held *before);

/* Goes through everything a rank does on its GPU, up to the first error, which
 * it returns. It can be called again. */
iris_status_t hip_work(iris_t *iris);

/* A word that is 3, and a stream. 0, or a line on stderr. */
int hip_make_word(iris_t *iris, uint64_t **word_p, iris_stream_t **stream_p);

/* Launches a kernel that waits for the word to be the value. */
iris_status_t hip_wait_for(iris_t *iris, uint64_t *word, uint64_t value,
                           iris_stream_t *stream);

/* iris_init(), hip_work() and iris_finalize(): the first error, whose message
 * is then this thread's. */
iris_status_t hip_job(void);

#endif /* IRIS_TESTS_HIP_JOB_H */
