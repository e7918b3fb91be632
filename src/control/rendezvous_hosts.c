/* SPDX-License-Identifier: MIT
 *
 * The rendezvous of ranks on several hosts.
 */
#include "config.h"

#include "control/rendezvous_hosts.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/shm.h"
#include "base/socket.h"
#include "control/rendezvous_common.h"
#include "control/segment.h"
#include "control/stream_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define KNOCK_MAGIC 0x6b6e6f63u

/* The first message of a connection to rank 0. Any process can send one. */
struct knock {
    uint32_t magic;
    char key[IRIS_KEY_BYTES];
};

int iris_i_hello_same_host(const struct iris_hello *a,
                           const struct iris_hello *b)
{
    return a->host == b->host;
}

int iris_i_hello_same_node(const struct iris_hello *a,
                           const struct iris_hello *b)
{
    return a->host == b->host && a->part == b->part;
}

int iris_i_hello_same_process(const struct iris_hello *a,
                              const struct iris_hello *b)
{
    return a->host == b->host && a->pid == b->pid;
}

/* ---- Connections between hosts ---- */

/* No call on it blocks forever, even if the other side has sent only a part. */
static void bound(int sock)
{
    const struct timeval patience = {.tv_sec = IRIS_SOCKET_PATIENCE_MS / 1000};

    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

iris_status_t iris_i_rendezvous_far_listen(struct iris_address *root_p,
                                           int *sock_p)
{
    int sock = iris_i_stream_socket(IRIS_CONTROL_TCP, root_p);
    struct iris_address all = *root_p;
    char why[IRIS_MESSAGE_BYTES];
    iris_status_t status;

    if (sock < 0) {
        return iris_i_fail_fd(errno, "cannot make a socket for other hosts");
    }
    iris_i_address_widen(&all);
    status = iris_i_stream_listen(sock, IRIS_CONTROL_TCP, &all);
    if (status != IRIS_OK) {
        close(sock);
        snprintf(why, sizeof why, "%s", iris_last_error());
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank 0 cannot listen for ranks of other hosts: "
                           "%.800s; set IRIS_ROOT to an address of rank 0's "
                           "host and a free port",
                           why);
    }
    iris_i_address_set_port(root_p, &all);
    *sock_p = sock;
    return IRIS_OK;
}

/* Whether a later connection may succeed: rank 0, or the route to it, may come
 * up. */
static int may_come(int ret)
{
    static const int later[] = {ECONNREFUSED, EAGAIN,       EINTR,
                                ETIMEDOUT,    EHOSTUNREACH, ENETUNREACH,
                                EINPROGRESS,  EALREADY,     ECONNRESET};

    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        if (ret == later[i]) {
            return 1;
        }
    }
    return 0;
}

iris_status_t
iris_i_rendezvous_far_connect(const struct iris_rendezvous *rendezvous,
                              struct iris_wait *wait)
{
    const struct iris_bootstrap *bootstrap = rendezvous->bootstrap;
    struct knock knock = {.magic = KNOCK_MAGIC};
    iris_status_t status = IRIS_OK;
    int ret = EAGAIN;

    bound(rendezvous->sock);
    while (status == IRIS_OK && may_come(ret)) {
        ret = iris_i_stream_connect(rendezvous->sock, &bootstrap->root);
        status = may_come(ret) ? iris_i_wait_tick(wait) : IRIS_OK;
    }
    if (status != IRIS_OK) {
        return status;
    }
    if (ret != 0 && ret != EISCONN) {
        return iris_i_fail_errno(NULL, IRIS_ERR_BOOTSTRAP, ret,
                                 "cannot connect to rank 0's host; check "
                                 "IRIS_ROOT");
    }
    memcpy(knock.key, bootstrap->key, sizeof knock.key);
    return iris_i_socket_send(rendezvous->sock, &knock, sizeof knock, -1);
}

int iris_i_rendezvous_watch(const struct iris_rendezvous *rendezvous)
{
    const int socks[] = {rendezvous->sock, rendezvous->far_sock};
    int watch = iris_i_fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));

    for (int i = 0; watch >= 0 && i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN};

        (void)epoll_ctl(watch, EPOLL_CTL_ADD, socks[i], &event);
    }
    return watch;
}

