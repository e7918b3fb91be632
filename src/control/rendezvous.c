/* SPDX-License-Identifier: MIT
 *
 * The meeting, seen from the other ranks:
 *   peer -> 0  hello (+ heap descriptor)
 *   0 -> peer  verdict (+ control descriptor), then every rank's hello
 *   peer -> 0  verdict on what it took home;   0 -> peer  the joint verdict
 */
#include "config.h"

#include "control/rendezvous.h"

#include "base/clock.h"
#include "base/socket.h"
#include "control/rendezvous_root.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rank 0 waits as long as we do: leave it time to say who is missing. */
#define LATER_NS 2000000000LL

void iris_i_wire_judge(struct iris_verdict *verdict, iris_status_t status)
{
    if (verdict->status == IRIS_OK && status != IRIS_OK) {
        verdict->status = status;
        snprintf(verdict->message, sizeof verdict->message, "%s",
                 iris_last_error());
    }
}

iris_status_t iris_i_wire_accept(const struct iris_verdict *verdict)
{
    return verdict->status == IRIS_OK
               ? IRIS_OK
               : iris_i_fail_again((iris_status_t)verdict->status,
                                   verdict->message);
}

void iris_i_wire_send(int sock, const struct iris_verdict *verdict, int fd)
{
    (void)iris_i_socket_send(sock, verdict, sizeof *verdict, fd);
}

static void close_fd(int *fd_p)
{
    if (*fd_p >= 0) {
        close(*fd_p);
        *fd_p = -1;
    }
}

static int64_t later(int64_t deadline)
{
    return deadline == INT64_MAX ? deadline : deadline + LATER_NS;
}

/* Threads of rank 0's process share its mapping; others make their own. */
static iris_status_t take_control(struct iris_meeting *meeting,
                                  const struct iris_verdict *verdict, int fd)
{
    iris_status_t status;

    if (verdict->pid == getpid()) {
        meeting->control = (struct iris_control *)(uintptr_t)verdict->control;
        return IRIS_OK;
    }
    if (fd < 0) {
        return iris_i_fail(NULL, IRIS_ERR_LIMIT,
                           "the control segment's descriptor did not arrive");
    }
    status = iris_i_control_attach(fd, meeting->num_ranks, &meeting->control);
    if (status != IRIS_OK) {
        close(fd);
    }
    return status;
}

/* Receives from rank 0, and names it if it is to blame. */
static iris_status_t hear_root(const struct iris_meeting *meeting, void *data,
                               size_t bytes, int *fd_p)
{
    iris_status_t status = iris_i_socket_receive(
        meeting->sock, data, bytes, later(meeting->deadline), fd_p);

    if (status != IRIS_ERR_PEER_LOST && status != IRIS_ERR_TIMEOUT) {
        return status;
    }
    return iris_i_fail(NULL, status, "rank 0 of job \"%s\" %s during init",
                       meeting->bootstrap->key,
                       status == IRIS_ERR_PEER_LOST ? "died" : "fell silent");
}

/* Takes every hello, even if a descriptor gets lost: what comes after them must
 * not find them in its way. */
static void hear_hellos(struct iris_meeting *meeting,
                        struct iris_verdict *verdict)
{
    for (int rank = 0; rank < meeting->num_ranks; rank++) {
        struct iris_hello hello;
        iris_status_t status;
        int fd = -1;

        status = hear_root(meeting, &hello, sizeof hello, &fd);
        iris_i_wire_judge(verdict, status);
        if (status == IRIS_OK) {
            meeting->hellos[rank] = hello;
            meeting->hellos[rank].handle.fd = fd;
        } else if (status != IRIS_ERR_LIMIT) {
            return;
        }
    }
}

static iris_status_t agree_as_peer(struct iris_meeting *meeting,
                                   const struct iris_verdict *own)
{
    struct iris_verdict joint;
    iris_status_t status;
    int fd = -1;

    iris_i_wire_send(meeting->sock, own, -1);
    status = hear_root(meeting, &joint, sizeof joint, &fd);
    close_fd(&fd);
    if (own->status != IRIS_OK) {
        return iris_i_wire_accept(own);
    }
    return status == IRIS_OK ? iris_i_wire_accept(&joint) : status;
}

/* Says hello and hears the verdict; its descriptor in *fd_p. IRIS_ERR_LIMIT
 * may mean that the verdict is good and only the descriptor was lost: its
 * status tells. */
static iris_status_t say_hello(struct iris_meeting *meeting,
                               const struct iris_hello *own,
                               struct iris_verdict *verdict_p, int *fd_p)
{
    const struct iris_bootstrap *bootstrap = meeting->bootstrap;
    iris_status_t status;

