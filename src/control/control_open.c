/* SPDX-License-Identifier: MIT
 *
 * A rank's control plane from its opening to its end: the ranks of the job and
 * their processes, the node's table, the leader's hub, and what a shrink keeps.
 *
 *   before the rendezvous   a rank of a job of several nodes listens
 *   after it                it has its node's table, and watches processes; the
 *                           leader of the node opens the hub
 *   at the end              the leader's hub stays for the other ranks
 */
#include "config.h"

#include "control/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- Ranks ---- */

static iris_status_t fail_memory_for_ranks(int num_ranks)
{
    return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %d ranks",
                       num_ranks);
}

/* The lowest rank of that rank's node. */
static int find_leader(const struct iris_hello *hellos, int rank)
{
    int lowest = 0;

    while (!iris_i_hello_same_node(&hellos[lowest], &hellos[rank])) {
        lowest++;
    }
    return lowest;
}

/* From the ranks' hellos. */
static iris_status_t list_peers(struct iris_control *control,
                                const struct iris_rendezvous *rendezvous)
{
    const struct iris_hello *own = &rendezvous->hellos[rendezvous->rank];
    int own_pid = (int)getpid(); /* read once: it is a system call */

    control->peers = calloc((size_t)control->num_ranks, sizeof *control->peers);
    if (control->peers == NULL) {
        return fail_memory_for_ranks(control->num_ranks);
    }
    for (int rank = 0; rank < control->num_ranks; rank++) {
        const struct iris_hello *hello = &rendezvous->hellos[rank];
        struct iris_peer *peer = &control->peers[rank];

        peer->pidfd = -1;
        peer->pid = hello == own ? own_pid : hello->pid;
        peer->is_here = iris_i_hello_same_host(hello, own);
        peer->is_remote = peer->pid != own_pid || !peer->is_here;
        peer->is_far = !iris_i_hello_same_node(hello, own);
        peer->leader = find_leader(rendezvous->hellos, rank);
        control->num_nodes += peer->leader == rank;
        snprintf(peer->host, sizeof peer->host, "%.*s",
                 (int)sizeof hello->host_name - 1, hello->host_name);
        memcpy(peer->name, hello->endpoint, sizeof peer->name);
    }
    return IRIS_OK;
}

/* Where the system or a container forbids pidfds, the start of the process tells
 * it from a later one with the same number. */
static iris_status_t watch_peer(struct iris_peer *peer, int rank)
{
    struct iris_process process;
    int ret;

    peer->pidfd = iris_i_process_watch(peer->pid);
    ret = peer->pidfd < 0 ? errno : 0;
    if (ret == EPERM || ret == EACCES || ret == ENOSYS) {
        ret = iris_i_process_read(peer->pid, &process) ? 0 : ESRCH;
        peer->start_ticks = ret == 0 ? process.start_ticks : 0;
    }
    if (ret == ESRCH) {
        return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                           "rank %d (pid %d) died during init", rank,
                           peer->pid);
    }
    return ret == 0 ? IRIS_OK
                    : iris_i_fail_fd(ret, "cannot watch a peer's process");
}

/* Watches every other process of this machine by a pidfd. It becomes readable
 * once the process has ended, also as a zombie and also if a child holds its
 * descriptors, and is immune to reuse of the pid. IRIS_ERR_PEER_LOST,
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
static iris_status_t watch_peers(const struct iris_control *control)
{
    iris_status_t status = IRIS_OK;

    for (int rank = 0; status == IRIS_OK && rank < control->num_ranks; rank++) {
        struct iris_peer *peer = &control->peers[rank];

        if (peer->is_remote && peer->is_here) {
            status = watch_peer(peer, rank);
        }
    }
    return status;
}

/* ---- Opening ---- */

/* Time that a leader stays for ranks of its node that have not ended yet, so that
 * all their messages reach the others. It applies after the leader has finalized,
 * but not beyond the deadline of iris_finalize(), and after it left. */
#define STAY_MS 10000
#define STAY_LEFT_MS 500

static uint64_t next_id(void)
{
    static atomic_uint count;

    return ((uint64_t)getpid() << 32) + atomic_fetch_add(&count, 1) + 1;
}

static iris_status_t listen_for_ranks(enum iris_control_kind kind,
                                      struct iris_hello *hello,
                                      struct iris_control_parts *parts)
{
    iris_status_t status;

    parts->listener = iris_i_stream_socket(kind, &hello->control_address);
    if (parts->listener < 0 || (parts->wake = iris_i_fd_above_stdio(eventfd(
                                    0, EFD_CLOEXEC | EFD_NONBLOCK))) < 0) {
        return iris_i_fail_fd(errno, "cannot make the control plane's socket");
    }
    status = iris_i_secret_random(hello->control_secret,
                                  sizeof hello->control_secret);
    return status == IRIS_OK ? iris_i_stream_listen(parts->listener, kind,
                                                    &hello->control_address)
                             : status;
}

static void mark_far(struct iris_control *control)
{
    for (int rank = 0; rank < control->num_ranks; rank++) {
        if (control->peers[rank].is_far) {
            iris_i_records_mark_elsewhere(control->records, rank);
        }
    }
}

static iris_status_t open_hub(struct iris_control *control,
                              struct iris_rendezvous *rendezvous,
                              struct iris_control_parts *parts)
{
    iris_status_t status = IRIS_OK;

    if (control->num_nodes == 1) {
        return IRIS_OK;
    }
    mark_far(control);
    if (control->peers[control->rank].leader == control->rank) {
        status = iris_i_hub_open(control, rendezvous, parts, &control->hub);
    }
    return status;
}