int iris_i_rendezvous_has_come(const struct iris_rendezvous *rendezvous)
{
    return iris_i_socket_is_readable(rendezvous->sock) ||
           (rendezvous->far_sock >= 0 &&
            iris_i_socket_is_readable(rendezvous->far_sock));
}

/* Tells a rank of another job the reason. Any other process gets a few
 * bytes. */
static iris_status_t turn_away(int sock)
{
    struct iris_verdict verdict = {.status = IRIS_OK};

    iris_i_rendezvous_judge(
        &verdict,
        iris_i_fail(
            NULL, IRIS_ERR_BOOTSTRAP,
            "rank 0 of another job listens at IRIS_ROOT; give each job its own "
            "port, and all ranks of a job the same IRIS_JOB_ID"));
    iris_i_rendezvous_send(sock, &verdict, -1);
    shutdown(sock, SHUT_WR);
    close(sock);
    return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                       "turned away a connection from another host that does "
                       "not know the job's key");
}

iris_status_t iris_i_rendezvous_accept_peer(struct iris_rendezvous *rendezvous,
                                            int *sock_p, pid_t *pid_p)
{
    struct knock knock = {0};
    int sock;

    if (rendezvous->far_sock < 0 ||
        iris_i_socket_is_readable(rendezvous->sock)) {
        return iris_i_socket_accept(rendezvous->sock, sock_p, pid_p);
    }
    sock = iris_i_fd_above_stdio(
        accept4(rendezvous->far_sock, NULL, NULL, SOCK_CLOEXEC));
    if (sock < 0) {
        return errno == EINTR || errno == ECONNABORTED
                   ? IRIS_ERR_STATE
                   : iris_i_fail_fd(errno, "cannot accept a rank");
    }
    bound(sock);
    if (recv(sock, &knock, sizeof knock, MSG_WAITALL) !=
            (ssize_t)sizeof knock ||
        knock.magic != KNOCK_MAGIC ||
        strncmp(knock.key, rendezvous->bootstrap->key, sizeof knock.key) != 0) {
        return turn_away(sock);
    }
    *sock_p = sock;
    *pid_p = 0;
    return IRIS_OK;
}

/* ---- Descriptors within a host ---- */

/* The ranks of this host. */
struct host {
    struct iris_rendezvous *rendezvous;
    int lowest;
    int num_missing;
};

static int is_here(const struct iris_rendezvous *rendezvous, int rank)
{
    return iris_i_hello_same_host(&rendezvous->hellos[rank],
                                  &rendezvous->hellos[rendezvous->rank]);
}

static void describe_host(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes, "the other ranks of this host");
}

static const struct iris_wait_type for_host = {.pace = IRIS_PACE_CONNECT,
                                               .describe = describe_host};

/* Receives a rank's number and its heap's descriptor. */
static iris_status_t receive_heap(struct iris_rendezvous *rendezvous, int sock,
                                  int *rank_p)
{
    struct iris_wait wait;
    iris_status_t status;
    int32_t rank = -1;
    int fd = -1;

    iris_i_rendezvous_wait_begin(rendezvous, &for_host, &wait);
    status = iris_i_socket_receive(sock, &rank, sizeof rank, &wait, &fd);
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    if (status == IRIS_OK && (rank < 0 || rank >= rendezvous->num_ranks ||
                              !is_here(rendezvous, rank) ||
                              rendezvous->hellos[rank].handle.fd >= 0)) {
        status = iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                             "rank %d sends no descriptor of this host", rank);
    }
    if (status != IRIS_OK) {
        iris_i_rendezvous_close(&fd);
        return status;
    }
    rendezvous->hellos[rank].handle.fd = fd;
    *rank_p = rank;
    return IRIS_OK;
}

static iris_status_t send_heap(int sock, int rank, int fd)
{
    const int32_t number = rank;

    return iris_i_socket_send(sock, &number, sizeof number, fd);
}

/* The lowest rank: takes every other rank's descriptor, then sends them to
 * all. */
