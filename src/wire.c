/* SPDX-License-Identifier: MIT
 *
 * The meeting, seen from rank 0 and from the others:
 *   peer -> 0  hello (+ heap descriptor)
 *   0 -> peer  verdict (+ control descriptor), then every rank's hello
 *   peer -> 0  verdict on what it took home;   0 -> peer  the joint verdict
 */
#include "config.h"

#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "socket.h"

/* A connected rank says hello at once; one that does not is dropped. And when
 * something is wrong, late ranks have this long to come and be told. */
#define PATIENCE_MS 2000

struct verdict {
    int32_t status;
    int32_t pid;      /* rank 0's process */
    uint64_t control; /* its struct iris_control, for threads of that process */
    char message[IRIS_MESSAGE_BYTES];
};

static void set_verdict(struct verdict *verdict, iris_status_t status)
{
    if (verdict->status == IRIS_OK) {
        verdict->status = status;
        snprintf(verdict->message, sizeof verdict->message, "%s",
                 iris_last_error());
    }
}

/* What rank 0 thinks of a hello, given its own. */
static iris_status_t judge(const struct iris_meeting *meeting,
                           const struct iris_hello *hello)
{
    const struct iris_hello *own = &meeting->hellos[0];
    int rank = hello->rank;

    if (hello->magic != own->magic || hello->version != own->version) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "pid %d uses another version of Iris than rank 0",
                           hello->pid);
    }
    if (hello->num_ranks != own->num_ranks) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d believes in a job of %d ranks, rank 0 in "
                           "one of %d; give all the same IRIS_NUM_RANKS",
                           rank, hello->num_ranks, own->num_ranks);
    }
    if (rank < 0 || rank >= own->num_ranks) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank %d is out of range: the job has %d ranks",
                           rank, own->num_ranks);
    }
    if (rank == 0 || meeting->socks[rank] >= 0) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank %d came twice: pid %d and pid %d; give each "
                           "its own IRIS_RANK",
                           rank, meeting->hellos[rank].pid, hello->pid);
    }
    return IRIS_OK;
}

/* Do all ranks want the same job, and is every one prepared? */
static iris_status_t compare(const struct iris_meeting *meeting, int rank)
{
    const struct iris_hello *own = &meeting->hellos[0];
    const struct iris_hello *hello = &meeting->hellos[rank];

    if (hello->status != IRIS_OK) {
        return iris_i_fail(NULL, (iris_status_t)hello->status,
                           "rank %d of %d could not start: %s", rank,
                           own->num_ranks, hello->message);
    }
    if (own->status != IRIS_OK) {
        return IRIS_OK;
    }
    if (strcmp(hello->backend, own->backend) != 0) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d uses backend %.16s, rank 0 uses %.16s; set "
                           "IRIS_BACKEND alike on all ranks",
                           rank, hello->backend, own->backend);
    }
    if (hello->heap_bytes != own->heap_bytes) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d has a heap of %llu bytes, rank 0 of %llu; "
                           "set IRIS_HEAP_SIZE alike on all ranks",
                           rank, (unsigned long long)hello->heap_bytes,
                           (unsigned long long)own->heap_bytes);
    }
    return IRIS_OK;
}

static void send_verdict(int sock, const struct verdict *verdict, int fd)
{
    /* A peer that is gone by now shows up as lost later. */
    (void)iris_i_socket_send(sock, verdict, sizeof *verdict, fd);
}

/* Takes one connection. What is wrong with it goes into the verdict. */
static int take_peer(struct iris_meeting *meeting, int listener,
                     struct verdict *verdict)
{
    int64_t patience = iris_i_deadline(PATIENCE_MS);
    struct iris_hello hello;
    iris_status_t status;
    int sock, fd;
    pid_t pid;

