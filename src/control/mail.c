/* SPDX-License-Identifier: MIT
 *
 * Messages with descriptors between ranks, by local datagrams.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

iris_status_t iris_i_mail_open(struct iris_mail *mail,
                               const struct iris_rendezvous *rendezvous)
{
    int own_pid = (int)getpid(); /* read once: it is a system call */

    mail->endpoint = NULL;
    mail->num_ranks = rendezvous->num_ranks;
    mail->ranks = calloc((size_t)mail->num_ranks, sizeof *mail->ranks);
    if (mail->ranks == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %d ranks",
                           mail->num_ranks);
    }
    for (int rank = 0; rank < mail->num_ranks; rank++) {
        const struct iris_hello *hello = &rendezvous->hellos[rank];

        mail->ranks[rank].pidfd = -1;
        mail->ranks[rank].pid = rank == rendezvous->rank ? own_pid : hello->pid;
        mail->ranks[rank].is_here = iris_i_hello_same_host(
            hello, &rendezvous->hellos[rendezvous->rank]);
        mail->ranks[rank].is_remote =
            mail->ranks[rank].pid != own_pid || !mail->ranks[rank].is_here;
        snprintf(mail->ranks[rank].host, sizeof mail->ranks[rank].host, "%.*s",
                 (int)sizeof hello->host_name - 1, hello->host_name);
        memcpy(mail->ranks[rank].name, hello->endpoint,
               sizeof mail->ranks[rank].name);
    }
    return IRIS_OK;
}

static iris_status_t watch(struct iris_mail_rank *rank, int number, int must)
{
    rank->pidfd = iris_i_process_watch(rank->pid);
    if (rank->pidfd >= 0) {
        return IRIS_OK;
    }
    if (errno == ESRCH) {
        return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                           "rank %d (pid %d) died during init", number,
                           rank->pid);
    }
    if (errno != EPERM && errno != EACCES && errno != ENOSYS) {
        return iris_i_fail_fd(errno, "cannot watch a peer's process");
    }
    return !must ? IRIS_OK
                 : iris_i_fail_errno(
                       NULL, IRIS_ERR_SYSTEM, errno,
                       "cannot watch the process of rank %d: the container or "
                       "the kernel forbids pidfd_open(); allow it in the "
                       "container's seccomp profile, or set "
                       "IRIS_CONTROL=socket on all ranks",
                       number);
}

iris_status_t iris_i_mail_watch(struct iris_mail *mail, int must)
{
    iris_status_t status = IRIS_OK;

    for (int rank = 0; status == IRIS_OK && rank < mail->num_ranks; rank++) {
        if (mail->ranks[rank].is_remote && mail->ranks[rank].is_here) {
            status = watch(&mail->ranks[rank], rank, must);
        }
    }
    return status;
}

void iris_i_mail_close(struct iris_mail *mail)
{
    for (int rank = 0; mail->ranks != NULL && rank < mail->num_ranks; rank++) {
        if (mail->ranks[rank].pidfd >= 0) {
            close(mail->ranks[rank].pidfd);
        }
    }
    iris_i_endpoint_close(mail->endpoint);
    free(mail->ranks);
}

int iris_i_mail_alive(const struct iris_mail *mail, int rank)
{
    struct pollfd pollfd = {.fd = mail->ranks[rank].pidfd, .events = POLLIN};

    return pollfd.fd < 0 || poll(&pollfd, 1, 0) <= 0;
}

int iris_i_mail_find_stopped(const struct iris_mail *mail)
{
    struct iris_process process;

    for (int rank = 0; mail != NULL && rank < mail->num_ranks; rank++) {
        if (mail->ranks[rank].is_here &&
            iris_i_process_read(mail->ranks[rank].pid, &process) &&
            (process.state == 'T' || process.state == 't')) {
            return rank;
        }
    }
    return -1;
}

int iris_i_mail_is_remote(const struct iris_mail *mail, int rank)
{
    return mail->ranks[rank].is_remote;
}

void iris_i_mail_name(const struct iris_mail *mail, int rank,
                      char name[IRIS_RANK_NAME_BYTES])
{
    const char *host = mail->ranks[rank].host;

    snprintf(name, IRIS_RANK_NAME_BYTES, "rank %d (pid %d%s%s)", rank,
             mail->ranks[rank].pid, host[0] == '\0' ? "" : " on ", host);
}

int iris_i_mail_send(const struct iris_mail *mail, int rank, const void *data,
                     size_t bytes, int fd)
{
    return mail->endpoint == NULL
               ? ENOTSOCK
               : iris_i_endpoint_send(mail->endpoint, mail->ranks[rank].name,
                                      data, bytes, fd);
}

/* The rank whose process sent the message and whose number is its first word;
 * -1: not one of ours. */
static int sender_of(const struct iris_mail *mail,
                     const struct iris_inbox *inbox,
                     const struct iris_letter *letter)
{
    int32_t rank = -1;

    if (letter->bytes == (ssize_t)inbox->bytes) {
        memcpy(&rank, inbox->data, sizeof rank);
    }
    if (rank < 0 || rank >= mail->num_ranks ||
        letter->pid != mail->ranks[rank].pid ||
        (letter->uid != geteuid() && letter->uid != getuid())) {
        iris_i_warning(inbox->log,
                       "dropped a message of pid %ld, uid %ld, which is not "
                       "one of our ranks",
                       (long)letter->pid, (long)letter->uid);
        return -1;
    }
    return rank;
}

iris_status_t iris_i_mail_receive(const struct iris_mail *mail,
                                  const struct iris_inbox *inbox,
                                  struct iris_sender *sender_p)
{
    struct iris_letter letter;
    iris_status_t status = IRIS_OK;

    *sender_p = (struct iris_sender){.rank = -1, .fd = -1};
    if (inbox->timeout_ms > 0) {
        status =
            iris_i_endpoint_wait(mail->endpoint, inbox->log, inbox->timeout_ms);
    }
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_endpoint_take(mail->endpoint, inbox->data, inbox->bytes, &letter);
    if (letter.bytes < 0) {
        return IRIS_OK;
    }
    sender_p->rank = sender_of(mail, inbox, &letter);
    if (sender_p->rank >= 0) {
        sender_p->fd = letter.fd;
    } else if (letter.fd >= 0) {
        close(letter.fd);
    }
    return letter.fd_dropped && sender_p->rank >= 0
               ? iris_i_fail_fd(EMFILE, "cannot take a peer's descriptor")
               : IRIS_OK;
}
