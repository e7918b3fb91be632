/* SPDX-License-Identifier: MIT
 *
 * The rendezvous of ranks on several hosts.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"
#include "base/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Connections to rank 0 that have no proof or no hello yet, besides one of each
 * rank. */
#define STRANGERS 64

/* ---- Connections between hosts ---- */

iris_status_t iris_i_rendezvous_far_listen(struct iris_address *root_p,
                                           int *sock_p)
{
    int sock = iris_i_stream_socket(IRIS_CONTROL_TCP, root_p);
    struct iris_address own = *root_p;
    char why[IRIS_MESSAGE_BYTES];
    iris_status_t status;

    if (sock < 0) {
        return iris_i_fail_fd(errno, "cannot make a socket for other hosts");
    }
    if (!iris_i_address_is_own(&own)) {
        iris_i_address_widen(&own);
    }
    status = iris_i_stream_listen(sock, IRIS_CONTROL_TCP, &own);
    if (status != IRIS_OK) {
        close(sock);
        snprintf(why, sizeof why, "%s", iris_last_error());
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank 0 cannot listen for ranks of other hosts: "
                           "%.800s; set IRIS_ROOT to an address of rank 0's "
                           "host and a free port",
                           why);
    }
    iris_i_address_set_port(root_p, &own);
    *sock_p = sock;
    return IRIS_OK;
}

/* Whether a later connection may succeed: rank 0, or the route to it, may come
 * up. */
static int may_come(int ret)
{
    return iris_i_socket_is_cut(ret) || ret == ECONNREFUSED ||
           ret == ECONNRESET || ret == EPIPE || ret == EAGAIN;
}

static iris_status_t fail_proof(const struct iris_proof *proof)
{
    return iris_i_fail(
        NULL, IRIS_ERR_BOOTSTRAP,
        proof->why == IRIS_PROOF_WRONG
            ? "rank 0 of another job listens at IRIS_ROOT, or it %s; give each "
              "job its own port, and all ranks of a job the same IRIS_JOB_ID "
              "and IRIS_JOB_SECRET"
            : "the process that listens at IRIS_ROOT %s",
        iris_i_proof_reason(proof));
}

/* One connection and its proof. IRIS_ERR_STATE: it may succeed later. */
static iris_status_t dial_root(struct iris_rendezvous *rendezvous,
                               struct iris_wait *wait)
{
    const struct iris_rank_claims claims = {.rank = rendezvous->rank,
                                            .num_ranks = rendezvous->num_ranks,
                                            .host = iris_i_host_id()};
    enum iris_proof_result result = IRIS_PROOF_PENDING;
    iris_status_t status = IRIS_OK;
    struct iris_secret key;
    struct iris_dial dial;

    iris_i_secret_derive(&rendezvous->bootstrap->secret, "rendezvous", &key);
    iris_i_rendezvous_close(&rendezvous->sock);
    dial.error = iris_i_dial_begin(&dial, IRIS_CONTROL_TCP,
                                   &rendezvous->bootstrap->root);
    while (status == IRIS_OK && dial.error == 0 &&
           result == IRIS_PROOF_PENDING) {
        result = iris_i_dial_step(&dial, &key, &claims, sizeof claims);
        if (result == IRIS_PROOF_PENDING) {
            wait->fd = dial.is_connected ? dial.sock : -1;
            status = iris_i_wait_tick(wait);
        }
    }
    wait->fd = -1;
    if (status == IRIS_OK && result == IRIS_PROOF_PROVEN) {
        (void)fcntl(dial.sock, F_SETFL, 0);
        rendezvous->sock = dial.sock;
        return IRIS_OK;
    }
    iris_i_rendezvous_close(&dial.sock);
    if (status != IRIS_OK || may_come(dial.error)) {
        return status == IRIS_OK ? IRIS_ERR_STATE : status;
    }
    if (dial.error == EMFILE || dial.error == ENFILE) {
        return iris_i_fail_fd(dial.error, "cannot make a socket");
    }
    return dial.error == 0
               ? fail_proof(&dial.proof)
               : iris_i_fail_errno(NULL, IRIS_ERR_BOOTSTRAP, dial.error,
                                   "cannot connect to rank 0's host; check "
                                   "IRIS_ROOT");
}

iris_status_t iris_i_rendezvous_far_connect(struct iris_rendezvous *rendezvous,
                                            struct iris_wait *wait)
{
    const struct timeval patience = {.tv_sec = IRIS_SOCKET_PATIENCE_MS / 1000};
    iris_status_t status = dial_root(rendezvous, wait);

    while (status == IRIS_ERR_STATE) {
        status = iris_i_wait_tick(wait);
        status = status == IRIS_OK ? dial_root(rendezvous, wait) : status;
    }
    setsockopt(rendezvous->sock, SOL_SOCKET, SO_SNDTIMEO, &patience,
               sizeof patience);
    return status;
}

iris_status_t
iris_i_rendezvous_open_arrivals(struct iris_rendezvous *rendezvous)
{
    struct iris_secret key;

    iris_i_secret_derive(&rendezvous->bootstrap->secret, "rendezvous", &key);
    return iris_i_arrivals_open(
        &rendezvous->arrivals, rendezvous->sock, rendezvous->far_sock, &key,
        sizeof(struct iris_hello), rendezvous->num_ranks + STRANGERS);
}

/* ---- Descriptors within a node ---- */

/* The ranks of this node, on a host without rank 0. */
struct host {
    struct iris_rendezvous *rendezvous;
    int lowest;
    int num_missing;
};

static int is_here(const struct iris_rendezvous *rendezvous, int rank)
{
    return iris_i_hello_same_node(&rendezvous->hellos[rank],
                                  &rendezvous->hellos[rendezvous->rank]);
}

