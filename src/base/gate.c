/* SPDX-License-Identifier: MIT
 *
 * Serves the connections of strangers and of ranks that have not proven the
 * secret yet.
 *
 * - Every connection has IRIS_SOCKET_PATIENCE_MS for its proof. Silent,
 *   half-open and incomplete ones hold up nobody.
 * - Their number is bounded. A new connection takes the place of the oldest.
 *   Descriptors, too, are taken from the oldest if the process runs out.
 * - Guesses: after a wrong proof, the next one from the same address is checked
 *   GUESS_MS later. Until then the connection is held: its bytes stay unread.
 *   Held connections of an address are checked in the order of their arrival.
 */
#include "config.h"

#include "base/base.h"

#include "base/link.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Time between two checked guesses from one address. */
#define GUESS_MS 10

/* Connections that one step accepts, and events that it handles. */
#define STEP_MOST 64

/* The listener's number among the polled descriptors. */
#define LISTENER UINT32_MAX

/* ---- Addresses ---- */

/* A number for the address without its port. */
static uint64_t number_source(const struct sockaddr_storage *address)
{
    unsigned char digest[IRIS_DIGEST_BYTES];
    struct sockaddr_in6 in6;
    struct sockaddr_in in;
    uint64_t number;

    memcpy(&in, address, sizeof in);
    memcpy(&in6, address, sizeof in6);
    if (address->ss_family == AF_INET) {
        return (uint64_t)in.sin_addr.s_addr << 1 | 1;
    }
    if (address->ss_family != AF_INET6) {
        return 0;
    }
    iris_i_sha256(&in6.sin6_addr, sizeof in6.sin6_addr, digest);
    memcpy(&number, digest, sizeof number);
    return number | 1;
}

/* The entry of an address, else the one that has been free for longest. */
static struct iris_gate_source *find_source(struct iris_gate *gate,
                                            uint64_t source)
{
    struct iris_gate_source *best = &gate->sources[0];

    for (int i = 0; i < IRIS_GATE_SOURCES; i++) {
        struct iris_gate_source *one = &gate->sources[i];

        if (one->source == source) {
            return one;
        }
        best = one->until_ns < best->until_ns ? one : best;
    }
    return best;
}

static int is_blocked(struct iris_gate *gate, uint64_t source)
{
    const struct iris_gate_source *one = find_source(gate, source);

    return source != 0 && one->source == source &&
           iris_i_now_ns() < one->until_ns;
}

static void block_source(struct iris_gate *gate, uint64_t source)
{
    struct iris_gate_source *one = find_source(gate, source);

    one->source = source;
    one->until_ns = iris_i_now_ns() + GUESS_MS * IRIS_NS_PER_MS;
}

/* ---- Visitors ---- */

static void watch_visitor(struct iris_gate *gate, int i, int op, short events)
{
    struct epoll_event event = {.events = (uint32_t)events,
                                .data.u32 = (uint32_t)i};

    (void)epoll_ctl(gate->poll, op, gate->visitors[i].sock, &event);
}

/* Frees the slot. Returns its socket, which is open. */
static int release_visitor(struct iris_gate *gate, int i)
{
    struct iris_gate_visitor *visitor = &gate->visitors[i];
    int sock = visitor->sock;

    watch_visitor(gate, i, EPOLL_CTL_DEL, 0);
    gate->num_held -= visitor->is_held;
    visitor->is_held = 0;
    visitor->sock = -1;
    return sock;
}

/* The visitor that arrived first; -1: there is none. */
static int find_oldest(const struct iris_gate *gate, int held_only)
{
    int oldest = -1;

    for (int i = 0; i < gate->num_visitors; i++) {
        const struct iris_gate_visitor *visitor = &gate->visitors[i];

        if (visitor->sock >= 0 && visitor->is_held >= held_only &&
            (oldest < 0 || visitor->number < gate->visitors[oldest].number)) {
            oldest = i;
        }
    }
    return oldest;
}

static int drop_oldest(struct iris_gate *gate)
{
    int oldest = find_oldest(gate, 0);

    if (oldest >= 0) {
        close(release_visitor(gate, oldest));
    }
    return oldest;
}

