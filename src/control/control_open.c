/* SPDX-License-Identifier: MIT
 *
 * Chooses and opens the control plane.
 */
#include "config.h"

#include "control/internal.h"

iris_status_t iris_i_control_prepare(const char *name,
                                     struct iris_hello *hello_p,
                                     struct iris_control_parts *parts)
{
    enum iris_control_kind kind = iris_i_control_kind(name);

    hello_p->control = (int32_t)kind;
    return kind == IRIS_CONTROL_SHM || hello_p->rank != 0
               ? IRIS_OK
               : iris_i_control_socket_listen(kind, hello_p, &parts->fds);
}

iris_status_t iris_i_control_open(const struct iris_log *log,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts,
                                  struct iris_control **control_p)
{
    iris_status_t status =
        rendezvous->hellos[0].control == IRIS_CONTROL_SHM
            ? iris_i_control_shm_open(log, rendezvous, parts->endpoint,
                                      control_p)
            : iris_i_control_socket_open(log, rendezvous, parts->endpoint,
                                         &parts->fds, control_p);

    if (status == IRIS_OK) {
        *parts = (struct iris_control_parts)IRIS_CONTROL_NO_PARTS;
    } else {
        iris_i_control_parts_close(parts);
    }
    return status;
}

void iris_i_control_parts_close(struct iris_control_parts *parts)
{
    iris_i_endpoint_close(parts->endpoint);
    iris_i_control_fds_close(&parts->fds);
    *parts = (struct iris_control_parts)IRIS_CONTROL_NO_PARTS;
}