static int choose_stay(const struct iris_control *control)
{
    int64_t left =
        control->by_ns == 0 ? INT64_MAX : control->by_ns - iris_i_now_ns();

    if (control->own.state != IRIS_RANK_FINALIZED ||
        left < STAY_LEFT_MS * IRIS_NS_PER_MS) {
        return STAY_LEFT_MS;
    }
    return left < STAY_MS * IRIS_NS_PER_MS ? (int)(left / IRIS_NS_PER_MS)
                                           : STAY_MS;
}

/* A leader's own end is its hub's. */
static void close_hub(struct iris_control *control)
{
    if (control->hub != NULL) {
        iris_i_hub_close(control->hub, choose_stay(control));
    } else if (control->records != NULL && control->num_nodes > 1) {
        control->own.ended = 1;
        iris_i_control_publish(control, IRIS_SHOW_ENDED, &control->own);
    }
}

void iris_i_control_close(struct iris_control *control)
{
    if (control == NULL) {
        return;
    }
    close_hub(control);
    for (int i = 0; control->peers != NULL && i < control->num_ranks; i++) {
        iris_i_fd_close(&control->peers[i].pidfd);
    }
    iris_i_endpoint_close(control->endpoint);
    iris_i_segment_release(control->records);
    free(control->peers);
    free(control);
}

iris_status_t iris_i_control_prepare(enum iris_control_kind kind,
                                     struct iris_hello *hello_p,
                                     struct iris_control_parts *parts)
{
    hello_p->control = (int32_t)kind;
    return kind == IRIS_CONTROL_SHM ? IRIS_OK
                                    : listen_for_ranks(kind, hello_p, parts);
}

static void open_record(struct iris_control *control)
{
    control->record = iris_i_records_open(control->records, control->rank);
    if (control->record == NULL) {
        iris_i_warning(control->log,
                       "no flight record of this rank, so that reports of "
                       "hangs say less: %s",
                       iris_last_error());
        return;
    }
    memcpy(control->record->host, control->peers[control->rank].host,
           sizeof control->record->host);
}

static int has_mates(const struct iris_control *control)
{
    for (int rank = 0; rank < control->num_ranks; rank++) {
        if (control->peers[rank].leader == control->rank &&
            control->peers[rank].is_remote) {
            return 1;
        }
    }
    return 0;
}

static iris_status_t join_control(struct iris_control *control,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts)
{
    iris_status_t status = list_peers(control, rendezvous);

    if (status == IRIS_OK) {
        status = watch_peers(control);
    }
    if (status != IRIS_OK) {
        return status;
    }
    control->records = rendezvous->segment;
    rendezvous->segment = NULL;
    open_record(control);
    if (control->rank == 0) {
        control->own.id = next_id();
        iris_i_control_publish(control, IRIS_SHOW_ID, &control->own);
    }
    status = open_hub(control, rendezvous, parts);
    if (status == IRIS_OK) {
        control->endpoint = parts->endpoint;
        parts->endpoint = NULL;
        control->serves = control->hub != NULL && has_mates(control);
    }
    return status;
}

iris_status_t iris_i_control_open(const struct iris_log *log,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts,
                                  struct iris_control **control_p)
{
    struct iris_control *control = calloc(1, sizeof *control);
    iris_status_t status;

    if (control == NULL) {
        status = fail_memory_for_ranks(rendezvous->num_ranks);
    } else {
        control->log = log;
        control->rank = log->rank;
        control->num_ranks = rendezvous->num_ranks;
        status = join_control(control, rendezvous, parts);
    }
    iris_i_control_parts_close(parts); /* those that nobody has taken over */
    if (status == IRIS_OK) {
        *control_p = control;
    } else {
        iris_i_control_close(control);
    }
    return status;
}

/* ---- Going on with fewer ranks ---- */

/* Drops the other ranks; the survivors keep their order. */
static void keep_peers(struct iris_control *control, const uint64_t *survivors)
{
    int count = 0;

    for (int rank = 0; rank < control->num_ranks; rank++) {
        if (iris_i_has_survived(survivors, rank)) {
            control->peers[count] = control->peers[rank];
            control->peers[count++].leader = 0;
        } else {
            iris_i_fd_close(&control->peers[rank].pidfd);
        }
    }
}

iris_status_t iris_i_control_renew(struct iris_control *control,
                                   const uint64_t *survivors)
{
    struct iris_table *old = control->records;
    int count = 0, own = 0;
    iris_status_t status;

    for (int rank = 0; rank < control->num_ranks; rank++) {
        own += rank < control->rank && iris_i_has_survived(survivors, rank);
        count += iris_i_has_survived(survivors, rank);
    }
    status = iris_i_segment_follow(old, count, &control->records);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_segment_release(old);
    keep_peers(control, survivors);
    control->rank = own;
    control->num_ranks = count;
    atomic_store(&control->lost, 0);
    control->called = NULL;
    control->own = (struct iris_shown){.state = IRIS_RANK_RUNNING};
    open_record(control);
    if (own == 0) {
        control->own.id = next_id();
        iris_i_segment_show(control->records);
    }
    iris_i_control_publish(control, IRIS_SHOW_ID | IRIS_SHOW_STATE,
                           &control->own);
    return IRIS_OK;
}

void iris_i_control_drop_old(struct iris_control *control)
{
    if (control->rank == 0) {
        iris_i_segment_drop_old(control->records);
    }
}

void iris_i_control_parts_close(struct iris_control_parts *parts)
{
    iris_i_endpoint_close(parts->endpoint);
    iris_i_fd_close(&parts->listener);
    iris_i_fd_close(&parts->wake);
    *parts = (struct iris_control_parts)IRIS_CONTROL_NO_PARTS;
}
