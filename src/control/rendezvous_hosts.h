/* SPDX-License-Identifier: MIT
 *
 * The rendezvous of ranks on several hosts. Ranks of other hosts meet rank 0 by
 * TCP, and pass descriptors among themselves by local sockets.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_HOSTS_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_HOSTS_H

#include "control/rendezvous.h"

/* Rank 0: listens at the port of *root_p, on all interfaces. If the port is 0,
 * the system chooses it, and *root_p gets it. The caller closes *sock_p.
 * IRIS_ERR_BOOTSTRAP: the port is taken. */
iris_status_t iris_i_rendezvous_far_listen(struct iris_address *root_p,
                                           int *sock_p);

/* Connects rendezvous->sock to rank 0 and sends the job's key. Tries again
 * until rank 0 listens or the wait has to end. */
iris_status_t
iris_i_rendezvous_far_connect(const struct iris_rendezvous *rendezvous,
                              struct iris_wait *wait);

/* Rank 0: a descriptor that becomes readable when a rank of this host or of
 * another host connects. The caller closes it. -1: the process has no
 * descriptor left. */
int iris_i_rendezvous_watch(const struct iris_rendezvous *rendezvous);

/* Rank 0: whether a connection can be taken; takes one, like
 * iris_i_socket_accept(). *pid_p is 0 for a rank of another host. */
int iris_i_rendezvous_has_come(const struct iris_rendezvous *rendezvous);
iris_status_t iris_i_rendezvous_accept_peer(struct iris_rendezvous *rendezvous,
                                            int *sock_p, pid_t *pid_p);

/* For ranks of a host without rank 0. The lowest of them makes the host's
 * control segment, and sends each of the others its descriptor and those of
 * their heaps. `fd` is that of this rank's heap, or -1. The status of the wait;
 * IRIS_ERR_PEER_LOST, IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_rendezvous_meet_host(struct iris_rendezvous *rendezvous,
                                          int fd);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_HOSTS_H */
