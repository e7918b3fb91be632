/* SPDX-License-Identifier: MIT
 *
 * The rendezvous, on the ranks other than 0:
 *
 *   peer -> 0  hello (+ heap descriptor);   0 -> peer  heard
 *   0 -> peer  verdict (+ control descriptor), then every rank's hello
 *   peer -> 0  its own status;   0 -> peer  the joint verdict
 *
 * Ranks of other hosts meet rank 0 by TCP, and pass descriptors among themselves
 * by local sockets.
 */
#include "config.h"

#include "control/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
    iris_i_fd_close(&rendezvous->sock);
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
    iris_i_fd_close(&dial.sock);
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

/* Connects rendezvous->sock to rank 0; both sides prove the job's secret, and
 * this rank its claims. Tries again until rank 0 listens and has proven itself,
 * or the wait has to end. */
static iris_status_t connect_far(struct iris_rendezvous *rendezvous,
                                 struct iris_wait *wait)
{
    iris_status_t status, waited = IRIS_OK;

    do {
        status = dial_root(rendezvous, wait);
    } while (status == IRIS_ERR_STATE &&
             (waited = iris_i_wait_tick(wait)) == IRIS_OK);
    status = status == IRIS_ERR_STATE ? waited : status;
    iris_i_socket_bound_sends(rendezvous->sock);
    return status;
}

static iris_status_t open_arrivals(struct iris_rendezvous *rendezvous)
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
        iris_i_fd_close(&fd);
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank %d sends no descriptor of this host", rank);
    }
    rendezvous->hellos[rank].handle.fd = fd;
    return IRIS_OK;
}

/* Receives a rank's number and a descriptor. */
static iris_status_t receive_number(struct iris_rendezvous *rendezvous,
                                    int sock, int32_t *rank_p, int *fd_p)
{
    struct iris_wait wait;
    iris_status_t status;

    iris_i_rendezvous_wait_begin(rendezvous, &for_host, &wait);
    status = iris_i_socket_receive(sock, rank_p, sizeof *rank_p, &wait, fd_p);
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    return status;
}

/* That of its heap. */
static iris_status_t receive_heap(struct iris_rendezvous *rendezvous, int sock)
{
    int32_t rank = -1;
    int fd = -1;
    iris_status_t status = receive_number(rendezvous, sock, &rank, &fd);

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
        iris_i_fd_close(&socks[rank]);
    }
    iris_i_fd_close(&listener);
    return status;
}

