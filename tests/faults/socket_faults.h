/* SPDX-License-Identifier: MIT
 *
 * Faults at a process's calls on sockets: connect, accept, send, receive, read,
 * write, poll and epoll_wait. A program that links socket_faults.c calls
 * through it; it can also be preloaded (LD_PRELOAD). The environment says what
 * happens:
 *
 *   IRIS_TEST_FAULT_RANK=R     only in the process of this IRIS_RANK
 *   IRIS_TEST_FAULT_AT=N       before its Nth call, the process sends itself
 *   IRIS_TEST_FAULT_SIGNAL=S   this signal (9: it dies, 19: it stops)
 *   IRIS_TEST_FAULT_LINK=SPACE:LINK  instead of that, this link of a network
 *                              namespace goes down (needs root)
 *   IRIS_TEST_FAULT_NOTE=FILE  and writes the time of that to the file, in ns of
 *                              the monotonic clock
 *   IRIS_TEST_FAULT_EVERY=K    one in K calls is cut short, interrupted (EINTR)
 *   IRIS_TEST_FAULT_SEED=S     or delayed by up to 3 ms, drawn from the seed
 */
#ifndef IRIS_TESTS_SOCKET_FAULTS_H
#define IRIS_TESTS_SOCKET_FAULTS_H

/* Reads the environment again and counts from 0. For a process that was
 * forked. */
void socket_faults_begin(void);

/* The number of calls since then. */
long socket_faults_calls(void);

/* Takes the link SPACE:LINK up or down. 0: it cannot. */
int socket_faults_set_link(const char *link, int is_up);

/* No more faults. */
void socket_faults_end(void);

#endif /* IRIS_TESTS_SOCKET_FAULTS_H */
