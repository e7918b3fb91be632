/* SPDX-License-Identifier: MIT
 *
 * The control plane of ranks that share a node: posts and boards in shared
 * memory, a pidfd for each other process (readable once it has ended, zombie or
 * not, and immune to reuse of the pid), messages by local datagrams.
 */
#include "config.h"

#include "control/control.h"

#include "base/fd.h"
#include "base/shm.h"
#include "control/board.h"
#include "control/endpoint.h"
#include "control/rendezvous.h"
#include "control/segment.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
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
    struct shm_peer peers[];
};

static struct shm_control *shm_of(struct iris_control *control)
{
    return (struct shm_control *)control;
}

/* ---- What ranks show ---- */

static struct iris_board *board_of(struct iris_control *control, int rank)
{
    return iris_i_records_board(&shm_of(control)->segment->records, rank);
}

static void shm_publish(struct iris_control *control, unsigned parts,
                        const struct iris_shown *shown)
{
    iris_i_board_write(board_of(control, control->rank), parts, shown);
}

static void shm_wait_stream(struct iris_control *control, int change)
{
    atomic_fetch_add_explicit(&board_of(control, control->rank)->streams,
                              (unsigned)change, memory_order_relaxed);
}

static void shm_read(struct iris_control *control, int rank, unsigned parts,
                     struct iris_shown *shown_p)
{
    iris_i_board_read(board_of(control, rank), parts, shown_p);
}

/* ---- Posts ---- */

static struct iris_place *place_of(struct iris_control *control, int place)
{
    return iris_i_segment_place(shm_of(control)->segment, place);
}

static void shm_post(struct iris_control *control,
                     const struct iris_post_id *id,
                     const struct iris_part parts[2], int expected)
{
    iris_i_place_post(place_of(control, id->place), id, parts, expected);
}

static int shm_posted(struct iris_control *control,
                      const struct iris_post_id *id)
{
    return iris_i_place_posted(place_of(control, id->place), id);
}

static size_t shm_collect(struct iris_control *control,
                          const struct iris_post_id *id, size_t at, void *to,
                          size_t bytes)
{
    return iris_i_place_collect(place_of(control, id->place), id, at, to,
                                bytes);
}

static void shm_wait(struct iris_control *control, int place, int64_t ns,
                     int (*done)(void *arg), void *arg)
{
    iris_i_place_wait(place_of(control, place), ns, done, arg);
}

static unsigned shm_fail(struct iris_control *control, int place, unsigned mark)
{
    return iris_i_place_fail(place_of(control, place), mark);
}

/* ---- Places ---- */

static iris_status_t shm_place_prepare(struct iris_control *control, int place,
                                       int *free_p)
{
    iris_status_t status =
        iris_i_segment_commit_place(shm_of(control)->segment, place);

    if (status == IRIS_OK) {
        *free_p = iris_i_place_prepare(place_of(control, place));
    }
    return status;
}

static void shm_place_hold(struct iris_control *control, int place)
{
    iris_i_place_hold(place_of(control, place), control->rank);
}

static void shm_place_release(struct iris_control *control, int place)
{
    iris_i_place_release(place_of(control, place));
}

/* ---- Peers ---- */

static int shm_alive(struct iris_control *control, int rank)
{
    struct pollfd pollfd = {.fd = shm_of(control)->peers[rank].pidfd,
                            .events = POLLIN};

    return pollfd.fd < 0 || poll(&pollfd, 1, 0) <= 0;
}

static int shm_is_remote(struct iris_control *control, int rank)
{
    return shm_of(control)->peers[rank].pid != getpid();
}

static void shm_name(struct iris_control *control, int rank,
                     char name[IRIS_RANK_NAME_BYTES])
{
    snprintf(name, IRIS_RANK_NAME_BYTES, "rank %d (pid %d)", rank,
             shm_of(control)->peers[rank].pid);
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
    free(shm);
}

static const struct iris_control_ops ops = {
    .publish = shm_publish,
    .wait_stream = shm_wait_stream,
    .read = shm_read,
    .post = shm_post,
    .posted = shm_posted,
    .collect = shm_collect,
    .wait = shm_wait,
    .fail = shm_fail,
    .place_prepare = shm_place_prepare,
    .place_hold = shm_place_hold,
    .place_release = shm_place_release,
    .alive = shm_alive,
    .is_remote = shm_is_remote,
    .name = shm_name,
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
    shm->base.ops = &ops;
    shm->base.log = log;
    shm->base.rank = log->rank;
    shm->base.num_ranks = num_ranks;
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
    shm->base.records = &shm->segment->records;
    shm->base.record = iris_i_records_open(shm->base.records, shm->base.rank);
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
        shm->base.own.id = next_id();
        shm_publish(&shm->base, IRIS_SHOW_ID, &shm->base.own);
    }
    *control_p = &shm->base;
    return IRIS_OK;
}
