/* SPDX-License-Identifier: MIT
 *
 * What messages mean for this rank's copy of what the others show and post.
 */
#include "config.h"

#include "control/hub.h"

#include "control/board.h"

#include <stdio.h>
#include <string.h>

struct iris_board *iris_i_hub_board(struct iris_hub *hub, int rank)
{
    return iris_i_records_board(&hub->copy->records, rank);
}

struct iris_place *iris_i_hub_place(struct iris_hub *hub, int place)
{
    return iris_i_segment_place(hub->copy, place);
}

static int apply_shown(struct iris_hub *hub,
                       const struct iris_message_head *head,
                       const unsigned char *body)
{
    struct iris_board *board = iris_i_hub_board(hub, head->from);
    unsigned parts = (unsigned)head->value & IRIS_SHOW_ALL;
    struct iris_shown shown = {0};

    if (parts != head->value ||
        !iris_i_message_unpack(parts, body, head->bytes, &shown)) {
        return 0;
    }
    iris_i_board_write(board, parts, &shown);
    if (parts & IRIS_SHOW_STREAMS) {
        atomic_store_explicit(&board->streams, shown.streams,
                              memory_order_relaxed);
    }
    return 1;
}

static void apply_post(struct iris_hub *hub,
                       const struct iris_message_head *head,
                       const unsigned char *body)
{
    const struct iris_post_id id = {head->place, head->from, head->value};
    const struct iris_part parts[2] = {{body, head->bytes}, {NULL, 0}};

    iris_i_place_post(iris_i_hub_place(hub, head->place), &id, parts, 1);
}

int iris_i_hub_apply(struct iris_hub *hub, const struct iris_message_head *head,
                     const unsigned char *body)
{
    struct iris_place *place = iris_i_hub_place(hub, head->place);

    switch (head->type) {
    case IRIS_MESSAGE_SHOWN:
        return apply_shown(hub, head, body);
    case IRIS_MESSAGE_POST:
        apply_post(hub, head, body);
        return 1;
    case IRIS_MESSAGE_FAIL:
        (void)iris_i_place_fail(place, (unsigned)head->value);
        return 1;
    case IRIS_MESSAGE_HOLD:
        iris_i_place_hold(place, head->from);
        return 1;
    case IRIS_MESSAGE_RELEASE:
        iris_i_place_release(place);
        return 1;
    case IRIS_MESSAGE_ENDED:
        iris_i_hub_end(hub, head->from);
        return 1;
    default:
        return 0;
    }
}

/* Without rank 0 nobody hears of the others any more: no group goes on. */
void iris_i_hub_end(struct iris_hub *hub, int rank)
{
    const unsigned mark = (unsigned)-IRIS_ERR_PEER_LOST << 16 | 1u;

    atomic_store(&hub->ended[rank], 1);
    for (int place = 0; place < IRIS_PLACES; place++) {
        if (rank == 0 && place != 0 &&
            atomic_load(&iris_i_hub_place(hub, place)->users) == 0) {
            continue;
        }
        if (rank == 0) {
            (void)iris_i_place_fail(iris_i_hub_place(hub, place), mark);
        }
        iris_i_place_wake(iris_i_hub_place(hub, place));
    }
}

/* Takes as long wherever the first difference is. */
static int is_secret(const unsigned char *a, const unsigned char *b)
{
    unsigned difference = 0;

    for (int i = 0; i < IRIS_SECRET_BYTES; i++) {
        difference |= (unsigned)(a[i] ^ b[i]);
    }
    return difference == 0;
}

int iris_i_hub_check_hello(const struct iris_hub *hub,
                           const struct iris_message_head *head,
                           const unsigned char *body,
                           char why[IRIS_MESSAGE_WHY_BYTES])
{
    struct iris_message_hello hello;

    if (head->type != IRIS_MESSAGE_HELLO) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES,
                 "its first message is of type %u, not a hello", head->type);
        return 0;
    }
    memcpy(&hello, body, sizeof hello);
    if (!is_secret(hello.secret, hub->hello.secret)) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES, "it does not know the job's key");
        return 0;
    }
    if (hello.num_ranks != hub->hello.num_ranks || head->from == 0) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES,
                 "it is rank %u of %u, and the job has ranks 1 to %d to come",
                 head->from, hello.num_ranks, hub->num_ranks - 1);
        return 0;
    }
    if (hub->links[head->from].sock >= 0 ||
        atomic_load(&hub->ended[head->from])) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES, "rank %u has come already",
                 head->from);
        return 0;
    }
    return 1;
}