static iris_status_t attach_segment(struct iris_rendezvous *rendezvous,
                                    int sock)
{
    int32_t lowest;
    int fd = -1;
    iris_status_t status = receive_number(rendezvous, sock, &lowest, &fd);

    if (status == IRIS_OK) {
        status = iris_i_segment_attach(fd, rendezvous->num_ranks,
                                       &rendezvous->segment);
    }
    if (status != IRIS_OK) {
        iris_i_fd_close(&fd);
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

/* For ranks of a host without rank 0. The lowest of them makes the host's
 * control segment, and sends each of the others its descriptor and those of
 * their heaps. `fd` is that of this rank's heap, or -1. */
static iris_status_t meet_host(struct iris_rendezvous *rendezvous, int fd)
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

/* ---- Hellos and verdicts ---- */

/* Threads of rank 0's process share its mapping; other processes make their
 * own. */
static iris_status_t take_control(struct iris_rendezvous *rendezvous,
                                  const struct iris_verdict *verdict, int fd)
{
    iris_status_t status;

    if (rendezvous->is_far) { /* meet_host() gets it */
        return IRIS_OK;
    }
    if (verdict->pid == getpid()) {
        rendezvous->segment = (struct iris_table *)(uintptr_t)verdict->control;
        return IRIS_OK;
    }
    if (fd < 0) {
        return iris_i_fail(NULL, IRIS_ERR_LIMIT,
                           "the control segment's descriptor did not arrive");
    }
    status =
        iris_i_segment_attach(fd, rendezvous->num_ranks, &rendezvous->segment);
    if (status != IRIS_OK) {
        close(fd);
    }
    return status;
}

static void describe_root(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes,
             "rank 0, which waits for other ranks or is late itself");
}

static const struct iris_wait_type for_verdict = {.pace = IRIS_PACE_SOCKET,
                                                  .describe = describe_root};

/* The joint verdict after a loss, which may be rank 0's: takes a moment. */
static const struct iris_wait_type for_joint = {.pace = IRIS_PACE_SOCKET,
                                                .describe = describe_root};

/* Receives from rank 0, and names rank 0 if it is the cause of a failure. Rank
 * 0 waits for ranks as long as this rank does. So this rank gives it a little
 * more time, to hear which ranks are missing. */
static iris_status_t receive_root(struct iris_rendezvous *rendezvous,
                                  const struct iris_wait_type *type, void *data,
                                  size_t bytes, int *fd_p)
{
    int64_t moment_ns = iris_i_deadline(IRIS_VERDICT_MS);
    struct iris_wait wait;
    iris_status_t status;
    int error, pid;

    iris_i_rendezvous_wait_begin(rendezvous, type, &wait);
    if (wait.deadline_ns != INT64_MAX) {
        wait.deadline_ns += IRIS_VERDICT_MS * IRIS_NS_PER_MS;
    }
    if (type == &for_joint && moment_ns < wait.deadline_ns) {
        wait.deadline_ns = moment_ns;
    }
    status = iris_i_socket_receive(rendezvous->sock, data, bytes, &wait, fd_p);
    error = rendezvous->end != 0 ? rendezvous->end - 1 : errno;
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    if (status == IRIS_ERR_PEER_LOST) {
        return iris_i_fail(NULL, status, "rank 0 %s during init (job \"%s\")",
                           iris_i_socket_end(error),
                           rendezvous->bootstrap->job);
    }
    if (status != IRIS_ERR_TIMEOUT) {
        return status;
    }
    pid = iris_i_socket_peer(rendezvous->sock);
    return iris_i_fail(NULL, status, "rank 0 %s (job \"%s\", IRIS_TIMEOUT_MS)",
                       pid > 0 && iris_i_process_is_stopped(pid)
                           ? "is stopped by a signal or a debugger"
                           : "does not answer, though its host does; is it "
                             "stopped?",
                       rendezvous->bootstrap->job);
}

/* Space for every rank's hello; NULL: no memory. */
static struct iris_hello *make_hellos(int num_ranks)
{
    struct iris_hello *hellos = calloc((size_t)num_ranks, sizeof *hellos);

    for (int rank = 0; hellos != NULL && rank < num_ranks; rank++) {
        hellos[rank].handle.fd = -1;
    }
    return hellos;
}

static iris_status_t fail_memory(int num_ranks)
{
    return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %d ranks",
                       num_ranks);
}

/* Receives every hello, even if there is no memory or a descriptor gets lost:
 * otherwise they would be taken for the next message. */
static void receive_hellos(struct iris_rendezvous *rendezvous,
                           struct iris_verdict *verdict)
{
    rendezvous->hellos = make_hellos(rendezvous->num_ranks);
    if (rendezvous->hellos == NULL) {
        iris_i_rendezvous_judge(verdict, fail_memory(rendezvous->num_ranks));
    }
    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        struct iris_hello hello;
        iris_status_t status;
        int fd = -1;

        status =
            receive_root(rendezvous, &for_verdict, &hello, sizeof hello, &fd);
        iris_i_rendezvous_judge(verdict, status);
        if (status != IRIS_OK && status != IRIS_ERR_LIMIT) {
            return;
        }
        if (status != IRIS_OK || rendezvous->hellos == NULL) {
            iris_i_fd_close(&fd);
            continue;
        }
        rendezvous->hellos[rank] = hello;
        rendezvous->hellos[rank].handle.fd = fd;
    }
}

