/* SPDX-License-Identifier: MIT
 *
 * The control plane of ranks that share a node. Posts and boards are in shared
 * memory. Each other process is watched by a pidfd. Messages are local
 * datagrams.
 */
#include "config.h"

#include "control/internal.h"

#include <stdlib.h>
#include <string.h>

struct shm_control {
    struct iris_control base;
    struct iris_segment *segment;
    struct iris_mail mail;
};

static struct shm_control *shm_of(struct iris_control *control)
{
    return (struct shm_control *)control;
}

/* ---- Published state ---- */

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
    (void)iris_i_place_post(place_of(control, id->place), id, parts, expected);
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
    return iris_i_mail_alive(&shm_of(control)->mail, rank);
}

static int shm_is_remote(struct iris_control *control, int rank)
{
    return iris_i_mail_is_remote(&shm_of(control)->mail, rank);
}

static void shm_name(struct iris_control *control, int rank,
                     char name[IRIS_RANK_NAME_BYTES])
{
    iris_i_mail_name(&shm_of(control)->mail, rank, name);
}

static int shm_send(struct iris_control *control, int rank, const void *data,
                    size_t bytes, int fd)
{
    return iris_i_mail_send(&shm_of(control)->mail, rank, data, bytes, fd);
}

static iris_status_t shm_receive(struct iris_control *control, void *data,
                                 size_t bytes, int timeout_ms,
                                 struct iris_sender *sender_p)
{
    const struct iris_inbox inbox = {control->log, data, bytes, timeout_ms};

    return iris_i_mail_receive(&shm_of(control)->mail, &inbox, sender_p);
}

/* ---- Opening and closing ---- */

static void shm_close(struct iris_control *control)
{
    struct shm_control *shm = shm_of(control);

    iris_i_mail_close(&shm->mail);
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

iris_status_t iris_i_control_shm_open(const struct iris_log *log,
                                      struct iris_rendezvous *rendezvous,
                                      struct iris_endpoint *endpoint,
                                      struct iris_control **control_p)
{
    struct shm_control *shm = calloc(1, sizeof *shm);
    iris_status_t status;

    if (shm == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %d ranks",
                           rendezvous->num_ranks);
    }
    shm->base.ops = &ops;
    shm->base.mail = &shm->mail;
    shm->base.log = log;
    shm->base.rank = log->rank;
    shm->base.num_ranks = rendezvous->num_ranks;
    status = iris_i_mail_open(&shm->mail, rendezvous);
    if (status == IRIS_OK) {
        status = iris_i_mail_watch(&shm->mail, 1);
    }
    if (status != IRIS_OK) {
        shm_close(&shm->base); /* the caller still owns segment and endpoint */
        return status;
    }
    shm->segment = rendezvous->segment;
    rendezvous->segment = NULL;
    shm->mail.endpoint = endpoint;
    iris_i_control_open_record(&shm->base, &shm->segment->records);
    if (log->rank == 0) {
        shm->base.own.id = iris_i_control_next_id();
        shm_publish(&shm->base, IRIS_SHOW_ID, &shm->base.own);
    }
    *control_p = &shm->base;
    return IRIS_OK;
}
