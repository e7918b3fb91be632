/* SPDX-License-Identifier: MIT
 *
 * What the two sides of the rendezvous share: verdicts, and how they wait.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_COMMON_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_COMMON_H

#include "control/rendezvous.h"

/* A verdict's status that is none yet: rank 0 has heard this rank's hello. */
#define IRIS_VERDICT_HEARD 1

#define IRIS_REFUSAL_KEY_BYTES 128

/* How it went: from rank 0 to all, and from each to rank 0 at the end. */
struct iris_verdict {
    int32_t status;
    int32_t pid;      /* rank 0's process */
    uint64_t control; /* its struct iris_segment, for threads of that process */
    uint64_t hellos;  /* its hellos, where iris_spawn() has made all ranks as
                       * such threads, which then get none by the socket */
    char message[IRIS_MESSAGE_BYTES];
};

/* Makes `status`, with this thread's message, the verdict unless that is bad
 * already. */
void iris_i_rendezvous_judge(struct iris_verdict *verdict,
                             iris_status_t status);

/* The verdict's status, its message now this thread's. */
iris_status_t iris_i_rendezvous_accept(const struct iris_verdict *verdict);

/* Sends it, with a descriptor unless that is -1. A peer that is gone by now
 * shows up as lost later. */
void iris_i_rendezvous_send(int sock, const struct iris_verdict *verdict,
                            int fd);

/* Tells a peer the good verdict and, unless that says where they are, every
 * rank's hello. A descriptor goes only to other processes of the same host. */
iris_status_t
iris_i_rendezvous_announce(const struct iris_rendezvous *rendezvous, int rank,
                           const struct iris_verdict *verdict);

/* The key by which a rank 0 that cannot have its own tells the others why. */
void iris_i_rendezvous_refusal_key(const struct iris_rendezvous *rendezvous,
                                   char key[IRIS_REFUSAL_KEY_BYTES]);

/* IRIS_ERR_PEER_LOST: whoever makes the ranks has noted that one failed. */
iris_status_t
iris_i_rendezvous_check_failed(const struct iris_rendezvous *rendezvous);

/* Around a wait for other ranks: `arg` of its type is the rendezvous. */
void iris_i_rendezvous_wait_begin(struct iris_rendezvous *rendezvous,
                                  const struct iris_wait_type *type,
                                  struct iris_wait *wait);
void iris_i_rendezvous_wait_end(struct iris_rendezvous *rendezvous,
                                struct iris_wait *wait, iris_status_t status);

/* Closes a descriptor unless it is -1, which it then is. */
void iris_i_rendezvous_close(int *fd_p);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_COMMON_H */
