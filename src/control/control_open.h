/* SPDX-License-Identifier: MIT
 *
 * The choice of a job's control plane (IRIS_CONTROL), and its opening.
 */
#ifndef IRIS_SRC_CONTROL_CONTROL_OPEN_H
#define IRIS_SRC_CONTROL_CONTROL_OPEN_H

#include "control/control_socket.h"

/* The parts that a rank opens before the rendezvous, because its hello
 * announces them. */
struct iris_control_parts {
    struct iris_endpoint *endpoint; /* NULL: no messages will be sent */
    struct iris_control_fds fds;    /* rank 0's descriptors for
                                     * control_socket.c */
};

/* Rank 0 listens if the control plane `name` needs it; *hello_p announces that
 * to the others. IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_control_prepare(const char *name,
                                     struct iris_hello *hello_p,
                                     struct iris_control_parts *parts);

/* Opens it with the results of the rendezvous. On success it takes over the
 * parts and the reference to the segment. On failure it closes the parts, so
 * that no other rank waits for them. IRIS_ERR_LIMIT, IRIS_ERR_PEER_LOST,
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_BOOTSTRAP */
iris_status_t iris_i_control_open(const struct iris_log *log,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts,
                                  struct iris_control **control_p);

#define IRIS_CONTROL_NO_PARTS      \
    {                              \
        .fds = IRIS_CONTROL_NO_FDS \
    }

/* Closes parts that no control plane took over. */
void iris_i_control_parts_close(struct iris_control_parts *parts);

#endif /* IRIS_SRC_CONTROL_CONTROL_OPEN_H */
