/* SPDX-License-Identifier: MIT
 *
 * Stream sockets between the ranks of a job.
 */
#include "config.h"

#include "control/stream_socket.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/timing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The system sends probes during silence, and gives up if the other side
 * acknowledges nothing. */
static void watch(int sock)
{
    const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 1},
        {IPPROTO_TCP, TCP_KEEPINTVL, 1},
        {IPPROTO_TCP, TCP_KEEPCNT, IRIS_CUT_MS / 1000 - 1},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, IRIS_CUT_MS - 1000},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        (void)setsockopt(sock, options[i].level, options[i].name,
                         &options[i].value, sizeof options[i].value);
    }
}

int iris_i_stream_socket(enum iris_control_kind kind)
{
    int sock = iris_i_fd_above_stdio(
        socket(kind == IRIS_CONTROL_TCP ? AF_INET : AF_UNIX,
               SOCK_STREAM | SOCK_CLOEXEC, 0));

    if (sock >= 0 && kind == IRIS_CONTROL_TCP) {
        watch(sock);
    }
    return sock;
}

iris_status_t iris_i_stream_listen(int sock, enum iris_control_kind kind,
                                   struct iris_address *address_p)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int is_tcp = kind == IRIS_CONTROL_TCP, on = 1;
    struct sockaddr *address =
        is_tcp ? (struct sockaddr *)&loopback : (struct sockaddr *)&local;
    socklen_t bytes = is_tcp ? sizeof loopback : sizeof local.sun_family;

    if (is_tcp && address_p->bytes == sizeof loopback) {
        memcpy(&loopback, address_p->data, sizeof loopback);
        setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
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