static int find_free(struct iris_gate *gate)
{
    for (int i = 0; i < gate->num_visitors; i++) {
        if (gate->visitors[i].sock < 0) {
            return i;
        }
    }
    return drop_oldest(gate);
}

/* Takes a step of its proof. Returns 1 if it is proven. */
static int step_visitor(struct iris_gate *gate, int i,
                        struct iris_gate_entry *entry_p)
{
    struct iris_gate_visitor *visitor = &gate->visitors[i];
    struct iris_proof *proof = &visitor->proof;
    enum iris_proof_result result = iris_i_proof_step(proof);
    int is_mute;

    if (result == IRIS_PROOF_CLAIMED) {
        struct iris_proof_claims own = {0};
        const char *why = gate->admit(gate->arg, &proof->theirs, &own);

        if (why != NULL) {
            iris_i_proof_refuse(proof, why);
            snprintf(gate->why, sizeof gate->why, "%s", why);
        } else {
            iris_i_proof_answer(proof, own.data, own.bytes);
        }
        result = iris_i_proof_step(proof);
    }
    if (result == IRIS_PROOF_PENDING) {
        watch_visitor(gate, i, EPOLL_CTL_MOD, iris_i_proof_events(proof));
        return 0;
    }
    if (result == IRIS_PROOF_PROVEN) {
        entry_p->claims = proof->theirs;
        entry_p->sock = release_visitor(gate, i);
        return 1;
    }
    if (proof->why == IRIS_PROOF_WRONG) {
        block_source(gate, visitor->source);
    }
    /* Without a word, or a rank that has proven itself and then has no use for
     * the connection. */
    is_mute = proof->why == IRIS_PROOF_GONE &&
              (proof->done == 0 || proof->theirs.bytes != 0);
    if (proof->why != IRIS_PROOF_REFUSED && !is_mute) {
        snprintf(gate->why, sizeof gate->why, "%s", iris_i_proof_reason(proof));
    }
    gate->num_failed += !is_mute;
    close(release_visitor(gate, i));
    return 0;
}

static void hold_visitor(struct iris_gate *gate, int i, int is_held)
{
    gate->num_held += is_held - gate->visitors[i].is_held;
    gate->visitors[i].is_held = is_held;
    watch_visitor(gate, i, EPOLL_CTL_MOD,
                  is_held ? 0 : iris_i_proof_events(&gate->visitors[i].proof));
}

/* ---- Steps ---- */

/* A connection arrives. It gets the greeting at once. Returns 1 if it has also
 * proven the secret by then. */
static int greet_visitor(struct iris_gate *gate, int sock, uint64_t source,
                         struct iris_gate_entry *entry_p)
{
    int i = find_free(gate);
    struct iris_gate_visitor *visitor = &gate->visitors[i];

    if (iris_i_proof_begin(&visitor->proof, IRIS_PROOF_ACCEPTOR, sock,
                           &gate->secret, NULL, 0,
                           IRIS_SOCKET_PATIENCE_MS) != IRIS_OK) {
        close(sock);
        return 0;
    }
    visitor->sock = sock;
    visitor->source = source;
    visitor->number = gate->num_arrived++;
    watch_visitor(gate, i, EPOLL_CTL_ADD, EPOLLIN);
    return step_visitor(gate, i, entry_p);
}

/* Returns the connection, or -1 with errno. */
static int accept_visitor(struct iris_gate *gate, uint64_t *source_p)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t bytes = sizeof address;
    int sock = iris_i_fd_socket(accept4(
        gate->listener, (struct sockaddr *)&address, &bytes, SOCK_CLOEXEC));

    *source_p = number_source(&address);
    return sock;
}

static iris_status_t accept_visitors(struct iris_gate *gate,
                                     struct iris_gate_entry *entry_p)
{
    /* Without a free descriptor, accept4() fails even if nobody waits. */
    for (int i = 0; i < STEP_MOST && entry_p->sock < 0 &&
                    iris_i_socket_is_readable(gate->listener);
         i++) {
        uint64_t source;
        int sock = accept_visitor(gate, &source);

        if (sock >= 0) {
            (void)greet_visitor(gate, sock, source, entry_p);
        } else if (errno == EMFILE || errno == ENFILE) {
            if (drop_oldest(gate) < 0) {
                return iris_i_fail_fd(errno, "cannot accept a rank");
            }
        } else if (errno != EINTR && errno != ECONNABORTED) {
            break;
        }
    }
    return IRIS_OK;
}