static iris_status_t gather_host(struct host *host, int listener, int *socks)
{
    struct iris_rendezvous *rendezvous = host->rendezvous;
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_rendezvous_wait_begin(rendezvous, &for_host, &wait);
    wait.fd = listener;
    while (status == IRIS_OK && host->num_missing > 0) {
        int sock, rank;
        pid_t pid;

        status = iris_i_wait_tick(&wait);
        if (status != IRIS_OK || !iris_i_socket_is_readable(listener)) {
            continue;
        }
        status = iris_i_socket_accept(listener, &sock, &pid);
        if (status == IRIS_OK) {
            status = receive_heap(rendezvous, sock, &rank);
            if (status != IRIS_OK) {
                close(sock);
                break;
            }
            socks[rank] = sock;
            host->num_missing--;
        } else if (status == IRIS_ERR_STATE || status == IRIS_ERR_BOOTSTRAP) {
            status = IRIS_OK;
        }
    }
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    for (int to = 0; status == IRIS_OK && to < rendezvous->num_ranks; to++) {
        if (socks[to] < 0) {
            continue;
        }
        status =
            iris_i_socket_send(socks[to], &host->lowest, sizeof host->lowest,
                               rendezvous->segment->fd);
        for (int of = 0; status == IRIS_OK && of < rendezvous->num_ranks;
             of++) {
            if (of != to && is_here(rendezvous, of)) {
                status =
                    send_heap(socks[to], of, rendezvous->hellos[of].handle.fd);
            }
        }
    }
    return status;
}

static iris_status_t lead_host(struct host *host, const char *key)
{
    struct iris_rendezvous *rendezvous = host->rendezvous;
    int socks[rendezvous->num_ranks], listener = -1;
    iris_status_t status =
        iris_i_segment_create(rendezvous->num_ranks, &rendezvous->segment);

    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        socks[rank] = -1;
    }
    if (status == IRIS_OK && host->num_missing > 0) {
        status = iris_i_socket_listen(key, rendezvous->num_ranks, &listener);
    }
    if (status == IRIS_OK) {
        status = gather_host(host, listener, socks);
    }
    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        iris_i_rendezvous_close(&socks[rank]);
    }
    iris_i_rendezvous_close(&listener);
    return status;
}

static iris_status_t attach(struct iris_rendezvous *rendezvous, int sock)
{
    struct iris_wait wait;
    iris_status_t status;
    int32_t lowest;
    int fd = -1;

    iris_i_rendezvous_wait_begin(rendezvous, &for_host, &wait);
    status = iris_i_socket_receive(sock, &lowest, sizeof lowest, &wait, &fd);
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    if (status == IRIS_OK) {
        status = iris_i_segment_attach(fd, rendezvous->num_ranks,
                                       &rendezvous->segment);
    }
    if (status != IRIS_OK) {
        iris_i_rendezvous_close(&fd);
    }
    return status;
}

static iris_status_t follow_host(struct host *host, const char *key)
{
    struct iris_rendezvous *rendezvous = host->rendezvous;
    int own_fd = rendezvous->hellos[rendezvous->rank].handle.fd;
    iris_status_t status;
    struct iris_wait wait;
    int sock, rank;

    status = iris_i_socket_make(&sock);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_rendezvous_wait_begin(rendezvous, &for_host, &wait);
    status = iris_i_socket_connect(sock, key, &wait);
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    if (status == IRIS_OK) {
        status = send_heap(sock, rendezvous->rank, own_fd);
    }
    if (status == IRIS_OK) {
        status = attach(rendezvous, sock);
    }
    for (int i = 0; status == IRIS_OK && i < host->num_missing; i++) {
        status = receive_heap(rendezvous, sock, &rank);
    }
    close(sock);
    return status;
}

iris_status_t iris_i_rendezvous_meet_host(struct iris_rendezvous *rendezvous,
                                          int fd)
{
    struct host host = {.rendezvous = rendezvous, .lowest = -1};
    char key[IRIS_REFUSAL_KEY_BYTES];

    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        if (is_here(rendezvous, rank)) {
            host.lowest = host.lowest < 0 ? rank : host.lowest;
            host.num_missing += rank != rendezvous->rank;
        }
    }
    rendezvous->hellos[rendezvous->rank].handle.fd = fd;
    snprintf(key, sizeof key, "host-%d/%s", host.lowest,
             rendezvous->bootstrap->key);
    return host.lowest == rendezvous->rank ? lead_host(&host, key)
                                           : follow_host(&host, key);
}
