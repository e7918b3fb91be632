/* SPDX-License-Identifier: MIT
 *
 * Rank 0's side of the rendezvous, and what both sides share.
 *
 *   gathering   takes hellos; each is checked, and compared with rank 0's
 *   refused     after an error: tells the ranks that are here, and for a short
 *               time those that come
 *   announced   every rank has the verdict, all hellos and its node's table
 *   agreed      every rank has answered whether it could use them, and has the
 *               joint verdict
 *
 * - The first error is the verdict, and every rank gets the same.
 * - Rank 0 owns all connections until the end, and so knows of deaths.
 */
#include "config.h"

#include "control/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Verdicts, and waits of both sides ---- */

void iris_i_rendezvous_judge(struct iris_verdict *verdict, iris_status_t status)
{
    if (verdict->status == IRIS_OK && status != IRIS_OK) {
        verdict->status = status;
        snprintf(verdict->message, sizeof verdict->message, "%s",
                 iris_last_error());
    }
}

/* A status from another process is one of ours, or replaced if it is not. */
static iris_status_t read_status(int32_t number)
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
    return iris_i_fail_again(read_status(verdict->status), message);
}

void iris_i_rendezvous_send(int sock, const struct iris_verdict *verdict,
                            int fd)
{
    (void)iris_i_socket_send(sock, verdict, sizeof *verdict, fd);
}

static iris_status_t tell_peer(const struct iris_rendezvous *rendezvous,
                               int rank, const struct iris_verdict *verdict,
                               int fd)
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

int iris_i_rendezvous_find_stopped(const struct iris_rendezvous *rendezvous)
{
    const struct iris_hello *hellos = rendezvous->hellos;
    const struct iris_hello *own = &hellos[rendezvous->rank];

    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        if (hellos[rank].magic != 0 &&
            iris_i_hello_same_host(&hellos[rank], own) &&
            hellos[rank].pid_namespace == own->pid_namespace &&
            iris_i_process_is_stopped(hellos[rank].pid)) {
            return rank;
        }
    }
    return -1;
}

/* ---- Checks of a hello ---- */

static iris_status_t fail_other_namespace(const struct iris_hello *hello)
{
    return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                       "rank %d is in another PID namespace (container) than "
                       "rank 0, so that they cannot watch each other; run all "
                       "ranks in one container, or with --pid=host",
                       hello->rank);
}

/* If no backend was set, one of the two ranks may have found no GPU. */
static iris_status_t fail_other_backend(const struct iris_hello *hello,
                                        const struct iris_hello *own)
{
    const struct iris_hello *without = hello->message[0] != '\0' ? hello : own;
    char why[IRIS_MESSAGE_BYTES] = "";

    if (without->message[0] != '\0') {
        snprintf(why, sizeof why, "; rank %d: %.700s", without->rank,
                 without->message);
    }
    return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                       "rank %d uses backend %.16s, rank 0 uses %.16s; set "
                       "IRIS_BACKEND alike on all ranks%s",
                       hello->rank, hello->backend, own->backend, why);
}

static iris_status_t check_hello(const struct iris_rendezvous *rendezvous,
                                 const struct iris_hello *hello)
{
    const struct iris_hello *own = &rendezvous->hellos[0];
    int rank = hello->rank;

    if (hello->magic != own->magic || hello->version != own->version) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "pid %d uses another version of Iris than rank 0",
                           hello->pid);
    }
    /* A rank that could not start may not know the number of ranks. */
    if (hello->num_ranks != own->num_ranks && hello->status == IRIS_OK) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d believes in a job of %d ranks, rank 0 in "
                           "one of %d; give all the same IRIS_NUM_RANKS",
                           rank, hello->num_ranks, own->num_ranks);
    }
    if (rank < 0 || rank >= own->num_ranks) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank %d is out of range: the job has %d ranks",
                           rank, own->num_ranks);
    }
    if (rendezvous->hellos[rank].magic != 0) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "rank %d came twice: pid %d and pid %d; give each "
                           "its own IRIS_RANK",
                           rank, rendezvous->hellos[rank].pid, hello->pid);
    }
    if (iris_i_hello_same_host(hello, own) &&
        hello->pid_namespace != own->pid_namespace) {
        return fail_other_namespace(hello);
    }
    return IRIS_OK;
}