iris_status_t iris_i_rendezvous_hear(void *arg)
{
    struct iris_rendezvous *rendezvous = arg;
    struct iris_verdict ending = {.status = IRIS_OK};
    iris_status_t status;
    int fd = -1;

    if (!iris_i_socket_is_readable(rendezvous->sock)) {
        return IRIS_OK;
    }
    rendezvous->waiter.fate = NULL;
    status =
        receive_root(rendezvous, &for_verdict, &ending, sizeof ending, &fd);
    iris_i_fd_close(&fd);
    ending.status = IRIS_ERR_PEER_LOST;
    return status == IRIS_OK ? iris_i_rendezvous_accept(&ending) : status;
}

/* If all ranks are threads, they read rank 0's hellos: it would take seconds
 * for a thousand ranks to receive a thousand hellos each. `heap_fd` is this
 * rank's, or -1. */
static void take_hellos(struct iris_rendezvous *rendezvous,
                        const struct iris_verdict *verdict, int *heap_fd,
                        struct iris_verdict *own)
{
    if (verdict->pid == getpid() && verdict->hellos != 0 &&
        rendezvous->bootstrap->failed != NULL) {
        rendezvous->hellos = (struct iris_hello *)(uintptr_t)verdict->hellos;
        rendezvous->has_shared_hellos = 1;
        return;
    }
    receive_hellos(rendezvous, own);
    if (rendezvous->is_far && own->status == IRIS_OK) {
        int fd = *heap_fd;

        *heap_fd = -1;
        rendezvous->waiter.fate = iris_i_rendezvous_hear;
        rendezvous->waiter.arg = rendezvous;
        iris_i_rendezvous_judge(own, meet_host(rendezvous, fd));
        rendezvous->waiter.fate = NULL;
    }
}

static iris_status_t agree_as_peer(struct iris_rendezvous *rendezvous,
                                   const struct iris_verdict *own)
{
    struct iris_verdict joint = *own;
    iris_status_t status;
    int fd = -1;

    if (own->status != IRIS_OK && rendezvous->hellos != NULL) {
        joint.stopped = iris_i_rendezvous_find_stopped(rendezvous) + 1;
    }
    /* The system tells an error once, and would tell it to the send. */
    if (iris_i_socket_has_ended(rendezvous->sock)) {
        rendezvous->end = 1 + errno;
    }
    iris_i_rendezvous_send(rendezvous->sock, &joint, -1);
    do {
        iris_i_fd_close(&fd);
        status = receive_root(rendezvous,
                              own->status == IRIS_ERR_PEER_LOST ? &for_joint
                                                                : &for_verdict,
                              &joint, sizeof joint, &fd);
    } while (status == IRIS_OK && joint.status == IRIS_VERDICT_ENDING);
    iris_i_fd_close(&fd);
    /* Rank 0 knows the cause of a loss or of a long wait, or is the one. */
    if (own->status != IRIS_OK && own->status != IRIS_ERR_TIMEOUT &&
        (own->status != IRIS_ERR_PEER_LOST || status != IRIS_OK)) {
        return iris_i_rendezvous_accept(own);
    }
    return status == IRIS_OK ? iris_i_rendezvous_accept(&joint) : status;
}

/* ---- A rank 0 that cannot have its name ---- */

/* If another process has the name, rank 0 tells that under another name. IRIS_OK
 * if it does not, else the status that it sends. */
