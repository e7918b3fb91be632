/* SPDX-License-Identifier: MIT
 *
 * Code for both sides of the rendezvous: verdicts and waits.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_COMMON_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_COMMON_H

#include "control/rendezvous.h"

/* A status that is not a verdict yet: rank 0 has heard this rank's hello. */
#define IRIS_VERDICT_HEARD 1

/* A result: from rank 0 to all, and at the end from each rank to rank 0. */
struct iris_verdict {
    int32_t status;
    int32_t pid;      /* rank 0's process */
    uint64_t control; /* address of its struct iris_segment, for threads of
                       * that process */
    uint64_t hellos;  /* address of its hellos, if iris_spawn() has made all
                       * ranks as threads; they then get none by the socket */
    char message[IRIS_MESSAGE_BYTES];
};

/* Makes `status`, with this thread's message, the verdict, unless the verdict
 * is an error already. */
void iris_i_rendezvous_judge(struct iris_verdict *verdict,
                             iris_status_t status);

/* Returns the verdict's status, and sets this thread's message to the
 * verdict's. */
iris_status_t iris_i_rendezvous_accept(const struct iris_verdict *verdict);

/* Sends it, with a descriptor unless that is -1. A peer that is gone is noticed
 * later. */
void iris_i_rendezvous_send(int sock, const struct iris_verdict *verdict,
                            int fd);

/* Sends a peer the good verdict and every rank's hello, unless the verdict has
 * the hellos' address. A descriptor goes only to other processes of the same
 * host. */
iris_status_t
iris_i_rendezvous_announce(const struct iris_rendezvous *rendezvous, int rank,
                           const struct iris_verdict *verdict);

/* IRIS_ERR_PEER_LOST: the creator of the ranks has noted that one failed. */
iris_status_t
iris_i_rendezvous_check_failed(const struct iris_rendezvous *rendezvous);

/* Around a wait for other ranks. The `arg` of its type is the rendezvous. */
void iris_i_rendezvous_wait_begin(struct iris_rendezvous *rendezvous,
                                  const struct iris_wait_type *type,
                                  struct iris_wait *wait);
void iris_i_rendezvous_wait_end(struct iris_rendezvous *rendezvous,
                                struct iris_wait *wait, iris_status_t status);

/* Closes a descriptor unless it is -1, and sets it to -1. */
void iris_i_rendezvous_close(int *fd_p);

/* After iris_i_rendezvous_join(): the key for one purpose, such as "control".
 * It is derived from the job's secret and from rank 0's random bytes. The latter
 * protect a job of one host with a guessable secret, since they pass a local
 * socket there. */
void iris_i_rendezvous_key(const struct iris_rendezvous *rendezvous,
                           const char *label, struct iris_secret *key_p);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_COMMON_H */
