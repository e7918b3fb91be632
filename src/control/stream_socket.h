/* SPDX-License-Identifier: MIT
 *
 * Stream sockets between the ranks of a job: local ones or TCP.
 */
#ifndef IRIS_SRC_CONTROL_STREAM_SOCKET_H
#define IRIS_SRC_CONTROL_STREAM_SOCKET_H

#include "base/address.h"

/* How ranks connect. With shm they do not. */
enum iris_control_kind {
    IRIS_CONTROL_SHM,
    IRIS_CONTROL_UNIX,
    IRIS_CONTROL_TCP
};

/* A socket for this address, or -1 with errno. An address of size 0 stands for
 * the loopback; local sockets ignore it. A TCP connection, including one that such a
 * socket accepts, ends within IRIS_CUT_MS once the other host is
 * unreachable. */
int iris_i_stream_socket(enum iris_control_kind kind,
                         const struct iris_address *address);

/* Listens at *address_p. If its size is 0, listens at a local socket or on the
 * loopback. If the port is 0, the system chooses one, and *address_p gets it.
 * IRIS_ERR_SYSTEM */
iris_status_t iris_i_stream_listen(int sock, enum iris_control_kind kind,
                                   struct iris_address *address_p);

/* Returns 0 or an errno, within IRIS_SOCKET_PATIENCE_MS. Signals do not interrupt
 * it. EAGAIN: a local listener's backlog is full. */
int iris_i_stream_connect(int sock, const struct iris_address *address);

/* A connection of the job, whose receiver may be stopped for any time. The
 * system does not end it while it answers; see iris_i_stream_answers(). */
void iris_i_stream_settle(int sock);

/* This side's knowledge of a connection's other host. Begins as {0}. */
struct iris_stream_check {
    int64_t next_ns;   /* time of the next look */
    int64_t silent_ns; /* time since which it leaves packets unanswered */
};

/* 0: the other host has not answered packets for IRIS_CUT_MS - 1 s. A host
 * whose process is stopped answers. Looks seldom, so it may be called often. */
int iris_i_stream_answers(struct iris_stream_check *check, int sock);

#endif /* IRIS_SRC_CONTROL_STREAM_SOCKET_H */