/* Closes visitors whose time is over, and checks held ones that may be checked
 * now. Returns 1 if one of the latter is proven. */
static int visit_all(struct iris_gate *gate, struct iris_gate_entry *entry_p)
{
    int64_t now = iris_i_now_ns();
    int proven = 0, oldest;

    for (int i = 0; i < gate->num_visitors; i++) {
        struct iris_gate_visitor *visitor = &gate->visitors[i];

        if (visitor->sock >= 0 && now >= visitor->proof.deadline_ns) {
            close(release_visitor(gate, i));
            gate->num_failed++;
            snprintf(gate->why, sizeof gate->why,
                     "it did not prove the job's secret in time");
        }
    }
    for (int i = gate->num_held; i > 0 && !proven; i--) {
        oldest = find_oldest(gate, 1);
        if (is_blocked(gate, gate->visitors[oldest].source)) {
            break;
        }
        hold_visitor(gate, oldest, 0);
        proven = step_visitor(gate, oldest, entry_p);
    }
    return proven;
}

iris_status_t iris_i_gate_step(struct iris_gate *gate,
                               struct iris_gate_entry *entry_p)
{
    struct epoll_event events[STEP_MOST];
    iris_status_t status = IRIS_OK;
    int count;

    entry_p->sock = -1;
    if (visit_all(gate, entry_p)) {
        return IRIS_OK;
    }
    count = epoll_wait(gate->poll, events, STEP_MOST, 0);
    for (int e = 0; e < count && status == IRIS_OK && entry_p->sock < 0; e++) {
        int i = (int)events[e].data.u32;

        if (events[e].data.u32 == LISTENER) {
            status = accept_visitors(gate, entry_p);
        } else if (gate->visitors[i].sock < 0) { /* dropped by this step */
            continue;
        } else if (is_blocked(gate, gate->visitors[i].source)) {
            hold_visitor(gate, i, 1);
        } else {
            (void)step_visitor(gate, i, entry_p);
        }
    }
    return status;
}

void iris_i_gate_turn_away(struct iris_gate *gate)
{
    uint64_t source;
    int sock = accept_visitor(gate, &source);

    if (sock >= 0) {
        iris_i_proof_tell_full(sock);
        close(sock);
    }
}

int64_t iris_i_gate_patience_ns(const struct iris_gate *gate)
{
    return gate->num_held > 0 ? GUESS_MS * IRIS_NS_PER_MS : -1;
}

/* ---- Opening and closing ---- */

iris_status_t iris_i_gate_open(struct iris_gate *gate, int listener,
                               const struct iris_secret *secret, int most)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = LISTENER};

    memset(gate, 0, sizeof *gate);
    gate->listener = listener;
    gate->secret = *secret;
    gate->num_visitors = most;
    gate->poll = iris_i_fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
    if (gate->poll < 0) {
        return iris_i_fail_fd(errno, "cannot watch for connections");
    }
    gate->visitors = malloc((size_t)most * sizeof *gate->visitors);
    if (gate->visitors == NULL) {
        close(gate->poll);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for %d connections", most);
    }
    for (int i = 0; i < most; i++) {
        gate->visitors[i].sock = -1;
        gate->visitors[i].is_held = 0;
    }
    (void)fcntl(listener, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(gate->poll, EPOLL_CTL_ADD, listener, &event) != 0) {
        iris_i_gate_close(gate);
        return iris_i_fail_fd(errno, "cannot watch for connections");
    }
    return IRIS_OK;
}

void iris_i_gate_close(struct iris_gate *gate)
{
    for (int i = 0; gate->visitors != NULL && i < gate->num_visitors; i++) {
        iris_i_fd_close(&gate->visitors[i].sock);
    }
    if (gate->visitors != NULL) {
        close(gate->poll);
    }
    free(gate->visitors);
    gate->visitors = NULL;
}