    status = iris_i_socket_accept(listener, &sock, &pid);
    if (status != IRIS_OK) {
        if (status != IRIS_ERR_BOOTSTRAP) {
            set_verdict(verdict, status);
        }
        return 0;
    }
    status = iris_i_socket_receive(sock, &hello, sizeof hello, patience, &fd);
    if (status != IRIS_OK) {
        /* A dropped or half-open connection is nobody yet; one that could not
         * be read for want of descriptors is rank 0's own trouble. */
        if (status == IRIS_ERR_LIMIT || status == IRIS_ERR_BOOTSTRAP) {
            set_verdict(verdict, status);
            send_verdict(sock, verdict, -1);
        }
        close(sock);
        return 0;
    }
    hello.handle.fd = fd;
    hello.pid = pid != 0 ? pid : hello.pid;
    status = judge(meeting, &hello);
    if (status != IRIS_OK) {
        set_verdict(verdict, status);
        send_verdict(sock, verdict, -1);
        if (fd >= 0) {
            close(fd);
        }
        close(sock);
        return 0;
    }
    meeting->socks[hello.rank] = sock;
    meeting->hellos[hello.rank] = hello;
    set_verdict(verdict, compare(meeting, hello.rank));
    return 1;
}

/* A peer that has said hello says nothing more until the verdict: anything to
 * read from it is its end. */
static iris_status_t check_silent(const struct iris_meeting *meeting, int rank)
{
    struct pollfd pollfd = {.fd = meeting->socks[rank], .events = POLLIN};

    if (pollfd.fd < 0 || poll(&pollfd, 1, 0) <= 0) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                       "rank %d (pid %d) died while the ranks were meeting",
                       rank, meeting->hellos[rank].pid);
}

static iris_status_t fail_absent(const struct iris_meeting *meeting,
                                 int num_present)
{
    char absent[128] = "";
    size_t length = 0;

    for (int rank = 1; rank < meeting->num_ranks; rank++) {
        if (meeting->socks[rank] < 0 && length < sizeof absent - 16) {
            length += (size_t)snprintf(absent + length, sizeof absent - length,
                                       "%s%d", length == 0 ? "" : ", ", rank);
        }
    }
    return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                       "%d of %d ranks came before the deadline "
                       "(IRIS_TIMEOUT_MS); missing: rank %s",
                       num_present, meeting->num_ranks, absent);
}

/* Rank 0: takes connections until all are here. When something is wrong it
 * stays a little, to tell those who come late. */
static void gather(struct iris_meeting *meeting, int listener,
                   struct verdict *verdict)
{
    struct pollfd pollfd = {.fd = listener, .events = POLLIN};
    int64_t deadline = meeting->deadline;
    int num_present = 1, hurried = 0;

    while (num_present < meeting->num_ranks) {
        if (verdict->status != IRIS_OK && !hurried) {
            int64_t soon = iris_i_deadline(PATIENCE_MS);

            deadline = soon < deadline ? soon : deadline;
            hurried = 1;
        }
        if (poll(&pollfd, 1, iris_i_left_ms(deadline, 50)) > 0) {
            num_present += take_peer(meeting, listener, verdict);
            continue;
        }
        for (int rank = 1; rank < meeting->num_ranks; rank++) {
            set_verdict(verdict, check_silent(meeting, rank));
        }
        if (iris_i_now_ns() >= deadline) {
            set_verdict(verdict, fail_absent(meeting, num_present));
            return;
        }
    }
}

/* How many peers are threads of this process? */
static int num_siblings(const struct iris_meeting *meeting)
{
    int count = 0;

    for (int rank = 1; rank < meeting->num_ranks; rank++) {
        count += meeting->hellos[rank].pid == meeting->hellos[0].pid;
    }
    return count;
}

/* Rank 0: tells every peer the verdict and, if it is good, everyone's hello. */
static void announce(struct iris_meeting *meeting, struct verdict *verdict)
{
    int fd = -1;

    if (verdict->status == IRIS_OK) {
        iris_i_control_retain(meeting->control, num_siblings(meeting));
        verdict->pid = getpid();
        verdict->control = (uintptr_t)meeting->control;
        fd = meeting->control->fd;
    }
    for (int rank = 1; rank < meeting->num_ranks; rank++) {
        int sock = meeting->socks[rank];

        if (sock >= 0) {
            send_verdict(sock, verdict, fd);
        }
        for (int r = 0;
             sock >= 0 && verdict->status == IRIS_OK && r < meeting->num_ranks;
             r++) {
            (void)iris_i_socket_send(sock, &meeting->hellos[r],
                                     sizeof meeting->hellos[r],
                                     meeting->hellos[r].handle.fd);
        }
    }
}