static void describe_host(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes, "the other ranks of this host");
}

static const struct iris_wait_type for_host = {.pace = IRIS_PACE_CONNECT,
                                               .describe = describe_host};

/* Notes a rank's descriptor. */
static iris_status_t keep_heap(struct iris_rendezvous *rendezvous, int rank,
                               int fd)
{
    if (rank < 0 || rank >= rendezvous->num_ranks ||
        !is_here(rendezvous, rank) || rendezvous->hellos[rank].handle.fd >= 0) {
        iris_i_rendezvous_close(&fd);
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank %d sends no descriptor of this host", rank);
    }
    rendezvous->hellos[rank].handle.fd = fd;
    return IRIS_OK;
}

/* Receives a rank's number and its heap's descriptor. */
static iris_status_t receive_heap(struct iris_rendezvous *rendezvous, int sock)
{
    struct iris_wait wait;
    iris_status_t status;
    int32_t rank = -1;
    int fd = -1;

    iris_i_rendezvous_wait_begin(rendezvous, &for_host, &wait);
    status = iris_i_socket_receive(sock, &rank, sizeof rank, &wait, &fd);
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    return status == IRIS_OK ? keep_heap(rendezvous, rank, fd) : status;
}

static iris_status_t send_heap(int sock, int rank, int fd)
{
    const int32_t number = rank;

    return iris_i_socket_send(sock, &number, sizeof number, fd);
}

/* Takes the number and the descriptor of one rank that has come, if any. */
static iris_status_t take_follower(struct host *host,
                                   struct iris_arrivals *arrivals, int *socks)
{
    struct iris_arrival *arrival;
    iris_status_t status = iris_i_arrivals_take(arrivals, &arrival);
    int32_t rank;

    if (arrival == NULL) {
        return status == IRIS_ERR_BOOTSTRAP ? IRIS_OK : status;
    }
    memcpy(&rank, arrival->data, sizeof rank);
    if (status == IRIS_OK) {
        status = keep_heap(host->rendezvous, rank, arrival->message.fd);
    }
    if (status == IRIS_OK) {
        socks[rank] = arrival->sock;
        host->num_missing--;
    } else {
        close(arrival->sock);
    }
    free(arrival);
    return status;
}

/* The lowest rank: takes every other rank's descriptor, then sends them to
 * all. */
static iris_status_t gather_host(struct host *host, int listener, int *socks)
{
    struct iris_rendezvous *rendezvous = host->rendezvous;
    struct iris_arrivals arrivals;
    struct iris_wait wait;
    iris_status_t status =
        iris_i_arrivals_open(&arrivals, listener, -1, NULL, sizeof(int32_t),
                             rendezvous->num_ranks + STRANGERS);

    iris_i_rendezvous_wait_begin(rendezvous, &for_host, &wait);
    wait.fd = arrivals.poll;
    while (status == IRIS_OK && host->num_missing > 0) {
        status = iris_i_wait_tick(&wait);
        if (status == IRIS_OK) {
            status = take_follower(host, &arrivals, socks);
        }
    }
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    iris_i_arrivals_close(&arrivals);
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

static iris_status_t lead_host(struct host *host, const char *name)
{
    struct iris_rendezvous *rendezvous = host->rendezvous;
    int socks[rendezvous->num_ranks], listener = -1;
    iris_status_t status =
        iris_i_segment_create(rendezvous->num_ranks, &rendezvous->segment);

    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        socks[rank] = -1;
    }
    if (status == IRIS_OK && host->num_missing > 0) {
        status = iris_i_socket_listen(name, rendezvous->num_ranks, &listener);
    }
    if (status == IRIS_OK && host->num_missing > 0) {
        status = gather_host(host, listener, socks);
    }
    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        iris_i_rendezvous_close(&socks[rank]);
    }
    iris_i_rendezvous_close(&listener);
    return status;
}

static iris_status_t attach_segment(struct iris_rendezvous *rendezvous,
                                    int sock)
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

static iris_status_t follow_host(struct host *host, const char *name)
{
    struct iris_rendezvous *rendezvous = host->rendezvous;
    int own_fd = rendezvous->hellos[rendezvous->rank].handle.fd;
    iris_status_t status;
    struct iris_wait wait;
    int sock;

    status = iris_i_socket_make(&sock);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_rendezvous_wait_begin(rendezvous, &for_host, &wait);
    status = iris_i_socket_connect(sock, name, &wait);
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    if (status == IRIS_OK) {
        status = send_heap(sock, rendezvous->rank, own_fd);
    }
    if (status == IRIS_OK) {
        status = attach_segment(rendezvous, sock);
    }
    for (int i = 0; status == IRIS_OK && i < host->num_missing; i++) {
        status = receive_heap(rendezvous, sock);
    }
    close(sock);
    return status;
}

iris_status_t iris_i_rendezvous_meet_host(struct iris_rendezvous *rendezvous,
                                          int fd)
{
    struct host host = {.rendezvous = rendezvous, .lowest = -1};
    char name[IRIS_SECRET_NAME_BYTES], label[32];

    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        if (is_here(rendezvous, rank)) {
            host.lowest = host.lowest < 0 ? rank : host.lowest;
            host.num_missing += rank != rendezvous->rank;
        }
    }
    rendezvous->hellos[rendezvous->rank].handle.fd = fd;
    snprintf(label, sizeof label, "host %d", host.lowest);
    iris_i_secret_name(&rendezvous->bootstrap->secret, label, name);
    return host.lowest == rendezvous->rank ? lead_host(&host, name)
                                           : follow_host(&host, name);
}
