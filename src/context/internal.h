/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/context: `iris_t`: a rank in a job; groups; most
 * public calls.
 */
#ifndef IRIS_SRC_CONTEXT_INTERNAL_H
#define IRIS_SRC_CONTEXT_INTERNAL_H

#include <iris/context.h>

#include "context/context.h"

/* ---- open.c ---- */

/* Writes the file of heap bases: in simulation on every rank, elsewhere only if a
 * prefix was set. */
iris_status_t iris_i_write_bases(iris_t *iris);

/* ---- recorder.c ---- */

/* From now on, host calls and kernels' waits are recorded in the control
 * segment. The control plane is open. IRIS_ERR_LIMIT */
iris_status_t iris_i_recorder_open(iris_t *iris);

/* Call this before the control plane is closed. */
void iris_i_recorder_close(iris_t *iris);

/* A call of all ranks or of the device returned `status`. Writes the job's
 * report if that is a deadline or the loss of a peer. */
void iris_i_recorder_failed(iris_t *iris, iris_status_t status);

/* waiter.describe of a context: the words that its kernels wait for. */
void iris_i_recorder_describe_wait(void *arg, char *text, size_t bytes);

/* waiter.note of a context: the places where the host waits for streams. */
void iris_i_recorder_note_wait(struct iris_wait *wait,
                               enum iris_wait_phase phase);

/* Drops the record of ended work. */
void iris_i_recorder_clear(iris_t *iris);

/* core_ops.note_wait, .wait_over. */
void iris_i_note_wait(void *core, struct iris_wait_note *note);
void iris_i_wait_over(void *core, struct iris_wait_note *note);

#endif /* IRIS_SRC_CONTEXT_INTERNAL_H */