static iris_status_t hear_refusal(void *arg)
{
    const struct iris_rendezvous *rendezvous = arg;
    struct iris_verdict verdict = {.status = IRIS_OK};
    char name[IRIS_SECRET_NAME_BYTES];
    struct iris_wait wait;
    iris_status_t status;
    int sock, fd = -1;

    if (rendezvous->bootstrap->failed != NULL ||
        iris_i_socket_make(&sock) != IRIS_OK) {
        return IRIS_OK;
    }
    iris_i_secret_name(&rendezvous->bootstrap->secret, "refusal", name);
    status = iris_i_socket_try_connect(sock, name);
    if (status == IRIS_OK) {
        iris_i_wait_moment(&wait, IRIS_SOCKET_PATIENCE_MS);
        status =
            iris_i_socket_receive(sock, &verdict, sizeof verdict, &wait, &fd);
    }
    close(sock);
    iris_i_fd_close(&fd);
    return status == IRIS_OK && verdict.status < 0
               ? iris_i_rendezvous_accept(&verdict)
               : IRIS_OK;
}

static iris_status_t root_fate(void *arg)
{
    iris_status_t status = iris_i_rendezvous_check_failed(arg);

    return status == IRIS_OK ? hear_refusal(arg) : status;
}

static void describe_no_root(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes, "rank 0, which has not come");
}

static iris_status_t fail_no_root(const struct iris_wait *wait)
{
    const struct iris_rendezvous *rendezvous = wait->arg;

    return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                       "rank 0 of job \"%s\" has not come before the deadline "
                       "(IRIS_TIMEOUT_MS); was it started, with the same "
                       "IRIS_JOB_ID and IRIS_JOB_SECRET?",
                       rendezvous->bootstrap->job);
}

/* The name of rank 0's local socket. */
static void name_socket(const struct iris_rendezvous *rendezvous,
                        char name[IRIS_SECRET_NAME_BYTES])
{
    iris_i_secret_name(&rendezvous->bootstrap->secret, "rank 0", name);
}

/* Connects to rank 0, which may start much later. */
static iris_status_t connect_root(struct iris_rendezvous *rendezvous)
{
    static const struct iris_wait_type for_root = {.pace = IRIS_PACE_CONNECT,
                                                   .fate = root_fate,
                                                   .describe = describe_no_root,
                                                   .late = fail_no_root};
    char name[IRIS_SECRET_NAME_BYTES];
    struct iris_wait wait;
    iris_status_t status;

    name_socket(rendezvous, name);
    iris_i_rendezvous_wait_begin(rendezvous, &for_root, &wait);
    status = rendezvous->is_far
                 ? connect_far(rendezvous, &wait)
                 : iris_i_socket_connect(rendezvous->sock, name, &wait);
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    return status;
}

/* Sends the hello and receives the verdict, with its descriptor in *fd_p.
 * IRIS_ERR_LIMIT may mean that the verdict is good and only the descriptor was
 * lost: its status tells. */
static iris_status_t say_hello(struct iris_rendezvous *rendezvous,
                               const struct iris_hello *own,
                               struct iris_verdict *verdict_p, int *fd_p)
{
    static const struct iris_wait_type for_word = {.pace = IRIS_PACE_SOCKET,
                                                   .fate = hear_refusal,
                                                   .describe = describe_root};
    const struct iris_wait_type *type = &for_word;
    iris_status_t status = connect_root(rendezvous);

    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_socket_send(rendezvous->sock, own, sizeof *own,
                                rendezvous->is_far ? -1 : own->handle.fd);
    if (status != IRIS_OK && status != IRIS_ERR_PEER_LOST) {
        return status;
    }
    /* Rank 0 may have refused this rank before receiving from it; then it sends
     * the reason. Otherwise it confirms at once that it has heard this rank,
     * without a descriptor. */
    do {
        iris_i_fd_close(fd_p);
        status =
            receive_root(rendezvous, type, verdict_p, sizeof *verdict_p, fd_p);
        type = &for_verdict;
    } while (status == IRIS_OK && verdict_p->status == IRIS_VERDICT_HEARD);
    return status;
}

static iris_status_t join_as_peer(struct iris_rendezvous *rendezvous,
                                  struct iris_hello *hello)
{
    struct iris_verdict verdict = {.status = IRIS_ERR_SYSTEM};
    struct iris_verdict own = {.status = IRIS_OK};
    iris_status_t status;
    int fd = -1;

