/* SPDX-License-Identifier: MIT
 *
 * The rendezvous of ranks on several hosts. Ranks of other hosts meet rank 0 by
 * TCP, and pass descriptors among themselves by local sockets.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_HOSTS_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_HOSTS_H

#include "control/rendezvous.h"

/* Rank 0: listens at *root_p. If it is no address of an interface of this host
 * (containers, names of the loopback), listens at its port on all of them. If
 * the port is 0, the system chooses it, and *root_p gets it. The caller closes
 * *sock_p. IRIS_ERR_BOOTSTRAP: the port is taken. */
iris_status_t iris_i_rendezvous_far_listen(struct iris_address *root_p,
                                           int *sock_p);

/* Connects rendezvous->sock to rank 0; both sides prove the job's secret, and
 * this rank its claims. Tries again until rank 0 listens and has proven itself,
 * or the wait has to end. IRIS_ERR_BOOTSTRAP: another job, or no Iris, listens
 * there. */
iris_status_t iris_i_rendezvous_far_connect(struct iris_rendezvous *rendezvous,
                                            struct iris_wait *wait);

/* Rank 0: opens rendezvous->arrivals at its listeners. */
iris_status_t
iris_i_rendezvous_open_arrivals(struct iris_rendezvous *rendezvous);

/* For ranks of a host without rank 0. The lowest of them makes the host's
 * control segment, and sends each of the others its descriptor and those of
 * their heaps. `fd` is that of this rank's heap, or -1. The status of the wait;
 * IRIS_ERR_PEER_LOST, IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_rendezvous_meet_host(struct iris_rendezvous *rendezvous,
                                          int fd);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_HOSTS_H */
