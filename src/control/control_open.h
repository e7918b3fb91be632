/* SPDX-License-Identifier: MIT
 *
 * Which control plane a job has (IRIS_CONTROL), and opening it.
 */
#ifndef IRIS_SRC_CONTROL_CONTROL_OPEN_H
#define IRIS_SRC_CONTROL_CONTROL_OPEN_H

#include "control/control_socket.h"

/* What a rank opens before it meets the others, who need to know of it. */
struct iris_control_parts {
    struct iris_endpoint *endpoint; /* NULL: nothing will be sent */
    struct iris_control_fds fds;    /* rank 0's for control_socket.c */
};

/* Rank 0 listens if the control plane called `name` needs that; *hello_p tells
 * the others. IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_control_prepare(const char *name,
                                     struct iris_hello *hello_p,
                                     struct iris_control_parts *parts);

/* Opens it with what the rendezvous gave: on success it takes over the parts
 * and the reference to the segment; on failure it closes the parts, so that no
 * other rank waits for them. IRIS_ERR_LIMIT, IRIS_ERR_PEER_LOST,
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_BOOTSTRAP */
iris_status_t iris_i_control_open(const struct iris_log *log,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts,
                                  struct iris_control **control_p);

#define IRIS_CONTROL_NO_PARTS      \
    {                              \
        .fds = IRIS_CONTROL_NO_FDS \
    }

/* Closes parts that nobody took over. */
void iris_i_control_parts_close(struct iris_control_parts *parts);

#endif /* IRIS_SRC_CONTROL_CONTROL_OPEN_H */
