/* SPDX-License-Identifier: MIT
 *
 * A kernel that touches memory that is not there.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_SIGNAL_H
#define IRIS_SRC_BACKEND_SIM_SIM_SIGNAL_H

#include <signal.h>
#include <stddef.h>

/* Around the life of each stream: while there is one, a fault in a kernel
 * writes a line to stderr. */
void iris_i_sim_signals_acquire(void);
void iris_i_sim_signals_release(void);

/* Takes the signals of faults out of a set of those to block: a fault whose
 * signal is blocked ends the process without the program's handler. */
void iris_i_sim_signals_unblock(sigset_t *set);

/* Memory for handlers to run in, which the calling thread has until it ends: a
 * kernel may have used up its stack. */
#define SIM_SIGNAL_STACK_BYTES 65536
void iris_i_sim_signals_stack(void *stack, size_t bytes);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_SIGNAL_H */