    if (rendezvous->bootstrap->failed != NULL) { /* ranks are threads */
        iris_i_wait_pause();
    }
    status = say_hello(rendezvous, hello, &verdict, &fd);
    if (!rendezvous->is_far) {
        iris_i_fd_close(&hello->handle.fd);
    }
    if (status == IRIS_OK) {
        status = iris_i_rendezvous_accept(&verdict);
    }
    iris_i_wait_pause();
    if (status != IRIS_OK &&
        (status != IRIS_ERR_LIMIT || verdict.status != IRIS_OK)) {
        iris_i_fd_close(&fd);
        return status;
    }
    /* From here on rank 0 expects this rank's status: tell it of an error. */
    iris_i_rendezvous_judge(&own, status);
    if (status == IRIS_OK) {
        iris_i_rendezvous_judge(&own, take_control(rendezvous, &verdict, fd));
    }
    take_hellos(rendezvous, &verdict, &hello->handle.fd, &own);
    return own.status == IRIS_OK ? IRIS_OK : agree_as_peer(rendezvous, &own);
}

/* Ranks may have used each other's memory until now. So no wait check has ended
 * this thread's waits since all had come. */
static void leave_rendezvous(struct iris_rendezvous *rendezvous)
{
    iris_i_wait_resume();
    if (rendezvous->has_shared_hellos) {
        rendezvous->hellos = NULL;
    }
    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        if (rendezvous->hellos != NULL) {
            iris_i_fd_close(&rendezvous->hellos[rank].handle.fd);
        }
        if (rendezvous->socks != NULL) {
            iris_i_fd_close(&rendezvous->socks[rank]);
        }
    }
    iris_i_arrivals_close(&rendezvous->arrivals);
    iris_i_fd_close(&rendezvous->sock);
    iris_i_fd_close(&rendezvous->spare);
    iris_i_fd_close(&rendezvous->far_sock);
    free(rendezvous->hellos);
    free(rendezvous->socks);
}

/* Rank 0 listens from now on, so an early rank need not try again. */
static iris_status_t open_sockets(struct iris_rendezvous *rendezvous)
{
    char name[IRIS_SECRET_NAME_BYTES], why[IRIS_MESSAGE_BYTES];
    struct iris_address root;
    iris_status_t status;

    if (rendezvous->num_ranks == 1) {
        return IRIS_OK;
    }
    if (rendezvous->rank != 0) {
        rendezvous->is_far =
            rendezvous->bootstrap->root.bytes != 0 &&
            !iris_i_address_is_own(&rendezvous->bootstrap->root);
        if (!rendezvous->is_far) {
            return iris_i_socket_make(&rendezvous->sock);
        }
        /* Reserves a descriptor. */
        rendezvous->sock = iris_i_stream_socket(IRIS_CONTROL_TCP,
                                                &rendezvous->bootstrap->root);
        return rendezvous->sock >= 0
                   ? IRIS_OK
                   : iris_i_fail_fd(errno, "cannot make a socket");
    }
    if (rendezvous->far_sock < 0 && rendezvous->bootstrap->root.bytes != 0) {
        root = rendezvous->bootstrap->root;
        status = iris_i_rendezvous_far_listen(&root, &rendezvous->far_sock);
        if (status != IRIS_OK) {
            return iris_i_rendezvous_root_refuse(rendezvous, status);
        }
    }
    name_socket(rendezvous, name);
    status = iris_i_socket_listen(name, rendezvous->num_ranks + 16,
                                  &rendezvous->sock);
    if (status == IRIS_ERR_BOOTSTRAP) {
        snprintf(why, sizeof why, "%s", iris_last_error());
        status = iris_i_fail(NULL, status, "rank 0 of job \"%s\": %.900s",
                             rendezvous->bootstrap->job, why);
    }
    if (status != IRIS_OK) {
        return iris_i_rendezvous_root_refuse(rendezvous, status);
    }
    rendezvous->spare = fcntl(rendezvous->sock, F_DUPFD_CLOEXEC, 0);
    return open_arrivals(rendezvous);
}