static iris_status_t accept_verdict(const struct verdict *verdict)
{
    return verdict->status == IRIS_OK
               ? IRIS_OK
               : iris_i_fail_again((iris_status_t)verdict->status,
                                   verdict->message);
}

static iris_status_t meet_as_root(struct iris_meeting *meeting, const char *key)
{
    struct verdict verdict = {.status = IRIS_OK};
    iris_status_t status;
    int listener = -1;

    set_verdict(&verdict, compare(meeting, 0));
    if (meeting->num_ranks > 1) {
        status = iris_i_socket_listen(key, meeting->num_ranks + 16, &listener);
        if (status != IRIS_OK) {
            return status;
        }
        gather(meeting, listener, &verdict);
        close(listener);
    }
    if (verdict.status == IRIS_OK) {
        set_verdict(&verdict, iris_i_control_create(meeting->num_ranks,
                                                    &meeting->control));
    }
    announce(meeting, &verdict);
    return accept_verdict(&verdict);
}

static iris_status_t hear_hellos(struct iris_meeting *meeting)
{
    for (int rank = 0; rank < meeting->num_ranks; rank++) {
        struct iris_hello hello;
        iris_status_t status;
        int fd = -1;

        status = iris_i_socket_receive(meeting->socks[0], &hello, sizeof hello,
                                       meeting->deadline, &fd);
        if (status != IRIS_OK) {
            return status;
        }
        meeting->hellos[rank] = hello;
        meeting->hellos[rank].handle.fd = fd;
    }
    return IRIS_OK;
}