/* "auto" means "socket". */
static const char *find_transport(const struct iris_hello *hello)
{
    return strcmp(hello->transport, "auto") == 0 ? "socket" : hello->transport;
}

static iris_status_t compare_hello(const struct iris_rendezvous *rendezvous,
                                   const struct iris_hello *hello)
{
    const struct iris_hello *own = &rendezvous->hellos[0];

    if (hello->status != IRIS_OK) {
        return iris_i_fail(NULL, (iris_status_t)hello->status,
                           "rank %d could not start: %.900s", hello->rank,
                           hello->message);
    }
    if (own->status != IRIS_OK) {
        return IRIS_OK;
    }
    if (strcmp(hello->backend, own->backend) != 0) {
        return fail_other_backend(hello, own);
    }
    if ((hello->host == 0) != (own->host == 0)) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "only one of rank %d and rank 0 knows of several "
                           "hosts; set IRIS_ROOT alike on all ranks",
                           hello->rank);
    }
    if (hello->nodes != own->nodes) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d has IRIS_NODES=%d, rank 0 has "
                           "IRIS_NODES=%d; set it alike on all ranks",
                           hello->rank, hello->nodes, own->nodes);
    }
    if (strcmp(find_transport(hello), find_transport(own)) != 0) {
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d has IRIS_TRANSPORT=%.15s, rank 0 has "
                           "IRIS_TRANSPORT=%.15s; set it alike on all ranks",
                           hello->rank, hello->transport, own->transport);
    }
    if (hello->heap_bytes != own->heap_bytes) {
        return iris_i_fail(
            NULL, IRIS_ERR_MISMATCH,
            "rank %d has a heap of %llu bytes, rank 0 of %llu; "
            "set IRIS_HEAP_SIZE and IRIS_TRACE to the same values on all ranks",
            hello->rank, (unsigned long long)hello->heap_bytes,
            (unsigned long long)own->heap_bytes);
    }
    if (hello->heap_reserve != own->heap_reserve) {
        return iris_i_fail(
            NULL, IRIS_ERR_MISMATCH,
            "rank %d has a heap that may grow to %llu bytes, rank 0 one to "
            "%llu; set IRIS_HEAP_RESERVE to the same value on all ranks",
            hello->rank, (unsigned long long)hello->heap_reserve,
            (unsigned long long)own->heap_reserve);
    }
    if (hello->check != own->check) { /* otherwise offsets would differ */
        return iris_i_fail(NULL, IRIS_ERR_MISMATCH,
                           "rank %d checks other things than rank 0; set "
                           "IRIS_CHECK alike on all ranks",
                           hello->rank);
    }
    return IRIS_OK;
}

/* ---- Gathering ---- */

/* An error of rank 0 itself, in the words for the others. */
static iris_status_t fail_root(const struct iris_rendezvous *rendezvous,
                               iris_status_t status)
{
    char why[IRIS_MESSAGE_BYTES];

    if (status == IRIS_OK || rendezvous->num_ranks == 1) {
        return status;
    }
    snprintf(why, sizeof why, "%s", iris_last_error());
    return iris_i_fail(NULL, status, "rank 0 could not start: %.900s", why);
}

/* Sends an error verdict to all ranks that have come, and frees the resources
 * that only success would have needed. */
static void dismiss_all(struct iris_rendezvous *rendezvous,
                        const struct iris_verdict *verdict)
{
    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        iris_i_fd_close(&rendezvous->hellos[rank].handle.fd);
        if (rendezvous->socks[rank] >= 0) {
            iris_i_rendezvous_send(rendezvous->socks[rank], verdict, -1);
        }
        iris_i_fd_close(&rendezvous->socks[rank]);
    }
}

/* Logs one line for all of them, since anybody can connect; gather_ranks() logs their
 * number. */
static void note_turned_away(struct iris_rendezvous *rendezvous)
{
    if (rendezvous->num_turned_away++ == 0) {
        iris_i_warning(rendezvous->waiter.log, "%s", iris_last_error());
    }
}

/* Without a free descriptor the verdict is an error. The reserved descriptor is
 * used to send it. */
static void judge_trouble(struct iris_rendezvous *rendezvous,
                          iris_status_t status, struct iris_verdict *verdict)
{
    iris_i_rendezvous_judge(verdict, fail_root(rendezvous, status));
    dismiss_all(rendezvous, verdict);
    if (rendezvous->spare < 0) {
        iris_i_wait_apart(IRIS_DESCRIPTORS_MS);
    }
    iris_i_fd_close(&rendezvous->spare);
}

