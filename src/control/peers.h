/* SPDX-License-Identifier: MIT
 *
 * Watching peers: is a rank alive, and if not, how did it go?
 */
#ifndef IRIS_SRC_CONTROL_PEERS_H
#define IRIS_SRC_CONTROL_PEERS_H

#include "base/host_wait.h"
#include "control/control.h"

/* IRIS_OK while `rank` can still do its part; IRIS_ERR_PEER_LOST when its
 * process has ended or it has left. The message names the rank where it all
 * began: one that left because it lost a peer points on to that one.
 * Thread-safe. */
iris_status_t iris_i_peers_check(struct iris_control *control, int rank);

/* Whether to go on waiting: the same for all ranks, where one that finalized in
 * order is not lost; and IRIS_ERR_INTERRUPTED. NULL is fine: IRIS_OK. */
iris_status_t iris_i_peers_check_all(struct iris_control *control);

/* Whether this rank was interrupted. */
int iris_i_peers_interrupted(const struct iris_control *control);

/* The first rank found lost, where it all began; -1: none. NULL is fine. */
int iris_i_peers_lost(const struct iris_control *control);

/* IRIS_ERR_PEER_LOST: a rank that finalized has ended, and makes a call no more
 * that others wait for. */
iris_status_t iris_i_peers_fail_ended(struct iris_control *control, int rank);

/* Why `rank` leaves, in printable characters; empty if it has not said. */
void iris_i_peers_read_reason(struct iris_control *control, int rank,
                              char reason[IRIS_REASON_BYTES + 1]);

/* IRIS_ERR_PEER_LOST: `rank`, which does not make this rank's `call`, has said
 * why it leaves. */
iris_status_t iris_i_peers_check_leaving(struct iris_control *control, int rank,
                                         const char *call);

/* Shows why this rank leaves to the others. NULL is fine. */
void iris_i_peers_write_reason(struct iris_control *control,
                               const char *reason);

/* Shows this rank's state to the others. NULL is fine. */
void iris_i_peers_set_state(struct iris_control *control,
                            enum iris_rank_state state);

/* This rank as one that waits: the wait ends when any rank is lost, this one is
 * interrupted, or the control plane's deadline passes. NULL is fine: nothing
 * ends it. */
struct iris_waiter iris_i_peers_waiter(struct iris_control *control);

#endif /* IRIS_SRC_CONTROL_PEERS_H */
