/* SPDX-License-Identifier: MIT
 *
 * The control plane over stream sockets: a star of connections around rank 0,
 * which passes on what each rank says to all the others.
 */
#ifndef IRIS_SRC_CONTROL_CONTROL_SOCKET_H
#define IRIS_SRC_CONTROL_CONTROL_SOCKET_H

#include "control/control.h"
#include "control/rendezvous.h"
#include "control/stream_socket.h"

/* What a rank's hello says of it: where rank 0 listens. */
enum iris_control_kind iris_i_control_kind(const char *name);

/* Rank 0's descriptors for it; -1: none. Open before it meets the others, so
 * that all hear why it cannot have them. */
struct iris_control_fds {
    int listener;
    int spare; /* kept back to tell a rank that there are none left */
    int wake;  /* an eventfd */
};
#define IRIS_CONTROL_NO_FDS \
    {                       \
        -1, -1, -1          \
    }

/* Rank 0: listens, at an address and under a secret that its hello then tells.
 * The caller closes *fds_p. IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_control_socket_listen(enum iris_control_kind kind,
                                           struct iris_hello *hello,
                                           struct iris_control_fds *fds_p);
void iris_i_control_fds_close(struct iris_control_fds *fds);

/* As iris_i_control_shm_open(), of whose segment only the records are used.
 * Takes over `fds`, rank 0's, on success; others connect.
 * IRIS_ERR_BOOTSTRAP: rank 0 has refused this rank. */
iris_status_t iris_i_control_socket_open(const struct iris_log *log,
                                         struct iris_rendezvous *rendezvous,
                                         struct iris_endpoint *endpoint,
                                         const struct iris_control_fds *fds,
                                         struct iris_control **control_p);

#endif /* IRIS_SRC_CONTROL_CONTROL_SOCKET_H */
