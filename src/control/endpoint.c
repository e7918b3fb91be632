/* SPDX-License-Identifier: MIT
 *
 * Messages with descriptors between ranks after the rendezvous.
 */
#include "config.h"

#include "control/control.h"

#include "base/base.h"
#include "base/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static iris_status_t listen_at(int sock, char name[IRIS_ENDPOINT_NAME_BYTES])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof address.sun_family;
    int on = 1;

    /* Binding without a name makes the system choose one in the abstract
     * namespace. */
    if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        bind(sock, (struct sockaddr *)&address, bytes) != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "cannot listen for peers' memory");
    }
    bytes = sizeof address;
    if (getsockname(sock, (struct sockaddr *)&address, &bytes) != 0 ||
        bytes <= offsetof(struct sockaddr_un, sun_path) + 1 ||
        bytes - offsetof(struct sockaddr_un, sun_path) >
            IRIS_ENDPOINT_NAME_BYTES) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "a local socket has no name of %d bytes",
                           IRIS_ENDPOINT_NAME_BYTES - 1);
    }
    memset(name, 0, IRIS_ENDPOINT_NAME_BYTES);
    memcpy(name, address.sun_path + 1,
           bytes - offsetof(struct sockaddr_un, sun_path) - 1);
    return IRIS_OK;
}

iris_status_t iris_i_endpoint_open(struct iris_endpoint **endpoint_p)
{
    struct iris_endpoint *endpoint = calloc(1, sizeof *endpoint);
    iris_status_t status;

    if (endpoint == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for an endpoint");
    }
    endpoint->sock =
        iris_i_fd_socket(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    status = endpoint->sock < 0 ? iris_i_fail_fd(errno, "cannot make a socket")
                                : listen_at(endpoint->sock, endpoint->name);
    if (status != IRIS_OK) {
        iris_i_endpoint_close(endpoint);
        return status;
    }
    *endpoint_p = endpoint;
    return IRIS_OK;
}

void iris_i_endpoint_close(struct iris_endpoint *endpoint)
{
    if (endpoint != NULL && endpoint->sock >= 0) {
        close(endpoint->sock);
    }
    free(endpoint);
}

int iris_i_endpoint_send(const struct iris_endpoint *endpoint,
                         const char name[IRIS_ENDPOINT_NAME_BYTES],
                         const void *data, size_t bytes, int fd)
{
    union iris_socket_control control;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strnlen(name, IRIS_ENDPOINT_NAME_BYTES);
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    struct msghdr header = {
        .msg_name = &address,
        .msg_namelen =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length),
        .msg_iov = &iov,
        .msg_iovlen = 1};

    memcpy(address.sun_path + 1, name, length);
    iris_i_socket_attach(&header, &control, fd);
    return sendmsg(endpoint->sock, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
               ? errno
               : 0;
}

/* A sender outside the job may send two descriptors, and they may fit. */
static void take_descriptors(const struct cmsghdr *one,
                             struct iris_letter *letter)
{
    size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int fd;

    for (size_t i = 0; i < count; i++) {
        memcpy(&fd, CMSG_DATA(one) + i * sizeof fd, sizeof fd);
        if (letter->fd < 0) {
            letter->fd = iris_i_fd_above_stdio(fd);
        } else {
            close(fd);
        }
    }
}

static void open_letter(struct msghdr *header, struct iris_letter *letter)
{
    struct cmsghdr *one;
    struct ucred sender;

    for (one = CMSG_FIRSTHDR(header); one != NULL;
         one = CMSG_NXTHDR(header, one)) {
        if (one->cmsg_type == SCM_CREDENTIALS) {
            memcpy(&sender, CMSG_DATA(one), sizeof sender);
            letter->pid = sender.pid;
            letter->uid = sender.uid;
        } else if (one->cmsg_type == SCM_RIGHTS) {
            take_descriptors(one, letter);
        }
    }
    letter->fd_dropped = (header->msg_flags & MSG_CTRUNC) != 0;
}

void iris_i_endpoint_take(const struct iris_endpoint *endpoint, void *data,
                          size_t bytes, struct iris_letter *letter_p)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {data, bytes};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.space};

    *letter_p = (struct iris_letter){.pid = -1, .uid = (uid_t)-1, .fd = -1};
    letter_p->bytes = recvmsg(endpoint->sock, &header,
                              MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    if (letter_p->bytes >= 0) {
        open_letter(&header, letter_p);
    }
}

iris_status_t iris_i_endpoint_wait(const struct iris_endpoint *endpoint,
                                   const struct iris_log *log, int timeout_ms)
{
    struct pollfd pollfd = {.fd = endpoint->sock, .events = POLLIN | POLLRDHUP};

    if (poll(&pollfd, 1, timeout_ms) > 0 &&
        (pollfd.revents & (POLLERR | POLLHUP | POLLRDHUP | POLLNVAL)) != 0) {
        return iris_i_fail(log, IRIS_ERR_SYSTEM,
                           "the socket by which peers share new memory with "
                           "this rank is closed: find the code that closes "
                           "other libraries' descriptors");
    }
    return IRIS_OK;
}
