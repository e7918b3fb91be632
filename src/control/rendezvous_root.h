/* SPDX-License-Identifier: MIT
 *
 * Rank 0's side of the rendezvous.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_ROOT_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_ROOT_H

#include "control/rendezvous.h"

/* Rank 0 cannot listen: tells `status`, with this thread's message, to the
 * ranks that come soon, and returns it. */
iris_status_t
iris_i_rendezvous_root_refuse(const struct iris_rendezvous *rendezvous,
                              iris_status_t status);

/* Rank 0's side of iris_i_rendezvous_join() and iris_i_rendezvous_agree(). */
iris_status_t iris_i_rendezvous_root_join(struct iris_rendezvous *rendezvous);
iris_status_t iris_i_rendezvous_root_agree(struct iris_rendezvous *rendezvous,
                                           iris_status_t status);

/* IRIS_ERR_PEER_LOST: a rank has died since all came. For rank 0, until
 * iris_i_rendezvous_agree(); the others have no connections: IRIS_OK. */
iris_status_t
iris_i_rendezvous_root_check(const struct iris_rendezvous *rendezvous);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_ROOT_H */
