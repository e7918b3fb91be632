/* SPDX-License-Identifier: MIT
 *
 * How ranks of different nodes connect. The rank with the higher number
 * connects, and first sends its number and the job's secret.
 */
#include "config.h"

#include "transport/socket_meet.h"

#include "base/fd.h"
#include "base/shm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Time that a new connection has to send its number. */
#define INTRODUCTION_MS 1000

struct introduction {
    int32_t rank;
    int32_t num_ranks;
    unsigned char secret[32];
};

static struct introduction
introduction_of(const struct iris_channel_params *params)
{
    struct introduction own = {.rank = params->log->rank,
                               .num_ranks = params->log->num_ranks};

    memcpy(own.secret, params->rendezvous->hellos[0].control_secret,
           sizeof own.secret);
    return own;
}

static iris_status_t connect_to(const struct iris_channel_params *params,
                                int rank, int *sock_p)
{
    const struct iris_hello *hello = &params->rendezvous->hellos[rank];
    struct introduction own = introduction_of(params);
    int ret;

    *sock_p = iris_i_stream_socket(
        (enum iris_control_kind)params->rendezvous->hellos[0].control,
        &hello->far_address);
    if (*sock_p < 0) {
        return iris_i_fail_fd(errno, "cannot make a socket for other nodes");
    }
    ret = iris_i_stream_connect(*sock_p, &hello->far_address);
    if (ret == 0 &&
        send(*sock_p, &own, sizeof own, MSG_NOSIGNAL) != (ssize_t)sizeof own) {
        ret = errno;
    }
    return ret == 0 ? IRIS_OK
                    : iris_i_fail_errno(params->log, IRIS_ERR_SYSTEM, ret,
                                        "cannot connect to rank %d, which is "
                                        "on another node",
                                        rank);
}

/* A rank waits for connections of others. */
struct meeting {
    const struct iris_channel_params *params;
    int *socks;
};

static int is_missing(const struct meeting *meeting, int rank)
{
    const struct iris_channel_params *params = meeting->params;

    return meeting->socks[rank] < 0 && params->is_far(params->arg, rank);
}

/* The first rank that has not connected; -1: all have. */
static int first_missing(const struct meeting *meeting)
{
    for (int rank = 0; rank < meeting->params->log->num_ranks; rank++) {
        if (is_missing(meeting, rank)) {
            return rank;
        }
    }
    return -1;
}

/* Accepts a connection if it belongs to the job; refuses strangers. */
static int accept_one(const struct meeting *meeting)
{
    const struct timeval patience = {.tv_sec = INTRODUCTION_MS / 1000};
    struct introduction theirs, own = introduction_of(meeting->params);
    int sock = iris_i_fd_above_stdio(
        accept4(meeting->params->listener, NULL, NULL, SOCK_CLOEXEC));

    if (sock < 0) {
        return 0;
    }
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (recv(sock, &theirs, sizeof theirs, MSG_WAITALL) ==
            (ssize_t)sizeof theirs &&
        memcmp(theirs.secret, own.secret, sizeof own.secret) == 0 &&
        theirs.rank > own.rank && theirs.rank < own.num_ranks &&
        is_missing(meeting, theirs.rank)) {
        meeting->socks[theirs.rank] = sock;
        return 1;
    }
    close(sock);
    return 0;
}

static void describe(void *arg, char *text, size_t bytes)
{
    snprintf(text, bytes, "rank %d, on another node, to connect",
             first_missing(arg));
}

iris_status_t iris_i_socket_meet(const struct iris_channel_params *params,
                                 int *socks)
{
    static const struct iris_wait_type for_peers = {.pace = IRIS_PACE_SOCKET,
                                                    .describe = describe};
    struct meeting meeting = {params, socks};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    for (int rank = 0; rank < params->log->num_ranks; rank++) {
        socks[rank] = -1;
    }
    for (int rank = 0; status == IRIS_OK && rank < params->log->rank; rank++) {
        if (is_missing(&meeting, rank)) {
            status = connect_to(params, rank, &socks[rank]);
        }
    }
    iris_i_wait_begin(&wait, &for_peers, params->waiter, "iris_init", &meeting);
    wait.fd = params->listener;
    while (status == IRIS_OK && first_missing(&meeting) >= 0) {
        status = accept_one(&meeting) ? IRIS_OK : iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    return status;
}
