/* SPDX-License-Identifier: MIT
 *
 * Opening and closing the control plane of one rank: its listener, the node's table,
 * the hub of the node's leader.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"
#include "base/link.h"
#include "control/records.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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
        if (control->mail->ranks[rank].is_far) {
            iris_i_records_mark_elsewhere(control->records, rank);
        }
    }
}

static iris_status_t open_hub(struct iris_control *control,
                              struct iris_rendezvous *rendezvous,
                              struct iris_control_parts *parts)
{
    iris_status_t status = IRIS_OK;

    if (control->mail->num_nodes == 1) {
        return IRIS_OK;
    }
    mark_far(control);
    if (control->mail->ranks[control->rank].leader == control->rank) {
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
    } else if (control->records != NULL && control->mail->num_nodes > 1) {
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
    iris_i_mail_close(control->mail);
    iris_i_segment_release(control->records);
    free(control->mail);
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
    memcpy(control->record->host, control->mail->ranks[control->rank].host,
           sizeof control->record->host);
}

/* The control plane without its descriptors. NULL: no memory. */
static struct iris_control *make_control(const struct iris_log *log,
                                         int num_ranks)
{
    struct iris_control *control = calloc(1, sizeof *control);
    struct iris_mail *mail = calloc(1, sizeof *mail);

    if (control == NULL || mail == NULL) {
        free(control);
        free(mail);
        return NULL;
    }
    control->mail = mail;
    control->log = log;
    control->rank = log->rank;
    control->num_ranks = num_ranks;
    return control;
}

static int has_mates(const struct iris_control *control)
{
    const struct iris_mail_rank *ranks = control->mail->ranks;

    for (int rank = 0; rank < control->num_ranks; rank++) {
        if (ranks[rank].leader == control->rank && ranks[rank].is_remote) {
            return 1;
        }
    }
    return 0;
}

static iris_status_t join_control(struct iris_control *control,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts)
{
    iris_status_t status = iris_i_mail_open(control->mail, rendezvous);

    if (status == IRIS_OK) {
        status = iris_i_mail_watch(control->mail);
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
        control->mail->endpoint = parts->endpoint;
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
    struct iris_control *control = make_control(log, rendezvous->num_ranks);
    iris_status_t status =
        control == NULL
            ? iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %d ranks",
                          rendezvous->num_ranks)
            : join_control(control, rendezvous, parts);

    iris_i_control_parts_close(parts); /* those that nobody has taken over */
    if (status == IRIS_OK) {
        *control_p = control;
    } else {
        iris_i_control_close(control);
    }
    return status;
}

/* ---- Going on with fewer ranks ---- */

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
    iris_i_mail_keep(control->mail, survivors);
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
    iris_i_rendezvous_close(&parts->listener);
    iris_i_rendezvous_close(&parts->wake);
    *parts = (struct iris_control_parts)IRIS_CONTROL_NO_PARTS;
}
