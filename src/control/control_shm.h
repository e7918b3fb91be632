/* SPDX-License-Identifier: MIT
 *
 * The control plane of ranks that share a node's memory.
 */
#ifndef IRIS_SRC_CONTROL_CONTROL_SHM_H
#define IRIS_SRC_CONTROL_CONTROL_SHM_H

#include "control/control.h"
#include "control/rendezvous.h"

/* Opens it with the results of the rendezvous. On success it takes over the
 * reference to the segment and `endpoint` (NULL: no messages will be sent).
 * IRIS_ERR_LIMIT, IRIS_ERR_PEER_LOST (a rank is gone already),
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_control_shm_open(const struct iris_log *log,
                                      struct iris_rendezvous *rendezvous,
                                      struct iris_endpoint *endpoint,
                                      struct iris_control **control_p);

#endif /* IRIS_SRC_CONTROL_CONTROL_SHM_H */
