/* SPDX-License-Identifier: MIT
 *
 * The ends of messages.
 */
#include "config.h"

#include "trace_items.h"
#include "base/base.h"

#include <string.h>

int trace_items_add(struct trace_items *items, const struct trace_item *send,
                    const struct trace_item *receive)
{
    uint64_t tag = items->count / 2 + 1;

    for (int is_send = 1; is_send >= 0; is_send--) {
        void *more =
            iris_i_grow(items->items, items->count, sizeof *items->items);
        struct trace_item *item;

        if (more == NULL) {
            return -1;
        }
        items->items = more;
        item = &items->items[items->count++];
        *item = is_send ? *send : *receive;
        item->is_send = is_send;
        item->peer = is_send ? receive->rank : send->rank;
        item->bytes = send->bytes;
        item->tag = tag;
    }
    return 0;
}

struct trace_item trace_item_at(const struct iris_flow_end *at)
{
    struct trace_item item = {
        .rank = at->pid, .begin_ns = at->ns, .ns = at->ns};

    memcpy(item.tid, at->tid, sizeof item.tid);
    return item;
}

struct trace_item trace_item_of_network(int rank, int64_t ns)
{
    struct trace_item item = {.rank = rank, .begin_ns = ns, .ns = ns};

    return item;
}
