/* SPDX-License-Identifier: MIT
 *
 * What the program wants to be asked while a thread of its waits in the
 * library.
 */
#ifndef IRIS_SRC_BASE_WAIT_CHECK_H
#define IRIS_SRC_BASE_WAIT_CHECK_H

/* Called by every wait of the host now and then, with no lock held: 1 if the
 * wait is to end, since this thread's check says so. */
int iris_i_wait_is_ended(void);

/* Until the second call nothing ends this thread's waits: what others do with
 * its memory has no other end. */
void iris_i_wait_pause(void);
void iris_i_wait_resume(void);

#endif /* IRIS_SRC_BASE_WAIT_CHECK_H */
