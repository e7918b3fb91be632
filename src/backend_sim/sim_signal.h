/* SPDX-License-Identifier: MIT
 *
 * Reports a kernel that accesses unmapped memory.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_SIGNAL_H
#define IRIS_SRC_BACKEND_SIM_SIM_SIGNAL_H

#include <signal.h>
#include <stddef.h>

/* Called around the life of each stream. While there is a stream, a fault in a
 * kernel writes a line to stderr. */
void iris_i_sim_signals_acquire(void);
void iris_i_sim_signals_release(void);

/* Removes the signals of faults from a set of signals to block: if they are
 * blocked, a fault ends the process without the program's handler. */
void iris_i_sim_signals_unblock(sigset_t *set);

/* Size of a stack for handlers, which the calling thread has until it ends: a
 * kernel may have used up its own stack. */
#define SIM_SIGNAL_STACK_BYTES 65536
void iris_i_sim_signals_stack(void *stack, size_t bytes);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_SIGNAL_H */
