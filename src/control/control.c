/* SPDX-License-Identifier: MIT
 *
 * The control plane of one rank: it shows its state, posts calls, reads the
 * others, watches their processes, and sends them descriptors.
 *
 * - Ranks of one node show and post in the node's table (table.c).
 * - In a job of several nodes the hub (hub.c) carries both between nodes.
 * - Other processes of this machine are watched by pidfds; descriptors go by
 *   local datagrams (mail.c).
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"
#include "control/records.h"

#include <stdio.h>
#include <string.h>

/* ---- Published state ---- */

static struct iris_board *find_board(struct iris_control *control, int rank)
{
    return iris_i_records_board(control->records, rank);
}

/* Something of this rank is new for the hub. */
static void mark_new(struct iris_control *control, unsigned parts,
                     uint64_t places)
{
    if (control->mail->num_nodes > 1) {
        iris_i_records_mark(control->records, control->rank, parts, places);
    }
}

void iris_i_control_publish(struct iris_control *control, unsigned parts,
                            const struct iris_shown *shown)
{
    iris_i_board_write(find_board(control, control->rank), parts, shown);
    mark_new(control, parts, 0);
}

void iris_i_control_wait_stream(struct iris_control *control, int change)
{
    if (control != NULL) {
        atomic_fetch_add_explicit(&find_board(control, control->rank)->streams,
                                  (unsigned)change, memory_order_relaxed);
        mark_new(control, IRIS_SHOW_STREAMS, 0);
    }
}

void iris_i_control_read(struct iris_control *control, int rank, unsigned parts,
                         struct iris_shown *shown_p)
{
    iris_i_board_read(find_board(control, rank), parts, shown_p);
}

/* ---- Posts ---- */

static struct iris_place *find_place(struct iris_control *control, int place)
{
    return iris_i_segment_place(control->segment, place);
}

void iris_i_control_post(struct iris_control *control,
                         const struct iris_post_id *id,
                         const struct iris_part parts[2], int expected)
{
    (void)iris_i_place_post(find_place(control, id->place), id, parts,
                            expected);
    mark_new(control, 0, (uint64_t)1 << id->place);
}

int iris_i_control_posted(struct iris_control *control,
                          const struct iris_post_id *id)
{
    return iris_i_place_posted(find_place(control, id->place), id);
}

unsigned iris_i_control_fail(struct iris_control *control, int place,
                             unsigned mark)
{
    unsigned first = iris_i_place_fail(find_place(control, place), mark);

    if (mark != 0 && first == mark && control->mail->num_nodes > 1) {
        atomic_fetch_or(&iris_i_records_header(control->records)->new_fails,
                        (uint64_t)1 << place);
        iris_i_records_tell_hub(control->records, 1);
    }
    return first;
}

/* ---- Places ---- */

iris_status_t iris_i_control_place_prepare(struct iris_control *control,
                                           int place, int *free_p)
{
    uint64_t held = 0;
    iris_status_t status;

    for (int rank = 0; rank < control->num_ranks; rank++) {
        held |= atomic_load_explicit(&find_board(control, rank)->holds,
                                     memory_order_acquire);
    }
    status = iris_i_segment_commit_place(control->segment, place);
    if (status != IRIS_OK) {
        return status;
    }
    *free_p = (held >> place & 1) == 0;
    if (*free_p) {
        iris_i_place_reset(find_place(control, place));
    }
    return IRIS_OK;
}

/* No member posts at the place before all hold it, so each may prepare the table
 * of its node: rank 0 has prepared another one. */
iris_status_t iris_i_control_place_hold(struct iris_control *control, int place,
                                        const int *ranks, int count)
{
    iris_status_t status = IRIS_OK;

    if (control->mail->num_nodes == 1) {
        iris_i_place_clear(find_place(control, place), control->rank);
    } else {
        status = iris_i_segment_commit_place(control->segment, place);
    }
    if (status != IRIS_OK) {
        return status;
    }
    if (control->mail->num_nodes > 1) {
        iris_i_place_reset(find_place(control, place));
        for (int i = 0; i < count; i++) {
            iris_i_place_clear(find_place(control, place), ranks[i]);
        }
    }
    control->own.holds |= (uint64_t)1 << place;
    iris_i_control_publish(control, IRIS_SHOW_HOLDS, &control->own);
    return IRIS_OK;
}

void iris_i_control_place_release(struct iris_control *control, int place)
{
    control->own.holds &= ~((uint64_t)1 << place);
    iris_i_control_publish(control, IRIS_SHOW_HOLDS, &control->own);
}

/* ---- Peers ---- */

/* Whether the process of this node's leader has ended, or its hub. */
static int is_leader_gone(struct iris_control *control)
{
    int leader = control->mail->ranks[control->rank].leader;

    return leader != control->rank &&
           (!iris_i_mail_alive(control->mail, leader) ||
            atomic_load(&find_board(control, leader)->ended));
}

/* The end of a far rank comes by the hubs, after its last messages. */
int iris_i_control_alive(struct iris_control *control, int rank)
{
    if (!control->mail->ranks[rank].is_far) {
        return iris_i_mail_alive(control->mail, rank);
    }
    return !atomic_load_explicit(&find_board(control, rank)->ended,
                                 memory_order_acquire) &&
           !is_leader_gone(control);
}

int iris_i_control_find_cut(struct iris_control *control, int rank)
{
    struct iris_shown shown;

    if (!control->mail->ranks[rank].is_far) {
        return -1;
    }
    iris_i_control_read(control, rank, IRIS_SHOW_ENDED, &shown);
    if (shown.ended) {
        return shown.cut_by <= (unsigned)control->num_ranks
                   ? (int)shown.cut_by - 1
                   : -1;
    }
    return is_leader_gone(control) ? control->mail->ranks[control->rank].leader
                                   : -1;
}

void iris_i_control_list_far(struct iris_control *control, int leader,
                             char *text, size_t bytes)
{
    int own = control->mail->ranks[control->rank].leader, first = -1;
    size_t length = 0;

    /* With the own leader all other nodes are lost. */
    text[0] = '\0';
    for (int rank = 0; rank <= control->num_ranks; rank++) {
        int is_cut =
            rank < control->num_ranks && rank != leader &&
            (leader == own ? control->mail->ranks[rank].is_far
                           : control->mail->ranks[rank].leader == leader);

        if (is_cut && first < 0) {
            first = rank;
        }
        if (is_cut || first < 0) {
            continue;
        }
        if (length + 24 < bytes) {
            length +=
                (size_t)snprintf(text + length, bytes - length,
                                 first == rank - 1 ? "%s%d" : "%s%d to %d",
                                 length == 0 ? "" : ", ", first, rank - 1);
        }
        first = -1;
    }
}

int iris_i_control_is_remote(struct iris_control *control, int rank)
{
    return control != NULL && control->mail->ranks[rank].is_remote;
}

void iris_i_control_name(struct iris_control *control, int rank,
                         char name[IRIS_RANK_NAME_BYTES])
{
    iris_i_mail_name(control->mail, rank, name);
}

int iris_i_control_send(struct iris_control *control, int rank,
                        const void *data, size_t bytes, int fd)
{
    return iris_i_mail_send(control->mail, rank, data, bytes, fd);
}

iris_status_t iris_i_control_receive(struct iris_control *control, void *data,
                                     size_t bytes, int timeout_ms,
                                     struct iris_sender *sender_p)
{
    const struct iris_inbox inbox = {control->log, data, bytes, timeout_ms};

    return iris_i_mail_receive(control->mail, &inbox, sender_p);
}