    status = iris_i_socket_connect(meeting->sock, bootstrap->key,
                                   meeting->deadline, bootstrap->failed);
    if (status != IRIS_OK) {
        return status;
    }
    /* Rank 0 may have turned us away unheard: it says why. */
    status =
        iris_i_socket_send(meeting->sock, own, sizeof *own, own->handle.fd);
    if (status == IRIS_OK || status == IRIS_ERR_PEER_LOST) {
        status = hear_root(meeting, verdict_p, sizeof *verdict_p, fd_p);
    }
    return status;
}

static iris_status_t meet_as_peer(struct iris_meeting *meeting,
                                  struct iris_hello *hello)
{
    struct iris_verdict verdict = {.status = IRIS_ERR_SYSTEM};
    struct iris_verdict own = {.status = IRIS_OK};
    iris_status_t status;
    int fd = -1;

    status = say_hello(meeting, hello, &verdict, &fd);
    close_fd(&hello->handle.fd);
    if (status == IRIS_OK) {
        status = iris_i_wire_accept(&verdict);
    }
    if (status != IRIS_OK &&
        (status != IRIS_ERR_LIMIT || verdict.status != IRIS_OK)) {
        return status;
    }
    /* From here on rank 0 counts on us: tell it what went wrong. */
    iris_i_wire_judge(&own, status);
    if (status == IRIS_OK) {
        iris_i_wire_judge(&own, take_control(meeting, &verdict, fd));
    }
    hear_hellos(meeting, &own);
    return own.status == IRIS_OK ? IRIS_OK : agree_as_peer(meeting, &own);
}

static void leave(struct iris_meeting *meeting)
{
    for (int rank = 0; rank < meeting->num_ranks; rank++) {
        close_fd(&meeting->hellos[rank].handle.fd);
        close_fd(&meeting->socks[rank]);
    }
    close_fd(&meeting->sock);
    close_fd(&meeting->spare);
    free(meeting->hellos);
    free(meeting->socks);
}

/* Rank 0 listens from now on: who comes early need not try again. */
static iris_status_t open_sockets(struct iris_meeting *meeting)
{
    iris_status_t status;

    if (meeting->num_ranks == 1) {
        return IRIS_OK;
    }
    if (meeting->rank != 0) {
        return iris_i_socket_make(&meeting->sock);
    }
    status = iris_i_socket_listen(meeting->bootstrap->key,
                                  meeting->num_ranks + 16, &meeting->sock);
    if (status == IRIS_OK) {
        meeting->spare = fcntl(meeting->sock, F_DUPFD_CLOEXEC, 0);
    }
    return status;
}

iris_status_t iris_i_wire_open(const struct iris_bootstrap *bootstrap,
                               int64_t timeout_ms,
                               struct iris_meeting *meeting_p)
{
    struct iris_meeting meeting = {.bootstrap = bootstrap,
                                   .rank = bootstrap->rank,
                                   .num_ranks = bootstrap->num_ranks,
                                   .num_expected = bootstrap->num_ranks,
                                   .deadline = iris_i_deadline(timeout_ms),
                                   .sock = -1,
                                   .spare = -1};
    size_t num_ranks = (size_t)meeting.num_ranks;
    iris_status_t status;

    meeting.hellos = calloc(num_ranks, sizeof *meeting.hellos);
    meeting.socks = calloc(num_ranks, sizeof *meeting.socks);
    if (meeting.hellos == NULL || meeting.socks == NULL) {
        free(meeting.hellos);
        free(meeting.socks);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %zu ranks",
                           num_ranks);
    }
    for (size_t rank = 0; rank < num_ranks; rank++) {
        meeting.hellos[rank].handle.fd = -1;
        meeting.socks[rank] = -1;
    }
    status = open_sockets(&meeting);
    if (status != IRIS_OK) {
        leave(&meeting);
        return status;
    }
    *meeting_p = meeting;
    return IRIS_OK;
}

iris_status_t iris_i_wire_meet(struct iris_meeting *meeting,
                               struct iris_hello *hello)
{
    iris_status_t status;
    struct stat st;

    hello->pid_namespace = stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
    if (meeting->rank == 0) {
        meeting->hellos[0] = *hello;
        hello->handle.fd = -1;
        status = iris_i_wire_root_meet(meeting);
    } else {
        status = meet_as_peer(meeting, hello);
    }
    if (status != IRIS_OK) {
        iris_i_control_release(meeting->control);
        leave(meeting);
    }
    return status;
}

iris_status_t iris_i_wire_agree(struct iris_meeting *meeting,
                                iris_status_t status)
{
    struct iris_verdict own = {.status = IRIS_OK};

    if (meeting->rank == 0) {
        status = iris_i_wire_root_agree(meeting, status);
    } else {
        iris_i_wire_judge(&own, status);
        status = agree_as_peer(meeting, &own);
    }
    leave(meeting);
    return status;
}
