/* SPDX-License-Identifier: MIT
 *
 * Stream sockets between the ranks of a job.
 */
#include "config.h"

#include "control/control.h"

#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Time between looks at a connection. */
#define LOOK_NS (200 * IRIS_NS_PER_MS)

/* The system sends probes during silence, and gives up if the other side
 * acknowledges nothing. */
static void watch_silence(int sock)
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

/* Where a socket of this kind is bound: at the given address, or by default on
 * the loopback. A local socket gets its name from the system. */
static struct iris_address bind_address(enum iris_control_kind kind,
                                        const struct iris_address *given)
{
    const sa_family_t local = AF_UNIX;
    const struct sockaddr_in loopback = {.sin_family = AF_INET,
                                         .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct iris_address address = {.bytes = 0};

    if (kind != IRIS_CONTROL_TCP) {
        address.bytes = sizeof local;
        memcpy(address.data, &local, sizeof local);
    } else if (given->bytes == 0) {
        address.bytes = sizeof loopback;
        memcpy(address.data, &loopback, sizeof loopback);
    } else {
        address = *given;
    }
    return address;
}

int iris_i_stream_socket(enum iris_control_kind kind,
                         const struct iris_address *address)
{
    const struct iris_address own = bind_address(kind, address);
    sa_family_t family;
    int sock;

    memcpy(&family, own.data, sizeof family);
    sock = iris_i_fd_socket(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (sock >= 0 && kind == IRIS_CONTROL_TCP) {
        watch_silence(sock);
    }
    return sock;
}

iris_status_t iris_i_stream_listen(int sock, enum iris_control_kind kind,
                                   struct iris_address *address_p)
{
    struct iris_address own = bind_address(kind, address_p);
    socklen_t bytes = sizeof own.data;
    int on = 1;

    if (address_p->bytes != 0) {
        setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (bind(sock, (const struct sockaddr *)own.data, own.bytes) != 0 ||
        listen(sock, SOMAXCONN) != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "cannot listen for other ranks");
    }
    if (getsockname(sock, (struct sockaddr *)own.data, &bytes) != 0 ||
        bytes > sizeof own.data) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "a socket for other ranks has no address");
    }
    own.bytes = bytes;
    *address_p = own;
    return IRIS_OK;
}

int iris_i_dial_begin(struct iris_dial *dial, enum iris_control_kind kind,
                      const struct iris_address *address)
{
    *dial = (struct iris_dial){.sock = -1, .since_ns = iris_i_now_ns()};
    if (address->bytes == 0 || address->bytes > sizeof address->data) {
        return ECONNREFUSED;
    }
    dial->sock = iris_i_stream_socket(kind, address);
    if (dial->sock < 0) {
        return errno;
    }
    (void)fcntl(dial->sock, F_SETFL, O_NONBLOCK);
    return connect(dial->sock, (const struct sockaddr *)address->data,
                   address->bytes) == 0 ||
                   errno == EINPROGRESS || errno == EINTR
               ? 0
               : errno;
}

/* Whether the connection is made. */
static int check_connected(struct iris_dial *dial)
{
    struct pollfd pollfd = {.fd = dial->sock, .events = POLLOUT};
    socklen_t bytes = sizeof dial->error;

    if (poll(&pollfd, 1, 0) <= 0) {
        if (iris_i_now_ns() - dial->since_ns >
            IRIS_CONNECT_MS * IRIS_NS_PER_MS) {
            dial->error = ETIMEDOUT;
        }
        return 0;
    }
    if (getsockopt(dial->sock, SOL_SOCKET, SO_ERROR, &dial->error, &bytes) !=
        0) {
        dial->error = errno;
    }
    return dial->error == 0;
}

enum iris_proof_result iris_i_dial_step(struct iris_dial *dial,
                                        const struct iris_secret *key,
                                        const void *claims, size_t bytes)
{
    enum iris_proof_result result;

    if (!dial->is_connected && check_connected(dial)) {
        dial->is_connected = 1;
        dial->since_ns = iris_i_now_ns();
        if (iris_i_proof_begin(&dial->proof, IRIS_PROOF_CONNECTOR, dial->sock,
                               key, claims, bytes, 0) != IRIS_OK) {
            dial->error = EIO;
        }
    }
    if (!dial->is_connected || dial->error != 0) {
        return dial->error == 0 ? IRIS_PROOF_PENDING : IRIS_PROOF_FAILED;
    }
    result = iris_i_proof_step(&dial->proof);
    if (result == IRIS_PROOF_FAILED && dial->proof.why == IRIS_PROOF_GONE) {
        dial->error = dial->proof.error != 0 ? dial->proof.error : ECONNRESET;
    }
    return result;
}

/* TCP_USER_TIMEOUT also ends a connection whose receiver reads nothing, though
 * its system answers. */
void iris_i_stream_settle(int sock)
{
    const unsigned none = 0;

    (void)setsockopt(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof none);
}

int iris_i_stream_is_silent(int sock)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;

    return getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
           (info.tcpi_retransmits != 0 || info.tcpi_probes != 0);
}

/* The system counts packets and probes without an answer, and an answer resets
 * both counts. So a host answers that never had a count for the whole time. */
int iris_i_stream_answers(struct iris_stream_check *check, int sock)
{
    int64_t now = iris_i_now_ns();

    if (now < check->next_ns) {
        return 1;
    }
    check->next_ns = now + LOOK_NS;
    if (!iris_i_stream_is_silent(sock)) {
        check->silent_ns = 0;
        return 1;
    }
    check->silent_ns = check->silent_ns == 0 ? now : check->silent_ns;
    return now - check->silent_ns < (IRIS_CUT_MS - 1000) * IRIS_NS_PER_MS;
}
