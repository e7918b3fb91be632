/* SPDX-License-Identifier: MIT
 *
 * A bell: a descriptor by which other threads end a thread's sleep.
 */
#ifndef IRIS_SRC_TRANSPORT_BELL_H
#define IRIS_SRC_TRANSPORT_BELL_H

#include <stdint.h>

/* -1 and errno: no descriptor. The caller closes it. */
int iris_i_bell_open(void);

/* Ends the current or next wait. */
void iris_i_bell_ring(int bell);

/* Forgets earlier rings. */
void iris_i_bell_silence(int bell);

/* Waits for a ring, at most `ns`, and forgets it. 1: it was rung. */
int iris_i_bell_wait(int bell, int64_t ns);

#endif /* IRIS_SRC_TRANSPORT_BELL_H */
