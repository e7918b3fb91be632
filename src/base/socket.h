/* SPDX-License-Identifier: MIT
 *
 * Sockets for the meeting, local ones or TCP: messages with at most one file descriptor
 * each, deadlines, and the other side's death told apart from its silence.
 */
#ifndef IRIS_SRC_BASE_SOCKET_H
#define IRIS_SRC_BASE_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <iris/status.h>

#include "base/host_wait.h"

/* Listens under the job's key, in the abstract namespace (no file). The caller
 * closes *sock_p. IRIS_ERR_BOOTSTRAP: the key is in use, and by whom. */
iris_status_t iris_i_socket_listen(const char *key, int backlog, int *sock_p);

/* Makes a socket for iris_i_socket_connect(); the caller closes it.
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_socket_make(int *sock_p);

/* One attempt to connect `sock` to the listener of `key`. IRIS_ERR_STATE, with
 * no message: nobody listens. IRIS_ERR_BOOTSTRAP: the listener is another
 * user's. */
iris_status_t iris_i_socket_try_connect(int sock, const char *key);

/* The same, until somebody listens or the wait is to end. */
iris_status_t iris_i_socket_connect(int sock, const char *key,
                                    struct iris_wait *wait);

/* Takes a waiting connection of this user. *pid_p is the other side's process.
 * IRIS_ERR_BOOTSTRAP: another user's, turned away; IRIS_ERR_STATE: it has gone;
 * the caller may go on. IRIS_ERR_LIMIT: the connection goes on waiting. */
iris_status_t iris_i_socket_accept(int listener, int *sock_p, pid_t *pid_p);

/* Room for a descriptor that goes along with a message. */
union iris_socket_control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

/* Has the message take a descriptor along, unless fd is -1. What it refers to,
 * `control` too, lives until it is sent. */
void iris_i_socket_attach(struct msghdr *message,
                          union iris_socket_control *control, int fd);

/* Sends one message, with a descriptor unless fd is -1.
 * IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT (the other side has not read for
 * IRIS_SOCKET_PATIENCE_MS), IRIS_ERR_SYSTEM */
iris_status_t iris_i_socket_send(int sock, const void *data, size_t bytes,
                                 int fd);

/* 1 if there is something to receive, or to accept; never waits. */
int iris_i_socket_is_readable(int sock);

/* Receives one message of exactly `bytes`, for which it waits. *fd_p gets its
 * descriptor or -1; it is the caller's to close. The wait's status;
 * IRIS_ERR_PEER_LOST (closed), IRIS_ERR_LIMIT (the descriptor did not fit; the
 * rest is there), IRIS_ERR_BOOTSTRAP (not one of our messages) */
iris_status_t iris_i_socket_receive(int sock, void *data, size_t bytes,
                                    struct iris_wait *wait, int *fd_p);

#endif /* IRIS_SRC_BASE_SOCKET_H */