/* Threads of rank 0's process share its mapping; others make their own. */
static iris_status_t take_control(struct iris_meeting *meeting,
                                  const struct verdict *verdict, int fd)
{
    iris_status_t status;

    if (verdict->pid == getpid()) {
        meeting->control = (struct iris_control *)(uintptr_t)verdict->control;
        if (fd >= 0) {
            close(fd);
        }
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

/* Rank 0 waits as long as we do: leave it time to say who is missing. */
static int64_t later(int64_t deadline)
{
    return deadline == INT64_MAX ? deadline
                                 : deadline + PATIENCE_MS * 1000000LL;
}

static iris_status_t agree_as_peer(struct iris_meeting *meeting,
                                   iris_status_t status)
{
    struct verdict own = {.status = IRIS_OK}, joint;
    int fd;

    set_verdict(&own, status);
    send_verdict(meeting->socks[0], &own, -1);
    status = iris_i_socket_receive(meeting->socks[0], &joint, sizeof joint,
                                   later(meeting->deadline), &fd);
    if (status == IRIS_OK) {
        status = accept_verdict(&joint);
    } else if (status == IRIS_ERR_PEER_LOST) {
        status = iris_i_fail(NULL, status, "rank 0 died during init");
    }
    return own.status != IRIS_OK ? accept_verdict(&own) : status;
}

static iris_status_t meet_as_peer(struct iris_meeting *meeting, const char *key,
                                  const struct iris_hello *own)
{
    struct verdict verdict;
    iris_status_t status;
    int fd = -1;

    status = iris_i_socket_connect(key, meeting->deadline, &meeting->socks[0]);
    if (status != IRIS_OK) {
        return status;
    }
    status =
        iris_i_socket_send(meeting->socks[0], own, sizeof *own, own->handle.fd);
    if (status == IRIS_OK) {
        status =
            iris_i_socket_receive(meeting->socks[0], &verdict, sizeof verdict,
                                  later(meeting->deadline), &fd);
    }
    if (status == IRIS_ERR_PEER_LOST) {
        return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                           "rank 0 of job \"%s\" died while the ranks were "
                           "meeting",
                           key);
    }
    if (status == IRIS_OK) {
        status = accept_verdict(&verdict);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = take_control(meeting, &verdict, fd);
    if (status == IRIS_OK) {
        status = hear_hellos(meeting);
    }
    /* From here on rank 0 counts on us: tell it what went wrong. */
    return status == IRIS_OK ? IRIS_OK : agree_as_peer(meeting, status);
}

static void leave(struct iris_meeting *meeting)
{
    for (int rank = 0; meeting->hellos != NULL && rank < meeting->num_ranks;
         rank++) {
        if (meeting->hellos[rank].handle.fd >= 0) {
            close(meeting->hellos[rank].handle.fd);
        }
    }
    for (int rank = 0; meeting->socks != NULL && rank < meeting->num_ranks;
         rank++) {
        if (meeting->socks[rank] >= 0) {
            close(meeting->socks[rank]);
        }
    }
    free(meeting->hellos);
    free(meeting->socks);
    meeting->hellos = NULL;
    meeting->socks = NULL;
}

static iris_status_t prepare(struct iris_meeting *meeting)
{
    size_t num_ranks = (size_t)meeting->num_ranks;

    meeting->hellos = calloc(num_ranks, sizeof *meeting->hellos);
    meeting->socks = calloc(num_ranks, sizeof *meeting->socks);
    if (meeting->hellos == NULL || meeting->socks == NULL) {
        free(meeting->hellos);
        free(meeting->socks);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %zu ranks",
                           num_ranks);
    }
    for (size_t rank = 0; rank < num_ranks; rank++) {
        meeting->hellos[rank].handle.fd = -1;
        meeting->socks[rank] = -1;
    }
    return IRIS_OK;
}

iris_status_t iris_i_wire_meet(const struct iris_bootstrap *bootstrap,
                               const struct iris_hello *hello,
                               int64_t timeout_ms,
                               struct iris_meeting *meeting_p)
{
    struct iris_meeting meeting = {.rank = bootstrap->rank,
                                   .num_ranks = bootstrap->num_ranks,
                                   .deadline = iris_i_deadline(timeout_ms)};
    iris_status_t status = prepare(&meeting);

    if (status != IRIS_OK) {
        return status;
    }
    if (meeting.rank == 0) {
        meeting.hellos[0] = *hello;
        meeting.hellos[0].handle.fd =
            hello->handle.fd < 0 ? -1 : dup(hello->handle.fd);
        status = meet_as_root(&meeting, bootstrap->key);
    } else {
        status = meet_as_peer(&meeting, bootstrap->key, hello);
    }
    if (status != IRIS_OK) {
        iris_i_control_release(meeting.control);
        leave(&meeting);
        return status;
    }
    *meeting_p = meeting;
    return IRIS_OK;
}

/* Rank 0: hears how each peer fared and tells all. */
static iris_status_t agree_as_root(struct iris_meeting *meeting,
                                   iris_status_t status)
{
    struct verdict joint = {.status = IRIS_OK}, own;
    int fd;

    set_verdict(&joint, status);
    for (int rank = 1; rank < meeting->num_ranks; rank++) {
        status = iris_i_socket_receive(meeting->socks[rank], &own, sizeof own,
                                       meeting->deadline, &fd);
        if (status == IRIS_ERR_PEER_LOST || status == IRIS_ERR_TIMEOUT) {
            set_verdict(&joint,
                        iris_i_fail(NULL, status,
                                    "rank %d (pid %d) %s during init", rank,
                                    meeting->hellos[rank].pid,
                                    status == IRIS_ERR_TIMEOUT ? "fell silent"
                                                               : "died"));
        } else if (status == IRIS_OK && own.status != IRIS_OK) {
            set_verdict(&joint,
                        iris_i_fail(NULL, (iris_status_t)own.status,
                                    "rank %d of %d could not start: "
                                    "%.900s",
                                    rank, meeting->num_ranks, own.message));
        }
    }
    for (int rank = 1; rank < meeting->num_ranks; rank++) {
        send_verdict(meeting->socks[rank], &joint, -1);
    }
    return accept_verdict(&joint);
}

iris_status_t iris_i_wire_agree(struct iris_meeting *meeting,
                                iris_status_t status)
{
    status = meeting->rank == 0 ? agree_as_root(meeting, status)
                                : agree_as_peer(meeting, status);
    leave(meeting);
    return status;
}
