/* SPDX-License-Identifier: MIT
 *
 * Local sockets for the meeting: messages with at most one file descriptor
 * each, deadlines, and the other side's death told apart from its silence.
 */
#ifndef IRIS_SRC_SOCKET_H
#define IRIS_SRC_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <iris/status.h>

/* Listens under the job's key, in the abstract namespace (no file). The caller
 * closes *sock_p. IRIS_ERR_BOOTSTRAP: the key is in use, and by whom. */
iris_status_t iris_i_socket_listen(const char *key, int backlog, int *sock_p);

/* Connects to the listener of `key`, trying until the deadline.
 * IRIS_ERR_TIMEOUT, IRIS_ERR_BOOTSTRAP (the listener is another user's) */
iris_status_t iris_i_socket_connect(const char *key, int64_t deadline,
                                    int *sock_p);

/* Takes a waiting connection of this user. IRIS_ERR_BOOTSTRAP: a stranger's,
 * turned away; the caller may go on. *pid_p is the other side's process. */
iris_status_t iris_i_socket_accept(int listener, int *sock_p, pid_t *pid_p);

/* Sends one message, with a descriptor unless fd is -1.
 * IRIS_ERR_PEER_LOST, IRIS_ERR_SYSTEM */
iris_status_t iris_i_socket_send(int sock, const void *data, size_t bytes,
                                 int fd);

/* Receives one message of exactly `bytes`. *fd_p gets its descriptor or -1; it
 * is the caller's to close. IRIS_ERR_TIMEOUT, IRIS_ERR_PEER_LOST (closed),
 * IRIS_ERR_LIMIT (the descriptor did not fit), IRIS_ERR_BOOTSTRAP (not one of
 * our messages) */
iris_status_t iris_i_socket_receive(int sock, void *data, size_t bytes,
                                    int64_t deadline, int *fd_p);

#endif /* IRIS_SRC_SOCKET_H */
