/* SPDX-License-Identifier: MIT
 *
 * Stream sockets between the ranks of a job.
 */
#include "config.h"

#include "control/stream_socket.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int iris_i_stream_socket(enum iris_control_kind kind)
{
    int on = 1, sock = iris_i_fd_above_stdio(
                    socket(kind == IRIS_CONTROL_TCP ? AF_INET : AF_UNIX,
                           SOCK_STREAM | SOCK_CLOEXEC, 0));

    if (sock >= 0 && kind == IRIS_CONTROL_TCP) {
        setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return sock;
}

iris_status_t iris_i_stream_listen(int sock, enum iris_control_kind kind,
                                   struct iris_address *address_p)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int is_tcp = kind == IRIS_CONTROL_TCP;
    struct sockaddr *address =
        is_tcp ? (struct sockaddr *)&loopback : (struct sockaddr *)&local;
    socklen_t bytes = is_tcp ? sizeof loopback : sizeof local.sun_family;

    if (bind(sock, address, bytes) != 0 || listen(sock, SOMAXCONN) != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "cannot listen for other ranks");
    }
    bytes = is_tcp ? sizeof loopback : sizeof local;
    if (getsockname(sock, address, &bytes) != 0 ||
        bytes > sizeof address_p->data) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "a socket for other ranks has no address");
    }
    memcpy(address_p->data, address, bytes);
    address_p->bytes = bytes;
    return IRIS_OK;
}

int iris_i_stream_connect(int sock, const struct iris_address *address)
{
    if (address->bytes > sizeof address->data) {
        return EINVAL;
    }
    return connect(sock, (const struct sockaddr *)address->data,
                   address->bytes) == 0
               ? 0
               : errno;
}
