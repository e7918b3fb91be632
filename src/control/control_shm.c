/* SPDX-License-Identifier: MIT
 *
 * The control plane of ranks that share a node: posts and boards in shared
 * memory, a pidfd for each other process (readable once it has ended, zombie or
 * not, and immune to reuse of the pid), messages by local datagrams.
 */
#include "config.h"

#include "control/control.h"

#include "base/fd.h"
#include "base/futex.h"
#include "base/shm.h"
#include "control/endpoint.h"
#include "control/rendezvous.h"
#include "control/segment.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct shm_peer {
    int pid;
    int pidfd; /* -1: a thread of this process */
    char name[IRIS_ENDPOINT_NAME_BYTES];
};

struct shm_control {
    struct iris_control base;
    struct iris_segment *segment;
    struct iris_endpoint *endpoint; /* NULL: nothing is sent */
    int *pids;
    struct shm_peer peers[];
};

static struct shm_control *shm_of(struct iris_control *control)
{
    return (struct shm_control *)control;
}

/* ---- Posts ---- */

static struct iris_board *shm_board(struct iris_control *control, int rank)
{
    return iris_i_segment_board(shm_of(control)->segment, rank);
}

static struct iris_place *place_of(struct iris_control *control, int place)
{
    return iris_i_segment_place(shm_of(control)->segment, place);
}

static struct iris_post *shm_draft(struct iris_control *control, int place,
                                   uint64_t seq)
{
    return &place_of(control, place)->posts[2 * control->rank + (int)(seq % 2)];
}

/* Sequentially consistent with the sleeper's announcement, so that one of the
 * two sees the other. */
static void wake_all(struct iris_place *place)
{
    atomic_fetch_add(&place->wakes, 1);
    if (atomic_load(&place->sleepers) != 0) {
        iris_i_futex_wake(&place->wakes);
    }
}

static void shm_post(struct iris_control *control, int place, uint64_t seq,
                     int expected)
{
    struct iris_place *shared = place_of(control, place);

    atomic_store_explicit(&shm_draft(control, place, seq)->seq, seq,
                          memory_order_release);
    /* Only the last to come wakes the others, each once. */
    if ((atomic_fetch_add(&shared->num_posts, 1) + 1) % (unsigned)expected ==
        0) {
        wake_all(shared);
    }
}

static const struct iris_post *shm_peek(struct iris_control *control, int place,
                                        int rank, uint64_t seq)
{
    const struct iris_post *post =
        &place_of(control, place)->posts[2 * rank + (int)(seq % 2)];

    return atomic_load_explicit(&post->seq, memory_order_acquire) >= seq ? post
                                                                         : NULL;
}

static void shm_wait(struct iris_control *control, int place, int64_t ns,
                     int (*done)(void *arg), void *arg)
{
    struct iris_place *shared = place_of(control, place);
    unsigned seen;

    atomic_fetch_add(&shared->sleepers, 1);
    seen = atomic_load(&shared->wakes);
    if (!done(arg)) {
        iris_i_futex_wait(&shared->wakes, seen, ns);
    }
    atomic_fetch_sub(&shared->sleepers, 1);
}

static unsigned shm_fail(struct iris_control *control, int place, unsigned mark)
{
    struct iris_place *shared = place_of(control, place);
    unsigned none = 0;

    if (mark != 0) {
        atomic_compare_exchange_strong(&shared->failed, &none, mark);
        wake_all(shared);
    }
    return atomic_load_explicit(&shared->failed, memory_order_acquire);
}

/* ---- Places ---- */

static iris_status_t shm_place_prepare(struct iris_control *control, int place,
                                       int *free_p)
{
    struct iris_place *shared = place_of(control, place);
    iris_status_t status =
        iris_i_segment_commit_place(shm_of(control)->segment, place);

    if (status != IRIS_OK) {
        return status;
    }
    *free_p = atomic_load_explicit(&shared->users, memory_order_acquire) == 0;
    if (*free_p) {
        atomic_store(&shared->failed, 0);
        atomic_store(&shared->num_posts, 0);
    }
    return IRIS_OK;
}

