/* SPDX-License-Identifier: MIT
 *
 * The control plane over stream sockets: a star of connections around rank 0,
 * which forwards each rank's messages to all the others.
 */
#ifndef IRIS_SRC_CONTROL_CONTROL_SOCKET_H
#define IRIS_SRC_CONTROL_CONTROL_SOCKET_H

#include "control/control.h"
#include "control/rendezvous.h"
#include "control/stream_socket.h"

/* The kind in a rank's hello: where rank 0 listens. */
enum iris_control_kind iris_i_control_kind(const char *name);

/* Rank 0's descriptors for it; -1: none. It opens them before the rendezvous,
 * so that all ranks learn of a failure. */
struct iris_control_fds {
    int listener;
    int spare; /* reserved, to tell a rank that there are no descriptors left */
    int wake;  /* an eventfd */
};
#define IRIS_CONTROL_NO_FDS \
    {                       \
        -1, -1, -1          \
    }

/* Rank 0: listens at an address, with a secret; its hello then announces both.
 * The caller closes *fds_p. IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_control_socket_listen(enum iris_control_kind kind,
                                           struct iris_hello *hello,
                                           struct iris_control_fds *fds_p);
void iris_i_control_fds_close(struct iris_control_fds *fds);

/* Like iris_i_control_shm_open(), but uses only the records of the segment.
 * Takes over `fds` (rank 0's) on success; the other ranks connect.
 * IRIS_ERR_BOOTSTRAP: rank 0 has refused this rank. */
iris_status_t iris_i_control_socket_open(const struct iris_log *log,
                                         struct iris_rendezvous *rendezvous,
                                         struct iris_endpoint *endpoint,
                                         const struct iris_control_fds *fds,
                                         struct iris_control **control_p);

#endif /* IRIS_SRC_CONTROL_CONTROL_SOCKET_H */