/* Parts that only rank 0 needs: room for every peer. */
static iris_status_t make_root(struct iris_rendezvous *rendezvous)
{
    size_t num_ranks = (size_t)rendezvous->num_ranks;

    rendezvous->hellos = make_hellos(rendezvous->num_ranks);
    rendezvous->socks = calloc(num_ranks, sizeof *rendezvous->socks);
    if (rendezvous->hellos == NULL || rendezvous->socks == NULL) {
        free(rendezvous->hellos);
        free(rendezvous->socks);
        return fail_memory(rendezvous->num_ranks);
    }
    for (size_t rank = 0; rank < num_ranks; rank++) {
        rendezvous->socks[rank] = -1;
    }
    return IRIS_OK;
}

iris_status_t iris_i_rendezvous_open(const struct iris_bootstrap *bootstrap,
                                     const struct iris_settings *settings,
                                     const struct iris_log *log,
                                     struct iris_rendezvous *rendezvous_p)
{
    struct iris_rendezvous rendezvous = {
        .bootstrap = bootstrap,
        .settings = settings,
        .rank = bootstrap->rank,
        .num_ranks = bootstrap->num_ranks,
        .num_expected = bootstrap->num_ranks,
        .waiter = {.log = log},
        .begin = iris_i_now_ns(),
        .deadline = iris_i_deadline(settings->timeout_ms.number),
        .warn_at = iris_i_deadline(settings->warn_ms.number),
        .sock = -1,
        .arrivals = {.listener = -1},
        .spare = -1,
        .far_sock = bootstrap->listener > 0 ? bootstrap->listener : -1};
    iris_status_t status = IRIS_OK;

    if (rendezvous.rank == 0) {
        status = make_root(&rendezvous);
        if (status != IRIS_OK) {
            return status;
        }
    }
    status = open_sockets(&rendezvous);
    if (status != IRIS_OK) {
        leave_rendezvous(&rendezvous);
        return status;
    }
    *rendezvous_p = rendezvous;
    return IRIS_OK;
}

iris_status_t iris_i_rendezvous_join(struct iris_rendezvous *rendezvous,
                                     struct iris_hello *hello)
{
    iris_status_t status;
    struct stat st;

    snprintf(hello->transport, sizeof hello->transport, "%.15s",
             rendezvous->settings->transport.text);
    hello->nodes = (int32_t)rendezvous->settings->nodes.number;
    hello->pid_namespace = stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
    if (rendezvous->bootstrap->root.bytes != 0) {
        hello->host = iris_i_host_id();
        (void)gethostname(hello->host_name, sizeof hello->host_name - 1);
    }
    if (rendezvous->rank == 0) {
        rendezvous->hellos[0] = *hello;
        hello->handle.fd = -1;
        status = iris_i_rendezvous_root_join(rendezvous);
    } else {
        status = join_as_peer(rendezvous, hello);
        iris_i_fd_close(&hello->handle.fd);
    }
    if (status != IRIS_OK) {
        iris_i_segment_release(rendezvous->segment);
        leave_rendezvous(rendezvous);
    }
    return status;
}

iris_status_t iris_i_rendezvous_agree(struct iris_rendezvous *rendezvous,
                                      iris_status_t status)
{
    struct iris_verdict own = {.status = IRIS_OK};

    if (rendezvous->rank == 0) {
        status = iris_i_rendezvous_root_agree(rendezvous, status);
    } else {
        iris_i_rendezvous_judge(&own, status);
        status = agree_as_peer(rendezvous, &own);
    }
    leave_rendezvous(rendezvous);
    return status;
}

void iris_i_rendezvous_drop(struct iris_rendezvous *rendezvous)
{
    iris_i_segment_release(rendezvous->segment);
    rendezvous->segment = NULL;
}