/* Whether a rank of another host is the one that it has proven to be. */
static int is_claimed(const struct iris_arrival *arrival,
                      const struct iris_hello *hello)
{
    return !arrival->is_far || (arrival->claims.rank == hello->rank &&
                                arrival->claims.num_ranks == hello->num_ranks &&
                                arrival->claims.host == hello->host);
}

/* Takes a hello. A `status` that is not OK says that the hello is incomplete. Errors
 * go into the verdict. Returns 1 if a rank sent it. */
static int take_hello(struct iris_rendezvous *rendezvous,
                      struct iris_arrival *arrival, iris_status_t status,
                      struct iris_verdict *verdict)
{
    const struct iris_verdict heard = {.status = IRIS_VERDICT_HEARD};
    iris_status_t judgement = status;
    struct iris_hello hello;

    memcpy(&hello, arrival->data, sizeof hello);
    hello.transport[sizeof hello.transport - 1] = '\0';
    hello.handle.fd = arrival->message.fd;
    hello.end = 0;
    hello.pid = arrival->pid != 0 ? arrival->pid : hello.pid;
    if (status == IRIS_OK && !is_claimed(arrival, &hello)) {
        judgement = iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                                "a rank has proven to be rank %d of %d and "
                                "says that it is rank %d of %d",
                                arrival->claims.rank, arrival->claims.num_ranks,
                                hello.rank, hello.num_ranks);
    } else if (status == IRIS_OK) {
        judgement = check_hello(rendezvous, &hello);
    } else if (status == IRIS_ERR_LIMIT) {
        judgement = fail_root(rendezvous, status);
    }
    if (status == IRIS_OK && hello.status == IRIS_OK &&
        hello.num_ranks > rendezvous->num_expected) {
        rendezvous->num_expected = hello.num_ranks;
    }
    if (judgement == IRIS_OK) {
        iris_i_rendezvous_send(arrival->sock, &heard, -1);
        rendezvous->hellos[hello.rank] = hello;
        rendezvous->socks[hello.rank] = arrival->sock;
        iris_i_rendezvous_judge(verdict, compare_hello(rendezvous, &hello));
        return 1;
    }
    iris_i_rendezvous_judge(verdict, judgement);
    iris_i_rendezvous_send(arrival->sock, verdict, -1);
    close(arrival->sock);
    iris_i_fd_close(&hello.handle.fd);
    return status == IRIS_OK || status == IRIS_ERR_LIMIT;
}

/* Takes one connection that has sent its hello. Returns 1 if it received a
 * rank. */
static int take_peer(struct iris_rendezvous *rendezvous,
                     struct iris_verdict *verdict)
{
    struct iris_arrival *arrival;
    iris_status_t status =
        iris_i_arrivals_take(&rendezvous->arrivals, &arrival);
    int is_rank;

    if (arrival != NULL) {
        is_rank = take_hello(rendezvous, arrival, status, verdict);
        free(arrival);
        return is_rank;
    }
    if (status == IRIS_ERR_BOOTSTRAP) {
        note_turned_away(rendezvous);
    } else if (status != IRIS_OK) {
        judge_trouble(rendezvous, status, verdict);
    }
    return 0;
}

/* After its hello, a peer sends nothing until the verdict. Anything to read
 * from it means that it has ended. */
static iris_status_t check_silent(const struct iris_rendezvous *rendezvous,
                                  int rank)
{
    if (rendezvous->socks[rank] < 0 ||
        !iris_i_socket_is_readable(rendezvous->socks[rank])) {
        return IRIS_OK;
    }
    errno = 0;
    (void)iris_i_socket_has_ended(rendezvous->socks[rank]);
    return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                       "rank %d (pid %d) %s while the ranks were meeting", rank,
                       rendezvous->hellos[rank].pid, iris_i_socket_end(errno));
}

static iris_status_t check_here(void *arg)
{
    const struct iris_rendezvous *rendezvous = arg;
    iris_status_t status = IRIS_OK;

    for (int rank = 1; status == IRIS_OK && rank < rendezvous->num_ranks;
         rank++) {
        status = check_silent(rendezvous, rank);
    }
    return status == IRIS_OK ? iris_i_rendezvous_check_failed(rendezvous)
                             : status;
}

