/* SPDX-License-Identifier: MIT
 *
 * The connections that a rank accepts in the rendezvous are in these states:
 *
 *   waiting    in the backlog of a listener
 *   unproven   in the gate; a local connection is proven by its user id
 *   proven     in the list, until its first message is complete
 *   taken      by the caller
 *
 * No state holds up other connections.
 */
#include "config.h"

#include "control/control.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Fails, without harm, if `poll` is the listener. */
static void watch_arrival(const struct iris_arrivals *arrivals, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    (void)epoll_ctl(arrivals->poll, EPOLL_CTL_ADD, fd, &event);
}

/* Removes a connection from the list. */
static struct iris_arrival *unlink_arrival(struct iris_arrivals *arrivals,
                                           struct iris_arrival **at)
{
    struct iris_arrival *arrival = *at;

    *at = arrival->next;
    arrivals->count--;
    (void)epoll_ctl(arrivals->poll, EPOLL_CTL_DEL, arrival->sock, NULL);
    return arrival;
}

static void drop_arrival(struct iris_arrival *arrival)
{
    close(arrival->sock);
    iris_i_fd_close(&arrival->message.fd);
    free(arrival);
}

static void drop_first(struct iris_arrivals *arrivals)
{
    struct iris_arrival **at = &arrivals->last;

    while ((*at)->next != NULL) {
        at = &(*at)->next;
    }
    drop_arrival(unlink_arrival(arrivals, at));
}

/* Takes over the socket. NULL: no memory; it is closed. */
static struct iris_arrival *add_arrival(struct iris_arrivals *arrivals,
                                        int sock)
{
    struct iris_arrival *arrival = calloc(1, sizeof *arrival + arrivals->bytes);

    if (arrival == NULL) {
        close(sock);
        return NULL;
    }
    iris_i_socket_bound_sends(sock);
    if (arrivals->count == arrivals->most) {
        drop_first(arrivals);
    }
    arrival->sock = sock;
    arrival->message.data = arrival->data;
    arrival->message.bytes = arrivals->bytes;
    arrival->message.fd = -1;
    arrival->next = arrivals->last;
    arrivals->last = arrival;
    arrivals->count++;
    watch_arrival(arrivals, sock);
    return arrival;
}

static iris_status_t fail_memory_for_rank(void)
{
    return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a rank");
}

static iris_status_t accept_local(struct iris_arrivals *arrivals)
{
    struct iris_arrival *arrival;
    iris_status_t status;
    pid_t pid;
    int sock;

    if (!iris_i_socket_is_readable(arrivals->listener)) {
        return IRIS_OK;
    }
    status = iris_i_socket_accept(arrivals->listener, &sock, &pid);
    if (status != IRIS_OK) {
        return status == IRIS_ERR_STATE ? IRIS_OK : status;
    }
    arrival = add_arrival(arrivals, sock);
    if (arrival == NULL) {
        return fail_memory_for_rank();
    }
    arrival->pid = pid;
    return IRIS_OK;
}

static iris_status_t accept_far(struct iris_arrivals *arrivals)
{
    struct iris_gate *gate = &arrivals->gate;
    struct iris_arrival *arrival;
    struct iris_gate_entry entry;
    iris_status_t status;

    if (!arrivals->has_gate) {
        return IRIS_OK;
    }
    do {
        status = iris_i_gate_step(gate, &entry);
        if (entry.sock < 0) {
            break;
        }
        arrival = add_arrival(arrivals, entry.sock);
        if (arrival == NULL) {
            return fail_memory_for_rank();
        }
        arrival->is_far = 1;
        memcpy(&arrival->claims, entry.claims.data, sizeof arrival->claims);
    } while (status == IRIS_OK);
    if (status == IRIS_OK && gate->num_failed != arrivals->num_failed) {
        arrivals->num_failed = gate->num_failed;
        status = iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                             "turned away a connection from another host: the "
                             "other side %s",
                             gate->why);
    }
    return status;
}

iris_status_t iris_i_arrivals_take(struct iris_arrivals *arrivals,
                                   struct iris_arrival **arrival_p)
{
    struct iris_arrival **at = &arrivals->last;
    iris_status_t status = accept_local(arrivals);

    if (status == IRIS_OK) {
        status = accept_far(arrivals);
    }
    *arrival_p = NULL;
    if (status != IRIS_OK) {
        return status;
    }
    while (*at != NULL) {
        status = iris_i_socket_take((*at)->sock, &(*at)->message);
        if (status != IRIS_ERR_STATE && status != IRIS_ERR_PEER_LOST) {
            *arrival_p = unlink_arrival(arrivals, at);
            return status;
        }
        if (status == IRIS_ERR_PEER_LOST) {
            drop_arrival(unlink_arrival(arrivals, at));
        } else {
            at = &(*at)->next;
        }
    }
    return IRIS_OK;
}

static const char *admit_rank(void *arg, const struct iris_proof_claims *theirs,
                              struct iris_proof_claims *own_p)
{
    (void)arg;
    (void)own_p;
    return theirs->bytes == sizeof(struct iris_rank_claims)
               ? NULL
               : "is of another version of Iris";
}

iris_status_t iris_i_arrivals_open(struct iris_arrivals *arrivals, int listener,
                                   int far_listener,
                                   const struct iris_secret *key, size_t bytes,
                                   int most)
{
    iris_status_t status = IRIS_OK;

    memset(arrivals, 0, sizeof *arrivals);
    arrivals->listener = listener;
    arrivals->bytes = bytes;
    arrivals->most = most;
    arrivals->poll = iris_i_fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
    if (arrivals->poll < 0) {
        arrivals->poll = listener;
    }
    if (far_listener >= 0) {
        status = iris_i_gate_open(&arrivals->gate, far_listener, key, most);
        arrivals->gate.admit = admit_rank;
        arrivals->has_gate = status == IRIS_OK;
    }
    watch_arrival(arrivals, listener);
    if (arrivals->has_gate) {
        watch_arrival(arrivals, arrivals->gate.poll);
    }
    if (status != IRIS_OK) {
        iris_i_arrivals_close(arrivals);
    }
    return status;
}

void iris_i_arrivals_close(struct iris_arrivals *arrivals)
{
    if (arrivals->listener < 0) {
        return;
    }
    while (arrivals->last != NULL) {
        drop_arrival(unlink_arrival(arrivals, &arrivals->last));
    }
    if (arrivals->has_gate) {
        iris_i_gate_close(&arrivals->gate);
    }
    if (arrivals->poll != arrivals->listener) {
        close(arrivals->poll);
    }
    arrivals->listener = -1;
}
