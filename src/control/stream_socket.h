/* SPDX-License-Identifier: MIT
 *
 * Stream sockets between the ranks of a job: local ones or TCP.
 */
#ifndef IRIS_SRC_CONTROL_STREAM_SOCKET_H
#define IRIS_SRC_CONTROL_STREAM_SOCKET_H

#include "base/address.h"

/* How ranks connect; with shm they do not. */
enum iris_control_kind {
    IRIS_CONTROL_SHM,
    IRIS_CONTROL_UNIX,
    IRIS_CONTROL_TCP
};

/* A socket, or -1 with errno. A TCP connection, also one that such a socket
 * accepts, ends within IRIS_CUT_MS once the other host is out of reach. */
int iris_i_stream_socket(enum iris_control_kind kind);

/* Listens at *address_p. If that is of 0 bytes, it listens at a local socket or
 * on the loopback. The system chooses the port if that is 0; *address_p then has
 * it. IRIS_ERR_SYSTEM */
iris_status_t iris_i_stream_listen(int sock, enum iris_control_kind kind,
                                   struct iris_address *address_p);

/* 0, or the errno that says why not. */
int iris_i_stream_connect(int sock, const struct iris_address *address);

#endif /* IRIS_SRC_CONTROL_STREAM_SOCKET_H */