#define LIST_BYTES 128

/* "rank 1, 4, 5": the ranks that have not come, as far as they fit. Returns the
 * number that have. */
static int list_missing(const struct iris_rendezvous *rendezvous,
                        char list[LIST_BYTES])
{
    int num_present = 0;
    size_t length = (size_t)snprintf(list, LIST_BYTES, "rank");

    for (int rank = 0; rank < rendezvous->num_ranks; rank++) {
        if (rendezvous->hellos[rank].magic != 0) {
            num_present++;
        } else if (length < LIST_BYTES - 16) {
            length += (size_t)snprintf(list + length, LIST_BYTES - length,
                                       "%s%d", length == 4 ? " " : ", ", rank);
        }
    }
    return num_present;
}

static void describe_missing(void *arg, char *text, size_t bytes)
{
    char absent[LIST_BYTES];

    (void)list_missing(arg, absent);
    snprintf(text, bytes, "%s, missing yet", absent);
}

static iris_status_t fail_missing(const struct iris_wait *wait)
{
    const struct iris_rendezvous *rendezvous = wait->arg;
    char absent[LIST_BYTES];
    int num_present = list_missing(rendezvous, absent);

    return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                       "%d of %d ranks came before the deadline "
                       "(IRIS_TIMEOUT_MS); missing: %s",
                       num_present, rendezvous->num_ranks, absent);
}

/* After an error, missing ranks get a short time to come and learn of it. The
 * ranks that are here have been told by then, and no longer wait. */
static void shorten_wait(const struct iris_rendezvous *rendezvous,
                         struct iris_wait *wait)
{
    static const struct iris_wait_type to_tell = {.pace = IRIS_PACE_SOCKET,
                                                  .late = fail_missing};
    int in_vain = iris_i_rendezvous_check_failed(rendezvous) != IRIS_OK;
    int64_t soon = in_vain ? 1 : iris_i_deadline(IRIS_LINGER_MS);

    if (wait->type != &to_tell) {
        wait->type = &to_tell;
        wait->deadline_ns = soon < wait->deadline_ns ? soon : wait->deadline_ns;
    }
}

/* Waits a little. The reason that ends the wait goes into the verdict. After
 * the loss of a rank it goes on, to tell the others. */
static iris_status_t wait_tick(struct iris_rendezvous *rendezvous,
                               struct iris_wait *wait,
                               struct iris_verdict *verdict)
{
    iris_status_t status = iris_i_wait_tick(wait);

    if (wait->ending != IRIS_OK && wait->by_fate) {
        iris_i_rendezvous_judge(verdict, wait->ending);
        wait->ending = status = IRIS_OK;
    }
    iris_i_rendezvous_judge(verdict, status == IRIS_ERR_INTERRUPTED
                                         ? fail_root(rendezvous, status)
                                         : status);
    return status;
}

/* Takes connections until all ranks are here, or an error occurs. After an
 * error, the ranks that are here are told at once. */
static void gather_ranks(struct iris_rendezvous *rendezvous,
                         struct iris_verdict *verdict)
{
    static const struct iris_wait_type for_ranks = {.pace = IRIS_PACE_SOCKET,
                                                    .fate = check_here,
                                                    .describe =
                                                        describe_missing,
                                                    .late = fail_missing};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;
    int num_received = 1;
    int64_t patience_ns;

    iris_i_rendezvous_wait_begin(rendezvous, &for_ranks, &wait);
    wait.fd = rendezvous->arrivals.poll;
    while (status == IRIS_OK && num_received < rendezvous->num_expected) {
        if (verdict->status != IRIS_OK) {
            dismiss_all(rendezvous, verdict);
            shorten_wait(rendezvous, &wait);
        }
        patience_ns = iris_i_gate_patience_ns(&rendezvous->arrivals.gate);
        wait.nap_ns = patience_ns > 0 ? patience_ns : wait.nap_ns;
        status = wait_tick(rendezvous, &wait, verdict);
        if (status == IRIS_OK && take_peer(rendezvous, verdict)) {
            num_received++;
            wait.ending = IRIS_OK; /* late, but present */
        }
    }
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    if (verdict->status != IRIS_OK) {
        dismiss_all(rendezvous, verdict);
    }
    if (rendezvous->num_turned_away > 1) {
        iris_i_warning(rendezvous->waiter.log,
                       "turned away %u connections of strangers in all",
                       rendezvous->num_turned_away);
    }
}

