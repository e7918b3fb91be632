/* SPDX-License-Identifier: MIT
 *
 * The rendezvous of ranks on several hosts: ranks of other hosts meet rank 0 by
 * TCP, and pass descriptors among themselves by local sockets.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_HOSTS_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_HOSTS_H

#include "control/rendezvous.h"

/* Rank 0: listens at the port of *root_p, on all interfaces. The system chooses
 * the port if it is 0, and *root_p then has it. The
 * caller closes *sock_p. IRIS_ERR_BOOTSTRAP: the port is taken. */
iris_status_t iris_i_rendezvous_far_listen(struct iris_address *root_p,
                                           int *sock_p);

/* Connects rendezvous->sock to rank 0, until rank 0 listens or the wait is to
 * end, and says the job's key. */
iris_status_t
iris_i_rendezvous_far_connect(const struct iris_rendezvous *rendezvous,
                              struct iris_wait *wait);

/* Rank 0: a descriptor that becomes readable when a rank of this host or of
 * another host connects. The caller closes it. -1: the process has no descriptor
 * left. */
int iris_i_rendezvous_watch(const struct iris_rendezvous *rendezvous);

/* Rank 0: whether a connection can be taken; takes one, as
 * iris_i_socket_accept(). *pid_p is 0 for a rank of another host. */
int iris_i_rendezvous_has_come(const struct iris_rendezvous *rendezvous);
iris_status_t iris_i_rendezvous_accept_peer(struct iris_rendezvous *rendezvous,
                                            int *sock_p, pid_t *pid_p);

/* Ranks of a host without rank 0: the lowest of them makes the host's control
 * segment, and gives each of the others its descriptor and those of their
 * heaps. `fd` is this rank's heap's, or -1. The status of the wait;
 * IRIS_ERR_PEER_LOST, IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_rendezvous_meet_host(struct iris_rendezvous *rendezvous,
                                          int fd);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_HOSTS_H */
