/* SPDX-License-Identifier: MIT
 *
 * The ranks of one machine, and messages with descriptors between them. All
 * control planes share this code.
 */
#ifndef IRIS_SRC_CONTROL_MAIL_H
#define IRIS_SRC_CONTROL_MAIL_H

#include "control/control.h"
#include "control/rendezvous.h"

struct iris_mail {
    struct iris_endpoint *endpoint; /* NULL: no messages are sent */
    int num_ranks;
    struct iris_mail_rank {
        int pid;
        int is_here;   /* 1: it is on this machine */
        int is_remote; /* 1: it is in another process */
        int pidfd;     /* its process on this machine; -1: not watched */
        char host[32]; /* empty: the job has one host */
        char name[IRIS_ENDPOINT_NAME_BYTES];
    } * ranks;
};

/* From the ranks' hellos. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_mail_open(struct iris_mail *mail,
                               const struct iris_rendezvous *rendezvous);

/* Watches every other process of this machine by a pidfd. It becomes readable
 * once the process has ended, also as a zombie and also if a child holds its
 * descriptors, and is immune to reuse of the pid. Without `must`, a system that has no pidfds
 * is no error, and the processes are not watched. IRIS_ERR_PEER_LOST,
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_mail_watch(struct iris_mail *mail, int must);

/* Closes the endpoint, too. */
void iris_i_mail_close(struct iris_mail *mail);

/* Implementations of slots of struct iris_control_ops. */
int iris_i_mail_alive(const struct iris_mail *mail, int rank);
int iris_i_mail_is_remote(const struct iris_mail *mail, int rank);

/* A rank of this machine whose process is stopped by a signal or a debugger, for
 * messages; -1: none. `mail` may be NULL. */
int iris_i_mail_find_stopped(const struct iris_mail *mail);
void iris_i_mail_name(const struct iris_mail *mail, int rank,
                      char name[IRIS_RANK_NAME_BYTES]);
int iris_i_mail_send(const struct iris_mail *mail, int rank, const void *data,
                     size_t bytes, int fd);

struct iris_inbox {
    const struct iris_log *log;
    void *data;
    size_t bytes;
    int timeout_ms;
};
iris_status_t iris_i_mail_receive(const struct iris_mail *mail,
                                  const struct iris_inbox *inbox,
                                  struct iris_sender *sender_p);

#endif /* IRIS_SRC_CONTROL_MAIL_H */