/* The number of peers that are threads of this process. */
static int count_siblings(const struct iris_rendezvous *rendezvous)
{
    int count = 0;

    for (int rank = 1; rank < rendezvous->num_ranks; rank++) {
        count += iris_i_hello_same_process(&rendezvous->hellos[0],
                                           &rendezvous->hellos[rank]);
    }
    return count;
}

/* Makes the table of each node of this host. `tables` has one for each part. */
static iris_status_t make_tables(const struct iris_rendezvous *rendezvous,
                                 struct iris_table **tables)
{
    const struct iris_hello *hellos = rendezvous->hellos;
    iris_status_t status = IRIS_OK;

    for (int rank = 0; status == IRIS_OK && rank < rendezvous->num_ranks;
         rank++) {
        int part = hellos[rank].part;

        if (!iris_i_hello_same_host(&hellos[rank], &hellos[0])) {
            continue;
        }
        if (part < 0 || part >= rendezvous->num_ranks) {
            return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                               "rank %d says that it is on node %d of its host",
                               rank, part);
        }
        if (tables[part] == NULL) {
            status =
                iris_i_segment_create(rendezvous->num_ranks, &tables[part]);
        }
    }
    return status;
}

/* Disconnects a peer that cannot be told everything: it must not take a part
 * for the whole. */
static void announce_all(struct iris_rendezvous *rendezvous,
                         struct iris_table *const *tables,
                         struct iris_verdict *verdict)
{
    int siblings = count_siblings(rendezvous);

    if (siblings == rendezvous->num_ranks - 1 &&
        rendezvous->bootstrap->failed != NULL) {
        verdict->hellos = (uintptr_t)rendezvous->hellos;
    }
    verdict->pid = getpid();
    for (int rank = 1; rank < rendezvous->num_ranks; rank++) {
        const struct iris_hello *hello = &rendezvous->hellos[rank];
        struct iris_table *table =
            iris_i_hello_same_host(hello, &rendezvous->hellos[0])
                ? tables[hello->part]
                : NULL;
        iris_status_t status;

        if (table != NULL &&
            iris_i_hello_same_process(hello, &rendezvous->hellos[0])) {
            iris_i_segment_retain(table, 1);
        }
        verdict->control = (uintptr_t)table;
        status = tell_peer(rendezvous, rank, verdict,
                           table == NULL ? -1 : table->fd);

        if (status == IRIS_OK) {
            continue;
        }
        shutdown(rendezvous->socks[rank], SHUT_RDWR);
        if (rendezvous->announced == IRIS_OK && status != IRIS_ERR_PEER_LOST) {
            rendezvous->announced = status;
            snprintf(rendezvous->announced_message,
                     sizeof rendezvous->announced_message, "%s",
                     iris_last_error());
        }
    }
}

/* Tells the reason to ranks that ask under the name for that, until all have
 * been told. */
static void tell_refusal(const struct iris_rendezvous *rendezvous, int listener,
                         const struct iris_verdict *verdict)
{
    static const struct iris_wait_type to_tell = {.pace = IRIS_PACE_SOCKET};
    static const struct iris_waiter root = {.timeout_ms = IRIS_REFUSAL_MS};
    struct iris_wait wait;
    int num_told = 1, sock;
    pid_t pid;

    iris_i_wait_begin(&wait, &to_tell, &root, "iris_init", NULL);
    iris_i_wait_start(&wait);
    wait.fd = listener;
    wait.deadline_ns = wait.deadline_ns < rendezvous->deadline
                           ? wait.deadline_ns
                           : rendezvous->deadline;
    while (num_told < rendezvous->num_ranks &&
           iris_i_wait_tick(&wait) == IRIS_OK) {
        if (iris_i_socket_is_readable(listener) &&
            iris_i_socket_accept(listener, &sock, &pid) == IRIS_OK) {
            iris_i_rendezvous_send(sock, verdict, -1);
            close(sock);
            num_told++;
        }
    }
}

