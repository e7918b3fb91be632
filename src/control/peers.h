/* SPDX-License-Identifier: MIT
 *
 * Watching peers: is a rank alive, and if not, how did it go?
 */
#ifndef IRIS_SRC_CONTROL_PEERS_H
#define IRIS_SRC_CONTROL_PEERS_H

#include "control/segment.h"
#include "base/log.h"

struct iris_peers;

/* Starts watching. pids[rank] is each rank's process; ranks of this process are
 * watched by their state alone. The caller closes. IRIS_ERR_LIMIT,
 * IRIS_ERR_PEER_LOST (one is gone already), IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_peers_open(struct iris_control *control, const int *pids,
                                int own_rank, struct iris_peers **peers_p);

/* NULL is fine. */
void iris_i_peers_close(struct iris_peers *peers);

/* IRIS_OK while `rank` can still do its part; IRIS_ERR_PEER_LOST when its
 * process has ended or it has left. The message names the rank where it all
 * began: one that left because it lost a peer points on to that one.
 * Thread-safe. */
iris_status_t iris_i_peers_check(const iris_t *iris, int rank);

/* The same for all ranks; a rank that finalized in order is not lost. */
iris_status_t iris_i_peers_check_all(const iris_t *iris);

/* The first rank found lost, where it all began; -1: none. */
int iris_i_peers_lost(const iris_t *iris);

#endif /* IRIS_SRC_CONTROL_PEERS_H */
