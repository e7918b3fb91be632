/* SPDX-License-Identifier: MIT
 *
 * Local sequenced-packet sockets in the abstract namespace.
 */
#include "config.h"

#include "base/base.h"

#include "base/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The user id is part of the name, so that different users' names never
 * collide. */
static socklen_t make_address(const char *name, struct sockaddr_un *address)
{
    int length;

    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                      "iris/%lu/%s", (unsigned long)geteuid(), name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)length);
}

void iris_i_socket_bound_sends(int sock)
{
    struct timeval patience = {.tv_sec = IRIS_SOCKET_PATIENCE_MS / 1000};

    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

iris_status_t iris_i_socket_make(int *sock_p)
{
    int sock =
        iris_i_fd_socket(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));

    if (sock < 0) {
        return iris_i_fail_fd(errno, "cannot make a socket");
    }
    iris_i_socket_bound_sends(sock);
    *sock_p = sock;
    return IRIS_OK;
}

static struct ucred peer_of(int sock)
{
    struct ucred peer = {.pid = 0, .uid = (uid_t)-1};
    socklen_t bytes = sizeof peer;

    getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
    return peer;
}

pid_t iris_i_socket_peer(int sock)
{
    return peer_of(sock).pid;
}

/* Reports the owner of the name that we could not bind. It may not listen
 * yet. */
static iris_status_t fail_in_use(const char *name)
{
    struct sockaddr_un address;
    socklen_t length = make_address(name, &address);
    struct ucred peer = {.pid = 0, .uid = (uid_t)-1};
    char holder[64] = "a process that does not answer";
    int sock = -1, ret = -1;
    struct iris_wait wait;

    if (iris_i_socket_make(&sock) == IRIS_OK) {
        iris_i_wait_moment(&wait, IRIS_LISTEN_MS);
        do {
            ret = connect(sock, (struct sockaddr *)&address, length);
        } while (ret != 0 && (errno == ECONNREFUSED || errno == EINTR) &&
                 iris_i_wait_tick(&wait) == IRIS_OK);
        if (ret == 0) {
            peer = peer_of(sock);
            snprintf(holder, sizeof holder, "pid %ld of uid %ld",
                     (long)peer.pid, (long)peer.uid);
        }
        close(sock);
    }
    return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                       "its local socket is already there: %s; was the rank "
                       "started twice, or another job under the same name? set "
                       "IRIS_JOB_ID to a unique name",
                       holder);
}

iris_status_t iris_i_socket_listen(const char *name, int backlog, int *sock_p)
{
    struct sockaddr_un address;
    socklen_t length = make_address(name, &address);
    iris_status_t status;
    int sock = -1;

    status = iris_i_socket_make(&sock);
    if (status != IRIS_OK) {
        return status;
    }
    if (bind(sock, (struct sockaddr *)&address, length) == 0 &&
        listen(sock, backlog) == 0) {
        *sock_p = sock;
        return IRIS_OK;
    }
    status = errno == EADDRINUSE
                 ? fail_in_use(name)
                 : iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                     "cannot listen for ranks");
    close(sock);
    return status;
}

iris_status_t iris_i_socket_try_connect(int sock, const char *name)
{
    struct sockaddr_un address;
    socklen_t length = make_address(name, &address);
    struct ucred peer;

    if (connect(sock, (struct sockaddr *)&address, length) != 0) {
        if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) {
            return IRIS_ERR_STATE;
        }
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "cannot connect to rank 0");
    }
    peer = peer_of(sock);
    if (peer.uid != geteuid()) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "the job's name is held by uid %ld (pid %ld), not "
                           "by us, uid %ld; choose another IRIS_JOB_ID",
                           (long)peer.uid, (long)peer.pid, (long)geteuid());
    }
    return IRIS_OK;
}

iris_status_t iris_i_socket_connect(int sock, const char *name,
                                    struct iris_wait *wait)
{
    iris_status_t status, waited = IRIS_OK;

    do {
        status = iris_i_socket_try_connect(sock, name);
    } while (status == IRIS_ERR_STATE &&
             (waited = iris_i_wait_tick(wait)) == IRIS_OK);
    return status == IRIS_ERR_STATE ? waited : status;
}

iris_status_t iris_i_socket_accept(int listener, int *sock_p, pid_t *pid_p)
{
    int sock = iris_i_fd_socket(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    struct ucred peer;

    if (sock < 0) {
        if (errno == EINTR || errno == ECONNABORTED) {
            return IRIS_ERR_STATE;
        }
        return iris_i_fail_fd(errno, "cannot accept a rank");
    }
    peer = peer_of(sock);
    if (peer.uid != geteuid()) {
        close(sock);
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "turned away pid %ld of uid %ld, which wanted to "
                           "join a job of uid %ld",
                           (long)peer.pid, (long)peer.uid, (long)geteuid());
    }
    iris_i_socket_bound_sends(sock);
    *sock_p = sock;
    *pid_p = peer.pid;
    return IRIS_OK;
}

void iris_i_socket_attach(struct msghdr *message,
                          union iris_socket_control *control, int fd)
{
    if (fd < 0) {
        return;
    }
    memset(control, 0, sizeof *control);
    message->msg_control = control;
    message->msg_controllen = sizeof control->space;
    control->header.cmsg_level = SOL_SOCKET;
    control->header.cmsg_type = SCM_RIGHTS;
    control->header.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&control->header), &fd, sizeof fd);
}