iris_status_t
iris_i_rendezvous_root_refuse(const struct iris_rendezvous *rendezvous,
                              iris_status_t status)
{
    struct iris_verdict verdict = {.status = IRIS_OK};
    char name[IRIS_SECRET_NAME_BYTES], own[IRIS_MESSAGE_BYTES];
    int listener;

    if (rendezvous->bootstrap->failed != NULL) {
        return status; /* ranks are threads, and see the failure there */
    }
    snprintf(own, sizeof own, "%s", iris_last_error());
    iris_i_rendezvous_judge(&verdict, fail_root(rendezvous, status));
    iris_i_secret_name(&rendezvous->bootstrap->secret, "refusal", name);
    if (iris_i_socket_listen(name, rendezvous->num_ranks, &listener) ==
        IRIS_OK) {
        tell_refusal(rendezvous, listener, &verdict);
        close(listener);
    }
    return iris_i_fail_again(status, own);
}

/* A job of several hosts has started without a secret. */
static void warn_open(const struct iris_rendezvous *rendezvous)
{
    int num_far = 0;

    for (int rank = 1; rank < rendezvous->num_ranks; rank++) {
        num_far += !iris_i_hello_same_host(&rendezvous->hellos[0],
                                           &rendezvous->hellos[rank]);
    }
    if (num_far == 0 || !rendezvous->bootstrap->is_guessable ||
        rendezvous->settings->insecure.number) {
        return;
    }
    iris_i_warning(rendezvous->waiter.log,
                   "the job has several hosts and no secret: anyone on their "
                   "network can join it as a rank, and read and write its "
                   "memory; set IRIS_JOB_SECRET or IRIS_JOB_SECRET_FILE alike "
                   "on all ranks, or IRIS_INSECURE=1 if all users of the "
                   "network are trusted");
}

iris_status_t iris_i_rendezvous_root_join(struct iris_rendezvous *rendezvous)
{
    struct iris_verdict verdict = {.status = IRIS_OK};
    struct iris_table *tables[rendezvous->num_ranks];
    int own = rendezvous->hellos[0].part;

    memset(tables, 0, sizeof tables);
    iris_i_rendezvous_judge(&verdict,
                            compare_hello(rendezvous, &rendezvous->hellos[0]));
    gather_ranks(rendezvous, &verdict);
    iris_i_wait_pause(); /* until iris_i_rendezvous_agree() ends it */
    iris_i_arrivals_close(&rendezvous->arrivals);
    iris_i_fd_close(&rendezvous->sock);
    iris_i_fd_close(&rendezvous->far_sock);
    iris_i_fd_close(&rendezvous->spare);
    if (verdict.status == IRIS_OK) {
        iris_status_t status = make_tables(rendezvous, tables);

        iris_i_rendezvous_judge(&verdict, fail_root(rendezvous, status));
        if (verdict.status != IRIS_OK) {
            dismiss_all(rendezvous, &verdict);
        }
    }
    if (verdict.status == IRIS_OK) {
        warn_open(rendezvous);
        announce_all(rendezvous, tables, &verdict);
        rendezvous->segment = tables[own];
        tables[own] = NULL;
    }
    for (int part = 0; part < rendezvous->num_ranks; part++) {
        iris_i_segment_release(tables[part]);
    }
    return iris_i_rendezvous_accept(&verdict);
}

static iris_status_t fail_ended(const struct iris_rendezvous *rendezvous,
                                int rank, int error)
{
    return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                       "rank %d (pid %d) %s during init", rank,
                       rendezvous->hellos[rank].pid, iris_i_socket_end(error));
}

/* Whether a rank's connection has ended: 1 + an errno, or 0. The system tells an
 * error to one call only, the first. */
static int note_ended(const struct iris_rendezvous *rendezvous, int rank)
{
    int32_t *end = &rendezvous->hellos[rank].end;

    if (*end == 0 && iris_i_socket_has_ended(rendezvous->socks[rank])) {
        *end = 1 + errno;
    }
    return *end;
}

/* Ranks whose final status has come may have closed their connections. */
static iris_status_t check_from(const struct iris_rendezvous *rendezvous,
                                int rank)
{
    for (; rank < rendezvous->num_ranks; rank++) {
        if (rendezvous->socks != NULL && rendezvous->socks[rank] >= 0 &&
            note_ended(rendezvous, rank) != 0) {
            return fail_ended(rendezvous, rank,
                              rendezvous->hellos[rank].end - 1);
        }
    }
    return IRIS_OK;
}

