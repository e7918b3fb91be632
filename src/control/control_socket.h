/* SPDX-License-Identifier: MIT
 *
 * The control plane over stream sockets: a star of connections around rank 0,
 * which passes on what each rank says to all the others.
 */
#ifndef IRIS_SRC_CONTROL_CONTROL_SOCKET_H
#define IRIS_SRC_CONTROL_CONTROL_SOCKET_H

#include "control/control.h"
#include "control/rendezvous.h"

/* What a rank's hello says of it: where rank 0 listens. `kind` is shm (then it
 * does not), socket or tcp. */
enum iris_control_kind {
    IRIS_CONTROL_SHM,
    IRIS_CONTROL_UNIX,
    IRIS_CONTROL_TCP
};

enum iris_control_kind iris_i_control_kind(const char *name);

/* Rank 0: listens, at an address and under a secret that its hello then tells.
 * The caller closes *listener_p. IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_control_socket_listen(enum iris_control_kind kind,
                                           struct iris_hello *hello,
                                           int *listener_p);

/* As iris_i_control_shm_open(), of whose segment only the records are used.
 * Takes over `listener`, rank 0's, on success; others connect.
 * IRIS_ERR_BOOTSTRAP: rank 0 has refused this rank. */
iris_status_t iris_i_control_socket_open(const struct iris_log *log,
                                         struct iris_rendezvous *rendezvous,
                                         struct iris_endpoint *endpoint,
                                         int listener,
                                         struct iris_control **control_p);

#endif /* IRIS_SRC_CONTROL_CONTROL_SOCKET_H */
