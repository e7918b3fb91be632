/* SPDX-License-Identifier: MIT
 *
 * Queries for flight records.
 */
#include "config.h"

#include "control/internal.h"

#include <poll.h>

/* A connection with more pending bytes gets no answers. A report without them
 * is better than the loss of the rank (IRIS_LINK_MOST). */
#define PENDING_MOST (IRIS_LINK_MOST / 2)

int iris_i_hub_is_answer(const struct iris_message_head *head)
{
    return head->type == IRIS_MESSAGE_RECORD ||
           head->type == IRIS_MESSAGE_ANSWERED;
}

static void put(struct iris_link *link, const struct iris_message_head *head,
                const struct iris_part parts[2])
{
    if (link->sock >= 0 && link->rank >= 0 && !link->is_stuck &&
        link->out_bytes - link->out_at < PENDING_MOST) {
        (void)iris_i_link_put(link, head, parts);
    }
}

void iris_i_hub_pass_on(struct iris_hub *hub,
                        const struct iris_message_head *head,
                        const struct iris_part parts[2])
{
    if (head->members != 0) {
        put(&hub->links[head->members], head, parts);
    }
}

static void send_answer(void *arg, const struct iris_message_head *head,
                        const struct iris_part parts[2])
{
    struct iris_hub *hub = arg;

    pthread_mutex_lock(&hub->lock);
    put(&hub->links[hub->rank == 0 ? head->members : 0], head, parts);
    pthread_mutex_unlock(&hub->lock);
}

void iris_i_hub_answer(struct iris_hub *hub,
                       const struct iris_message_head *query)
{
    const struct iris_mirror_way way = {send_answer, hub};

    if (hub->copy.elsewhere != NULL && hub->copy.elsewhere[query->from]) {
        iris_i_records_note_wanted(hub->copy.records);
        iris_i_mirror_answer(hub->copy.records, hub->rank, query, &way);
    }
}
