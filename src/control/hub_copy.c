/* SPDX-License-Identifier: MIT
 *
 * Applies messages to this rank's copy of the others' published states and
 * posts.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"

#include <stdlib.h>

iris_status_t iris_i_hub_copy_open(struct iris_hub_copy *copy, int num_ranks)
{
    copy->ended = calloc((size_t)num_ranks, sizeof *copy->ended);
    return copy->ended == NULL
               ? iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory")
               : iris_i_segment_private(num_ranks, &copy->segment);
}

void iris_i_hub_copy_close(struct iris_hub_copy *copy)
{
    iris_i_segment_release(copy->segment);
    free(copy->ended);
    *copy = (struct iris_hub_copy){.segment = NULL};
}

struct iris_board *iris_i_hub_board(const struct iris_hub_copy *copy, int rank)
{
    return iris_i_records_board(&copy->segment->records, rank);
}

struct iris_place *iris_i_hub_place(const struct iris_hub_copy *copy, int place)
{
    return iris_i_segment_place(copy->segment, place);
}

void iris_i_hub_write(struct iris_hub_copy *copy, int rank, unsigned parts,
                      const struct iris_shown *shown)
{
    int is_final =
        (parts & IRIS_SHOW_STATE) != 0 && shown->state == IRIS_RANK_LEFT;

    iris_i_board_write(iris_i_hub_board(copy, rank), parts, shown);
    if (copy->records != NULL && copy->elsewhere[rank] &&
        (copy->writes_boards || is_final)) {
        iris_i_board_write(iris_i_records_board(copy->records, rank), parts,
                           shown);
    }
}

static enum iris_hub_applied apply_shown(struct iris_hub_copy *copy,
                                         const struct iris_message_head *head,
                                         const unsigned char *body)
{
    struct iris_board *board = iris_i_hub_board(copy, head->from);
    unsigned parts = (unsigned)head->value & IRIS_SHOW_ALL;
    struct iris_shown shown = {0};

    if (parts != head->value ||
        !iris_i_message_unpack(parts, body, head->bytes, &shown)) {
        return IRIS_HUB_NONSENSE;
    }
    iris_i_hub_write(copy, head->from, parts, &shown);
    if (parts & IRIS_SHOW_STREAMS) {
        atomic_store_explicit(&board->streams, shown.streams,
                              memory_order_relaxed);
    }
    return parts & IRIS_SHOW_URGENT ? IRIS_HUB_URGENT : IRIS_HUB_PATIENT;
}

/* The last post of an agreement wakes all. */
static enum iris_hub_applied apply_post(struct iris_hub_copy *copy,
                                        const struct iris_message_head *head,
                                        const unsigned char *body)
{
    const struct iris_post_id id = {head->place, head->from, head->value};
    const struct iris_part parts[2] = {{body, head->bytes}, {NULL, 0}};

    return iris_i_place_post(iris_i_hub_place(copy, head->place), &id, parts,
                             head->members)
               ? IRIS_HUB_URGENT
               : IRIS_HUB_PATIENT;
}

/* Rank 0 passes on the answers to other ranks. */
static enum iris_hub_applied apply_answer(struct iris_hub_copy *copy,
                                          const struct iris_message_head *head,
                                          const unsigned char *body)
{
    if (head->members == copy->rank && copy->records != NULL &&
        copy->elsewhere[head->from]) {
        iris_i_mirror_take(copy->records, head, body);
    }
    return head->type == IRIS_MESSAGE_ANSWERED ? IRIS_HUB_URGENT
                                               : IRIS_HUB_PATIENT;
}

enum iris_hub_applied iris_i_hub_apply(struct iris_hub_copy *copy,
                                       const struct iris_message_head *head,
                                       const unsigned char *body)
{
    struct iris_place *place = iris_i_hub_place(copy, head->place);

    switch (head->type) {
    case IRIS_MESSAGE_SHOWN:
        return apply_shown(copy, head, body);
    case IRIS_MESSAGE_POST:
        return apply_post(copy, head, body);
    case IRIS_MESSAGE_FAIL:
        (void)iris_i_place_fail(place, (unsigned)head->value);
        return IRIS_HUB_URGENT;
    case IRIS_MESSAGE_HOLD:
        iris_i_place_hold(place, head->from);
        return IRIS_HUB_URGENT;
    case IRIS_MESSAGE_RELEASE:
        iris_i_place_release(place);
        return IRIS_HUB_URGENT;
    case IRIS_MESSAGE_ENDED:
        iris_i_hub_end(copy, head->from);
        return IRIS_HUB_URGENT;
    case IRIS_MESSAGE_QUERY:
        return IRIS_HUB_URGENT;
    case IRIS_MESSAGE_RECORD:
    case IRIS_MESSAGE_ANSWERED:
        return apply_answer(copy, head, body);
    default:
        return IRIS_HUB_NONSENSE;
    }
}

/* Readers of this host need not wait for answers. A rank that has finalized
 * has published that before it closed. */
static void tell_readers(struct iris_hub_copy *copy, int rank)
{
    const struct iris_mail_rank *ended = &copy->mail->ranks[rank];
    struct iris_shown shown;

    iris_i_board_read(iris_i_hub_board(copy, rank), IRIS_SHOW_STATE, &shown);
    if (copy->elsewhere[rank] && shown.state != IRIS_RANK_FINALIZED) {
        iris_i_mirror_end(copy->records, rank, ended->pid, ended->host);
    }
    for (int other = 1; rank == 0 && other < copy->mail->num_ranks; other++) {
        if (copy->elsewhere[other]) {
            iris_i_mirror_lose(copy->records, other);
        }
    }
}

/* Without rank 0 no rank hears of the others any more, so no group can go
 * on. */
void iris_i_hub_end(struct iris_hub_copy *copy, int rank)
{
    const unsigned mark = (unsigned)-IRIS_ERR_PEER_LOST << 16 | 1u;

    atomic_store(&copy->ended[rank], 1);
    if (copy->records != NULL) {
        tell_readers(copy, rank);
    }
    for (int place = 0; place < IRIS_PLACES; place++) {
        if (rank == 0 && place != 0 &&
            atomic_load(&iris_i_hub_place(copy, place)->users) == 0) {
            continue;
        }
        if (rank == 0) {
            (void)iris_i_place_fail(iris_i_hub_place(copy, place), mark);
        }
        iris_i_place_wake(iris_i_hub_place(copy, place));
    }
}