iris_status_t
iris_i_rendezvous_root_check(const struct iris_rendezvous *rendezvous)
{
    return check_from(rendezvous, 1);
}

/* A present rank whose final status is awaited. */
struct last {
    struct iris_rendezvous *rendezvous;
    int rank;
};

static void describe_last(void *arg, char *text, size_t bytes)
{
    const struct last *last = arg;

    snprintf(text, bytes, "rank %d, which has come but is not done",
             last->rank);
}

static iris_status_t check_last(void *arg)
{
    const struct last *last = arg;

    return check_from(last->rendezvous, last->rank + 1);
}

/* Tells the ranks from `rank` on that rank 0 cannot go on, so that they send
 * their status instead of waiting for others. */
static void tell_ending(const struct iris_rendezvous *rendezvous, int rank,
                        iris_status_t status)
{
    struct iris_verdict ending = {.status = IRIS_OK};

    iris_i_rendezvous_judge(&ending, status);
    ending.status = IRIS_VERDICT_ENDING;
    for (; rank < rendezvous->num_ranks; rank++) {
        if (!iris_i_hello_same_process(&rendezvous->hellos[0],
                                       &rendezvous->hellos[rank])) {
            (void)note_ended(rendezvous, rank);
            iris_i_rendezvous_send(rendezvous->socks[rank], &ending, -1);
        }
    }
}

/* Receives a peer's final status. At the deadline, ranks that wait for a silent
 * one still have a moment to say so. IRIS_ERR_TIMEOUT: the rank is silent. */
static iris_status_t receive_last(struct iris_rendezvous *rendezvous, int rank,
                                  int64_t by_ns, struct iris_verdict *last_p)
{
    static const struct iris_wait_type for_last = {.pace = IRIS_PACE_SOCKET,
                                                   .fate = check_last,
                                                   .describe = describe_last};
    struct last last = {rendezvous, rank};
    struct iris_wait wait;
    iris_status_t status;
    int fd = -1, error;

    iris_i_rendezvous_wait_begin(rendezvous, &for_last, &wait);
    wait.arg = &last;
    /* A thread of this process always answers, and our heap must not disappear
     * while it maps it. */
    if (iris_i_hello_same_process(&rendezvous->hellos[0],
                                  &rendezvous->hellos[rank])) {
        wait.deadline_ns = INT64_MAX;
    } else if (wait.deadline_ns != INT64_MAX) {
        wait.deadline_ns += IRIS_VERDICT_MS / 2 * IRIS_NS_PER_MS;
        wait.deadline_ns = by_ns < wait.deadline_ns ? by_ns : wait.deadline_ns;
    }
    status = iris_i_socket_receive(rendezvous->socks[rank], last_p,
                                   sizeof *last_p, &wait, &fd);
    error = rendezvous->hellos[rank].end != 0 ? rendezvous->hellos[rank].end - 1
                                              : errno;
    if (status == IRIS_ERR_TIMEOUT &&
        iris_i_stream_is_silent(rendezvous->socks[rank])) {
        status = IRIS_ERR_PEER_LOST;
        error = ETIMEDOUT;
    }
    iris_i_rendezvous_wait_end(rendezvous, &wait, status);
    iris_i_fd_close(&fd);
    return status == IRIS_ERR_PEER_LOST && !wait.by_fate
               ? fail_ended(rendezvous, rank, error)
               : status;
}

/* A stopped rank, else ranks that have not answered, are the cause of others'
 * waits. */
static void judge_silent(const struct iris_rendezvous *rendezvous,
                         const char *silent, int stopped,
                         struct iris_verdict *joint)
{
    char list[LIST_BYTES] = "";
    size_t length = 0;

    for (int rank = 1; rank < rendezvous->num_ranks; rank++) {
        if ((stopped > 0 ? rank == stopped : silent[rank]) &&
            length < LIST_BYTES - 32) {
            length += (size_t)snprintf(
                list + length, LIST_BYTES - length, "%srank %d (pid %d)",
                length == 0 ? "" : ", ", rank, rendezvous->hellos[rank].pid);
        }
    }
    if (length != 0) {
        iris_i_rendezvous_judge(
            joint,
            iris_i_fail(NULL, IRIS_ERR_TIMEOUT, "%s %s (IRIS_TIMEOUT_MS)", list,
                        stopped > 0
                            ? "is stopped by a signal or a debugger"
                            : "does not answer, though its host does; is it "
                              "stopped?"));
    }
}

