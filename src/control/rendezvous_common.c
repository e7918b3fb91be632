/* SPDX-License-Identifier: MIT
 *
 * Verdicts of the rendezvous, and the waits on both sides.
 */
#include "config.h"

#include "control/internal.h"

#include "base/socket.h"

#include <stdio.h>
#include <unistd.h>

void iris_i_rendezvous_judge(struct iris_verdict *verdict, iris_status_t status)
{
    if (verdict->status == IRIS_OK && status != IRIS_OK) {
        verdict->status = status;
        snprintf(verdict->message, sizeof verdict->message, "%s",
                 iris_last_error());
    }
}

/* A status from another process is one of ours, or replaced if it is not. */
static iris_status_t status_from(int32_t number)
{
    switch (number) {
#define STATUS_CASE(name, value, text) \
    case value:                        \
        return IRIS_##name;
        IRIS_STATUS_ROWS(STATUS_CASE)
#undef STATUS_CASE
    }
    return IRIS_ERR_BOOTSTRAP;
}

iris_status_t iris_i_rendezvous_accept(const struct iris_verdict *verdict)
{
    char message[IRIS_MESSAGE_BYTES];

    if (verdict->status == IRIS_OK) {
        return IRIS_OK;
    }
    /* A text from another process may lack its terminator. */
    snprintf(message, sizeof message, "%.*s", (int)sizeof message - 1,
             verdict->message);
    return iris_i_fail_again(status_from(verdict->status), message);
}

void iris_i_rendezvous_send(int sock, const struct iris_verdict *verdict,
                            int fd)
{
    (void)iris_i_socket_send(sock, verdict, sizeof *verdict, fd);
}

iris_status_t
iris_i_rendezvous_announce(const struct iris_rendezvous *rendezvous, int rank,
                           const struct iris_verdict *verdict, int fd)
{
    const struct iris_hello *hellos = rendezvous->hellos;
    const struct iris_hello *to = &hellos[rank];
    struct iris_verdict own = *verdict;
    int sock = rendezvous->socks[rank];
    iris_status_t status;

    if (!iris_i_hello_same_host(to, &hellos[0])) {
        own.pid = 0;
        fd = -1;
    } else if (iris_i_hello_same_process(to, &hellos[0])) {
        fd = -1;
    }
    status = iris_i_socket_send(sock, &own, sizeof own, fd);
    for (int r = 0;
         status == IRIS_OK && own.hellos == 0 && r < rendezvous->num_ranks;
         r++) {
        int needed = iris_i_hello_same_node(to, &hellos[r]) &&
                     !iris_i_hello_same_process(to, &hellos[r]);

        status = iris_i_socket_send(sock, &hellos[r], sizeof hellos[r],
                                    needed ? hellos[r].handle.fd : -1);
    }
    return status;
}

void iris_i_rendezvous_key(const struct iris_rendezvous *rendezvous,
                           const char *label, struct iris_secret *key_p)
{
    const struct iris_bootstrap *bootstrap = rendezvous->bootstrap;
    struct iris_secret salted;

    iris_i_hmac_sha256(bootstrap->secret.bytes, sizeof bootstrap->secret.bytes,
                       rendezvous->hellos[0].control_secret,
                       sizeof rendezvous->hellos[0].control_secret,
                       salted.bytes);
    iris_i_secret_derive(&salted, label, key_p);
}

iris_status_t
iris_i_rendezvous_check_failed(const struct iris_rendezvous *rendezvous)
{
    const atomic_int *failed = rendezvous->bootstrap->failed;

    return failed == NULL || atomic_load(failed) == 0
               ? IRIS_OK
               : iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                             "rank %d failed before the ranks had met",
                             atomic_load(failed) - 1);
}

void iris_i_rendezvous_wait_begin(struct iris_rendezvous *rendezvous,
                                  const struct iris_wait_type *type,
                                  struct iris_wait *wait)
{
    iris_i_wait_begin(wait, type, &rendezvous->waiter, "iris_init", rendezvous);
    wait->begin_ns = rendezvous->begin;
    wait->deadline_ns = rendezvous->deadline;
    wait->warn_ns = rendezvous->warn_at;
}

void iris_i_rendezvous_wait_end(struct iris_rendezvous *rendezvous,
                                struct iris_wait *wait, iris_status_t status)
{
    iris_i_wait_end(wait, status);
    rendezvous->warn_at = wait->warn_ns;
}

void iris_i_rendezvous_close(int *fd_p)
{
    if (*fd_p >= 0) {
        close(*fd_p);
        *fd_p = -1;
    }
}
