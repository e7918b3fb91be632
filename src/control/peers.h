/* SPDX-License-Identifier: MIT
 *
 * Watches peers: whether a rank is alive and, if not, how it ended.
 */
#ifndef IRIS_SRC_CONTROL_PEERS_H
#define IRIS_SRC_CONTROL_PEERS_H

#include "base/host_wait.h"
#include "control/control.h"

/* IRIS_OK while `rank` can still do its part; IRIS_ERR_PEER_LOST if its process
 * has ended or it has left. The message names the rank that was lost first: a
 * rank that left after the loss of a peer refers to that peer. Thread-safe. */
iris_status_t iris_i_peers_check(struct iris_control *control, int rank);

/* Whether to go on waiting: iris_i_peers_check() for all ranks, except that a
 * rank that finalized is not lost; or IRIS_ERR_INTERRUPTED. `control` may be
 * NULL: IRIS_OK. */
iris_status_t iris_i_peers_check_all(struct iris_control *control);

/* Whether this rank was interrupted. */
int iris_i_peers_interrupted(const struct iris_control *control);

/* The first rank found lost, followed to the origin; -1: none. `control` may be
 * NULL. */
int iris_i_peers_lost(const struct iris_control *control);

/* This rank cannot reach `rank` any more, or has lost data for it. All waits of
 * this rank end with IRIS_ERR_PEER_LOST and `why`, and this rank leaves the job,
 * so that the waits of the others end, too. Has no effect if `rank` has
 * finalized. `control` may be NULL. One thread at a time. */
void iris_i_peers_lose(struct iris_control *control, int rank, const char *why);

/* IRIS_ERR_PEER_LOST: a rank has ended after finalizing, so it will not make a
 * call for which others wait. */
iris_status_t iris_i_peers_fail_ended(struct iris_control *control, int rank);

/* The reason for which `rank` leaves, in printable characters; empty if it has
 * given none. */
void iris_i_peers_read_reason(struct iris_control *control, int rank,
                              char reason[IRIS_REASON_BYTES + 1]);

/* IRIS_ERR_PEER_LOST: `rank` does not make this rank's `call`, and has
 * published its reason for leaving. */
iris_status_t iris_i_peers_check_leaving(struct iris_control *control, int rank,
                                         const char *call);

/* Publishes this rank's reason for leaving. `control` may be NULL. */
void iris_i_peers_write_reason(struct iris_control *control,
                               const char *reason);

/* Publishes that this rank leaves, and why, unless it has given a reason: a
 * message, whose "[rank/num_ranks] " is left out. `control` may be NULL. */
void iris_i_peers_leave(struct iris_control *control, const char *message);

/* Publishes this rank's state. `control` may be NULL. */
void iris_i_peers_set_state(struct iris_control *control,
                            enum iris_rank_state state);

/* This rank as a waiter. Its waits end when any rank is lost, this rank is
 * interrupted, or the control plane's deadline passes. `control` may be NULL:
 * then none of these ends a wait. */
struct iris_waiter iris_i_peers_waiter(struct iris_control *control);

#endif /* IRIS_SRC_CONTROL_PEERS_H */