iris_status_t iris_i_socket_send(int sock, const void *data, size_t bytes,
                                 int fd)
{
    union iris_socket_control control;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    struct iris_wait wait;
    ssize_t sent;

    iris_i_socket_attach(&message, &control, fd);
    iris_i_wait_moment(&wait, IRIS_SOCKET_PATIENCE_MS);
    do { /* the system limits the number of descriptors in transit */
        sent = sendmsg(sock, &message, MSG_NOSIGNAL);
        if (sent > 0) { /* a stream may take a part */
            iov.iov_base = (char *)iov.iov_base + sent;
            iov.iov_len -= (size_t)sent;
            message.msg_control = NULL;
            message.msg_controllen = 0;
        }
    } while (iov.iov_len > 0 &&
             (sent > 0 || ((errno == EINTR || errno == ETOOMANYREFS) &&
                           iris_i_wait_tick(&wait) == IRIS_OK)));
    if (iov.iov_len == 0) {
        return IRIS_OK;
    }
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
        return iris_i_fail(NULL, IRIS_ERR_PEER_LOST, "a rank left the meeting");
    }
    if (sent >= 0 || errno == EAGAIN || errno == EINTR) {
        return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                           "a rank fell silent in the meeting");
    }
    return iris_i_fail_fd(errno, "cannot send to a rank");
}

int iris_i_socket_is_readable(int sock)
{
    struct pollfd pollfd = {.fd = sock, .events = POLLIN};

    return poll(&pollfd, 1, 0) > 0;
}

int iris_i_socket_has_ended(int sock)
{
    ssize_t got;
    char byte;

    do {
        got = recv(sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    errno = got < 0 ? errno : 0;
    return got == 0 || (got < 0 && errno != EAGAIN);
}

int iris_i_socket_is_cut(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH ||
           error == ENETUNREACH || error == EHOSTDOWN || error == ENETDOWN;
}

const char *iris_i_socket_end(int error)
{
    return iris_i_socket_is_cut(error)
               ? "left the job: its host does not answer (is it down, or the "
                 "network between them?)"
               : "died";
}

/* Receives the bytes that are there, at most the rest of the message. A side that closes
 * with unread data resets the connection, but its earlier message can still be
 * read. */
static ssize_t receive_part(int sock, struct iris_socket_message *message)
{
    union iris_socket_control control = {.space = {0}};
    struct iovec iov = {.iov_base =
                            (unsigned char *)message->data + message->done,
                        .iov_len = message->bytes - message->done};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = CMSG_LEN(sizeof(int))};
    struct cmsghdr *one;
    ssize_t got;
    int resets = 0;

    do {
        got = recvmsg(sock, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (got < 0 &&
             (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
    one = got < 0 ? NULL : CMSG_FIRSTHDR(&header);
    if (one != NULL && one->cmsg_type == SCM_RIGHTS && message->fd < 0) {
        memcpy(&message->fd, CMSG_DATA(one), sizeof message->fd);
        message->fd = iris_i_fd_above_stdio(message->fd);
        message->is_lost |= message->fd < 0;
    }
    if (got > 0) {
        message->is_lost |= (header.msg_flags & MSG_CTRUNC) != 0;
        message->is_long |= (header.msg_flags & MSG_TRUNC) != 0;
        message->done += (size_t)got;
    }
    return got;
}

/* Whether a part of a message may follow later. */
static int is_stream(int sock)
{
    int type = 0;
    socklen_t bytes = sizeof type;

    getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &bytes);
    return type == SOCK_STREAM;
}

iris_status_t iris_i_socket_take(int sock, struct iris_socket_message *message)
{
    iris_status_t status = IRIS_OK;
    ssize_t got;

    do {
        got = receive_part(sock, message);
    } while (got > 0 && message->done < message->bytes && is_stream(sock));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return IRIS_ERR_STATE;
    }
    if (got <= 0) {
        message->error = got < 0 ? errno : 0;
        status =
            iris_i_fail(NULL, IRIS_ERR_PEER_LOST, "a rank left the meeting");
    } else if (message->is_lost) {
        status = iris_i_fail_fd(EMFILE, "cannot take a peer's descriptor");
    } else if (message->done != message->bytes || message->is_long) {
        status = iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                             "a message in the meeting that is not of %zu "
                             "bytes: do all ranks use the same version of "
                             "Iris?",
                             message->bytes);
    }
    if (status != IRIS_OK) {
        iris_i_fd_close(&message->fd);
    }
    return status;
}

iris_status_t iris_i_socket_receive(int sock, void *data, size_t bytes,
                                    struct iris_wait *wait, int *fd_p)
{
    struct iris_socket_message message = {
        .data = data, .bytes = bytes, .fd = -1};
    iris_status_t status, waited = IRIS_OK;

    wait->fd = sock;
    do {
        status = iris_i_socket_take(sock, &message);
    } while (status == IRIS_ERR_STATE &&
             (waited = iris_i_wait_tick(wait)) == IRIS_OK);
    status = status == IRIS_ERR_STATE ? waited : status;
    if (status == IRIS_OK) {
        *fd_p = message.fd;
    } else {
        iris_i_fd_close(&message.fd);
    }
    errno = message.error;
    return status;
}
