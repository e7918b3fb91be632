/* SPDX-License-Identifier: MIT
 *
 * Sockets for the rendezvous, local or TCP: messages with at most one file
 * descriptor each, and deadlines. The functions distinguish a dead peer from a
 * silent one.
 */
#ifndef IRIS_SRC_BASE_SOCKET_H
#define IRIS_SRC_BASE_SOCKET_H

#include "base/base.h"

#include <iris/status.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Listens under a name in the abstract namespace (no file). Other users see the
 * name, so it is no secret. The caller closes *sock_p. IRIS_ERR_BOOTSTRAP: the
 * name is in use; the message names the owner. */
iris_status_t iris_i_socket_listen(const char *name, int backlog, int *sock_p);

/* Makes a socket for iris_i_socket_connect(); the caller closes it.
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_socket_make(int *sock_p);

/* One attempt to connect `sock` to the listener of that name. IRIS_ERR_STATE, with
 * no message: nobody listens. IRIS_ERR_BOOTSTRAP: the listener is another
 * user's. */
iris_status_t iris_i_socket_try_connect(int sock, const char *name);

/* Repeats iris_i_socket_try_connect() until there is a listener or the wait has
 * to end. */
iris_status_t iris_i_socket_connect(int sock, const char *name,
                                    struct iris_wait *wait);

/* Accepts a waiting connection of this user. *pid_p is the other side's
 * process.
 * - IRIS_ERR_BOOTSTRAP: another user's connection, which was refused; the
 *   caller may go on.
 * - IRIS_ERR_STATE: the connection is gone; the caller may go on.
 * - IRIS_ERR_LIMIT: no descriptors; the connection keeps waiting. */
iris_status_t iris_i_socket_accept(int listener, int *sock_p, pid_t *pid_p);

/* Space for a descriptor that travels with a message. */
union iris_socket_control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

/* Adds a descriptor to the message, unless fd is -1. The descriptor and
 * `control` must live until the message is sent. */
void iris_i_socket_attach(struct msghdr *message,
                          union iris_socket_control *control, int fd);

/* Sends one message, with a descriptor unless fd is -1.
 * IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT (the other side has not read for
 * IRIS_SOCKET_PATIENCE_MS), IRIS_ERR_SYSTEM */
iris_status_t iris_i_socket_send(int sock, const void *data, size_t bytes,
                                 int fd);

/* 1 if there is something to receive, or to accept; never waits. */
int iris_i_socket_is_readable(int sock);

/* A message that is being received, with a descriptor or -1. */
struct iris_socket_message {
    void *data;
    size_t bytes;
    size_t done; /* bytes that have come */
    int fd;      /* begins as -1; the caller closes it */
    int is_lost; /* the process had no room for the descriptor */
    int is_long; /* it has more bytes */
    int error;   /* the errno that ended the connection, or 0 */
};

/* Receives as much of one message of exactly `bytes` as is there, and never
 * waits. IRIS_ERR_STATE, without a message: call again later. The other results
 * are those of iris_i_socket_receive(). */
iris_status_t iris_i_socket_take(int sock, struct iris_socket_message *message);

/* 1 if the other side has closed the connection and everything was received.
 * errno tells how, as after iris_i_socket_receive(). */
int iris_i_socket_has_ended(int sock);

/* Whether it was the network that ended the connection. */
int iris_i_socket_is_cut(int error);

/* The end of a rank's connection, in words that follow the rank's name: "died",
 * or its host does not answer. */
const char *iris_i_socket_end(int error);

/* Receives one message of exactly `bytes`, and waits for it. *fd_p gets its
 * descriptor or -1; the caller closes it. Returns the wait's status,
 * IRIS_ERR_PEER_LOST (closed; errno is the system's error, or 0), IRIS_ERR_LIMIT (the process had no room for the
 * descriptor; the data was received), or IRIS_ERR_BOOTSTRAP (not one of our
 * messages). */
iris_status_t iris_i_socket_receive(int sock, void *data, size_t bytes,
                                    struct iris_wait *wait, int *fd_p);

/* The process on the other side of a local socket; 0: it is not known. */
pid_t iris_i_socket_peer(int sock);

#endif /* IRIS_SRC_BASE_SOCKET_H */