/* Clears what the place's last holders left of this rank's. */
static void shm_place_hold(struct iris_control *control, int place)
{
    for (uint64_t parity = 0; parity < 2; parity++) {
        atomic_store_explicit(&shm_draft(control, place, parity)->seq, 0,
                              memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&place_of(control, place)->users, 1,
                              memory_order_relaxed);
}

static void shm_place_release(struct iris_control *control, int place)
{
    atomic_fetch_sub_explicit(&place_of(control, place)->users, 1,
                              memory_order_release);
}

/* ---- Peers ---- */

static int shm_alive(struct iris_control *control, int rank)
{
    struct pollfd pollfd = {.fd = shm_of(control)->peers[rank].pidfd,
                            .events = POLLIN};

    return pollfd.fd < 0 || poll(&pollfd, 1, 0) <= 0;
}

static int shm_send(struct iris_control *control, int rank, const void *data,
                    size_t bytes, int fd)
{
    struct shm_control *shm = shm_of(control);

    return shm->endpoint == NULL
               ? ENOTSOCK
               : iris_i_endpoint_send(shm->endpoint, shm->peers[rank].name,
                                      data, bytes, fd);
}

/* The rank whose process sent it and that it claims to be of, by its first
 * word; -1: none of ours. */
static int sender_of(const struct shm_control *shm, const void *data,
                     size_t bytes, const struct iris_letter *letter)
{
    int32_t rank = -1;

    if (letter->bytes == (ssize_t)bytes) {
        memcpy(&rank, data, sizeof rank);
    }
    if (rank < 0 || rank >= shm->base.num_ranks ||
        letter->pid != shm->peers[rank].pid ||
        (letter->uid != geteuid() && letter->uid != getuid())) {
        iris_i_warning(shm->base.log,
                       "dropped a message of pid %ld, uid %ld, which is not "
                       "one of our ranks",
                       (long)letter->pid, (long)letter->uid);
        return -1;
    }
    return rank;
}

static iris_status_t shm_receive(struct iris_control *control, void *data,
                                 size_t bytes, int timeout_ms,
                                 struct iris_sender *sender_p)
{
    struct shm_control *shm = shm_of(control);
    struct iris_letter letter;
    iris_status_t status = IRIS_OK;

    *sender_p = (struct iris_sender){.rank = -1, .fd = -1};
    if (timeout_ms > 0) {
        status = iris_i_endpoint_wait(shm->endpoint, control->log, timeout_ms);
    }
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_endpoint_take(shm->endpoint, data, bytes, &letter);
    if (letter.bytes < 0) {
        return IRIS_OK;
    }
    sender_p->rank = sender_of(shm, data, bytes, &letter);
    if (sender_p->rank >= 0) {
        sender_p->fd = letter.fd;
    } else if (letter.fd >= 0) {
        close(letter.fd);
    }
    return letter.fd_dropped && sender_p->rank >= 0
               ? iris_i_fail_fd(EMFILE, "cannot take a peer's descriptor")
               : IRIS_OK;
}

/* ---- Opening and closing ---- */

static void shm_close(struct iris_control *control)
{
    struct shm_control *shm = shm_of(control);

    for (int rank = 0; rank < control->num_ranks; rank++) {
        if (shm->peers[rank].pidfd >= 0) {
            close(shm->peers[rank].pidfd);
        }
    }
    iris_i_endpoint_close(shm->endpoint);
    iris_i_segment_release(shm->segment);
    free(shm->pids);
    free(shm);
}

static const struct iris_control_ops ops = {
    .board = shm_board,
    .draft = shm_draft,
    .post = shm_post,
    .peek = shm_peek,
    .wait = shm_wait,
    .fail = shm_fail,
    .place_prepare = shm_place_prepare,
    .place_hold = shm_place_hold,
    .place_release = shm_place_release,
    .alive = shm_alive,
    .send = shm_send,
    .receive = shm_receive,
    .close = shm_close,
};

static iris_status_t watch(struct shm_peer *peer, int rank, int own_pid)
{
    if (peer->pid == own_pid) {
        return IRIS_OK;
    }
    peer->pidfd =
        iris_i_fd_above_stdio((int)syscall(SYS_pidfd_open, peer->pid, 0));
    if (peer->pidfd >= 0) {
        return IRIS_OK;
    }
    if (errno == ESRCH) {
        return iris_i_fail(NULL, IRIS_ERR_PEER_LOST,
                           "rank %d (pid %d) died during init", rank,
                           peer->pid);
    }
    return iris_i_fail_fd(errno, "cannot watch a peer's process");
}

static struct shm_control *make(const struct iris_log *log, int num_ranks)
{
    struct shm_control *shm =
        calloc(1, sizeof *shm + (size_t)num_ranks * sizeof shm->peers[0]);

    if (shm == NULL) {
        return NULL;
    }
    shm->pids = calloc((size_t)num_ranks, sizeof *shm->pids);
    if (shm->pids == NULL) {
        free(shm);
        return NULL;
    }
    shm->base.ops = &ops;
    shm->base.log = log;
    shm->base.rank = log->rank;
    shm->base.num_ranks = num_ranks;
    shm->base.reports_fd = -1;
    shm->base.pids = shm->pids;
    for (int rank = 0; rank < num_ranks; rank++) {
        shm->peers[rank].pidfd = -1;
    }
    return shm;
}

/* Ranks can tell by it which of their contexts is which of a peer's. */
static uint64_t next_id(void)
{
    static atomic_uint count;

    return ((uint64_t)getpid() << 32) + atomic_fetch_add(&count, 1) + 1;
}

static void open_record(struct shm_control *shm)
{
    struct iris_segment_header *header = iris_i_segment_header(shm->segment);

    shm->base.record = iris_i_segment_open_record(shm->segment, shm->base.rank);
    shm->base.reports_fd = shm->segment->fd;
    shm->base.reported = &header->reported;
    shm->base.last_report_ns = &header->last_ns;
    shm->base.num_reports = &header->num_reports;
    if (shm->base.record == NULL) {
        iris_i_warning(shm->base.log,
                       "no flight record of this rank, so that reports of "
                       "hangs say less: %s",
                       iris_last_error());
    }
}

iris_status_t iris_i_control_shm_open(const struct iris_log *log,
                                      struct iris_rendezvous *rendezvous,
                                      struct iris_endpoint *endpoint,
                                      struct iris_control **control_p)
{
    struct shm_control *shm = make(log, rendezvous->num_ranks);
    iris_status_t status = IRIS_OK;
    int own_pid = (int)getpid();

    if (shm == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %d ranks",
                           rendezvous->num_ranks);
    }
    for (int rank = 0; status == IRIS_OK && rank < rendezvous->num_ranks;
         rank++) {
        const struct iris_hello *hello = &rendezvous->hellos[rank];

        shm->peers[rank].pid = rank == log->rank ? own_pid : hello->pid;
        shm->pids[rank] = shm->peers[rank].pid;
        memcpy(shm->peers[rank].name, hello->endpoint,
               sizeof shm->peers[rank].name);
        status = watch(&shm->peers[rank], rank, own_pid);
    }
    if (status != IRIS_OK) {
        shm_close(&shm->base); /* segment and endpoint are the caller's yet */
        return status;
    }
    shm->segment = rendezvous->segment;
    rendezvous->segment = NULL;
    shm->endpoint = endpoint;
    open_record(shm);
    if (log->rank == 0) {
        atomic_store(&shm_board(&shm->base, 0)->id, next_id());
    }
    *control_p = &shm->base;
    return IRIS_OK;
}

int iris_i_control_is_remote(const struct iris_control *control, int rank)
{
    return control != NULL && control->pids[rank] != getpid();
}

void iris_i_control_close(struct iris_control *control)
{
    if (control != NULL) {
        control->ops->close(control);
    }
}