/* A rank that has lost another one, or has waited for it in vain, does not know
 * as much as that one. */
static int is_cause(iris_status_t status)
{
    return status != IRIS_ERR_PEER_LOST && status != IRIS_ERR_TIMEOUT;
}

/* The final statuses of all ranks. Rank 0 tells one reason, the first of these: a
 * rank's own failure, a loss that rank 0 has seen itself, a rank that is stopped
 * or silent, a loss or a long wait that another rank reports. */
struct fates {
    struct iris_verdict causes;
    struct iris_verdict losses;
    struct iris_verdict heard;
    char *silent;  /* by rank */
    int64_t by_ns; /* the other ranks' time to answer after a loss */
    int stopped;   /* a rank that another one sees stopped, or 0 */
};

static void hear_last(struct iris_rendezvous *rendezvous, int rank,
                      struct fates *fates)
{
    struct iris_verdict last = {.status = IRIS_OK};
    iris_status_t status = receive_last(rendezvous, rank, fates->by_ns, &last);

    fates->silent[rank] = status == IRIS_ERR_TIMEOUT;
    if (fates->silent[rank]) {
        int stopped = iris_i_rendezvous_find_stopped(rendezvous);

        fates->stopped = stopped > 0 ? stopped : fates->stopped;
    } else if (status != IRIS_OK) {
        iris_i_rendezvous_judge(
            is_cause(status) ? &fates->causes : &fates->losses, status);
    }
    if (status == IRIS_ERR_PEER_LOST && fates->by_ns == INT64_MAX) {
        fates->by_ns = iris_i_deadline(IRIS_VERDICT_MS);
    }
    if (status != IRIS_OK) {
        tell_ending(rendezvous, rank + 1, status);
        return;
    }
    if (last.status != IRIS_OK) {
        status =
            iris_i_fail(NULL, (iris_status_t)last.status,
                        "rank %d could not start: %.900s", rank, last.message);
        iris_i_rendezvous_judge(
            is_cause(status) ? &fates->causes : &fates->heard, status);
    }
    if (last.stopped > 0 && last.stopped <= rendezvous->num_ranks) {
        fates->stopped = last.stopped - 1;
    }
}

iris_status_t iris_i_rendezvous_root_agree(struct iris_rendezvous *rendezvous,
                                           iris_status_t status)
{
    char silent[rendezvous->num_ranks], own[IRIS_MESSAGE_BYTES];
    struct fates fates = {.silent = silent, .by_ns = INT64_MAX};
    int has_cause = is_cause(status);

    snprintf(own, sizeof own, "%s", iris_last_error());
    if (has_cause) {
        iris_i_rendezvous_judge(&fates.causes, fail_root(rendezvous, status));
    } else {
        iris_i_rendezvous_judge(&fates.heard, status);
        fates.by_ns = status == IRIS_ERR_PEER_LOST
                          ? iris_i_deadline(IRIS_VERDICT_MS)
                          : INT64_MAX;
        fates.stopped = iris_i_rendezvous_find_stopped(rendezvous);
    }
    if (status != IRIS_OK) {
        tell_ending(rendezvous, 1, iris_i_fail_again(status, own));
    }
    if (rendezvous->announced != IRIS_OK) {
        iris_i_rendezvous_judge(
            &fates.causes, iris_i_fail_again(rendezvous->announced,
                                             rendezvous->announced_message));
    }
    iris_i_rendezvous_judge(&fates.losses,
                            iris_i_rendezvous_root_check(rendezvous));
    for (int rank = 1; rank < rendezvous->num_ranks; rank++) {
        hear_last(rendezvous, rank, &fates);
    }
    if (fates.causes.status == IRIS_OK) {
        fates.causes = fates.losses;
    }
    judge_silent(rendezvous, silent, fates.stopped, &fates.causes);
    if (fates.causes.status == IRIS_OK) {
        fates.causes = fates.heard;
    }
    for (int rank = 1; rank < rendezvous->num_ranks; rank++) {
        iris_i_rendezvous_send(rendezvous->socks[rank], &fates.causes, -1);
    }
    return status == IRIS_OK || !has_cause
               ? iris_i_rendezvous_accept(&fates.causes)
               : iris_i_fail_again(status, own);
}
