/* SPDX-License-Identifier: MIT
 *
 * Stream sockets between the ranks of a job: local ones or TCP on the loopback.
 */
#ifndef IRIS_SRC_CONTROL_STREAM_SOCKET_H
#define IRIS_SRC_CONTROL_STREAM_SOCKET_H

#include "control/rendezvous.h"

/* How ranks connect; with shm they do not. */
enum iris_control_kind {
    IRIS_CONTROL_SHM,
    IRIS_CONTROL_UNIX,
    IRIS_CONTROL_TCP
};

/* A socket, or -1 with errno. */
int iris_i_stream_socket(enum iris_control_kind kind);

/* Listens at an address of the system's choice, which *address_p then has.
 * IRIS_ERR_SYSTEM */
iris_status_t iris_i_stream_listen(int sock, enum iris_control_kind kind,
                                   struct iris_address *address_p);

/* 0, or the errno that says why not. */
int iris_i_stream_connect(int sock, const struct iris_address *address);

#endif /* IRIS_SRC_CONTROL_STREAM_SOCKET_H */
