/* SPDX-License-Identifier: MIT
 *
 * The messages of a trace: every byte that went from one rank to another is in
 * one of them.
 */
#include "config.h"

#include "trace_messages.h"
#include "base/base.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of one workgroup's operations (or of one call's) that are one message.
 * A pile with from = to has no bytes: it counts the workgroup's signals and
 * waits, in `phase`. */
struct trace_pile {
    int is_used;
    int pid; /* the rank that did it */
    int from, to;
    uint64_t launch;
    int64_t program_id;
    uint64_t phase;
    uint64_t bytes;
    struct trace_cost cost;
    int64_t until_ns;        /* the end of the last atomic in `cost` */
    struct iris_flow_end at; /* time and place of the latest operation */
};

int trace_messages_open(struct trace_messages *messages)
{
    memset(messages, 0, sizeof *messages);
    return iris_i_flows_open(&messages->flows);
}

void trace_messages_close(struct trace_messages *messages)
{
    trace_calls_free(&messages->calls);
    trace_streams_free(&messages->streams);
    free(messages->piles);
    free(messages->costs);
    iris_i_flows_close(&messages->flows);
}

/* ---- Piles ---- */

static int is_pile(const struct trace_pile *a, const struct trace_pile *b)
{
    return a->pid == b->pid && a->from == b->from && a->to == b->to &&
           a->launch == b->launch && a->program_id == b->program_id &&
           (a->from == a->to || a->phase == b->phase);
}

/* Where the pile is, or the free place for it. A phase pile's `phase` counts,
 * so that it is not part of its key. */
static struct trace_pile *place_of(struct trace_pile *piles, size_t num_places,
                                   const struct trace_pile *key)
{
    uint64_t hash = (uint64_t)key->pid * 1000003 + key->launch;
    size_t at;

    hash = hash * 1000003 + (uint64_t)key->program_id;
    hash = hash * 1000003 + (uint64_t)key->from;
    hash = hash * 1000003 + (uint64_t)key->to;
    hash = hash * 1000003 + (key->from == key->to ? 0 : key->phase);
    at = (size_t)(hash * 0x9e3779b97f4a7c15u >> 20) & (num_places - 1);
    while (piles[at].is_used && !is_pile(&piles[at], key)) {
        at = (at + 1) & (num_places - 1);
    }
    return &piles[at];
}

static int grow_piles(struct trace_messages *messages)
{
    size_t num_places =
        messages->num_places == 0 ? 1024 : 2 * messages->num_places;
    struct trace_pile *piles = calloc(num_places, sizeof *piles);

    if (piles == NULL) {
        return -1;
    }
    for (size_t i = 0; i < messages->num_places; i++) {
        if (messages->piles[i].is_used) {
            *place_of(piles, num_places, &messages->piles[i]) =
                messages->piles[i];
        }
    }
    free(messages->piles);
    messages->piles = piles;
    messages->num_places = num_places;
    return 0;
}

/* NULL: no memory. */
static struct trace_pile *pile_of(struct trace_messages *messages,
                                  const struct trace_pile *key)
{
    struct trace_pile *pile;

    if (2 * messages->num_piles >= messages->num_places &&
        grow_piles(messages) != 0) {
        return NULL;
    }
    pile = place_of(messages->piles, messages->num_places, key);
    if (!pile->is_used) {
        *pile = *key;
        pile->is_used = 1;
        messages->num_piles++;
    }
    return pile;
}

static struct trace_pile key_of(const struct iris_event *event, int from,
                                int to)
{
    struct trace_pile key = {.pid = event->pid,
                             .from = from,
                             .to = to,
                             .launch = event->launch,
                             .program_id = event->program_id};

    return key;
}

/* How many signals and waits the event's workgroup has had. */
static uint64_t *phase_of(struct trace_messages *messages,
                          const struct iris_event *event)
{
    struct trace_pile key = key_of(event, event->pid, event->pid);
    struct trace_pile *pile = pile_of(messages, &key);

    return pile == NULL ? NULL : &pile->phase;
}

/* ---- Taking events ---- */

/* A trace does not say whether a program used an atomic's result. These two are
 * taken to need it, others not. */
static int waits_for_result(const struct iris_event *event)
{
    return strcmp(event->name, "atomic_cas") == 0 ||
           strcmp(event->name, "atomic_xchg") == 0;
}

static int is_copy(const struct iris_event *event)
{
    return strcmp(event->name, "put on stream") == 0 ||
           strcmp(event->name, "get on stream") == 0;
}

/* Lanes' atomics at the same time count once. */
static void add_cost(struct trace_pile *pile, const struct iris_event *event)
{
    int64_t begin = event->ts_ns, end = event->ts_ns + event->dur_ns;

    pile->cost.is_copy = is_copy(event);
    if (!event->signal && waits_for_result(event)) {
        pile->cost.waits_before = 1;
        begin = begin > pile->until_ns ? begin : pile->until_ns;
        pile->cost.before_ns += end > begin ? end - begin : 0;
        pile->until_ns = end > begin ? end : begin;
    }
}

struct taking {
    struct trace_messages *messages;
    const struct iris_event *event;
};

static int add_bytes(void *arg, const struct iris_transfer_of *transfer)
{
    const struct taking *taking = arg;
    const struct iris_event *event = taking->event;
    struct trace_pile key = key_of(event, transfer->from, transfer->to);
    struct trace_pile *pile;
    uint64_t *phase;

    if (transfer->from == transfer->to) {
        return 0;
    }
    if (strcmp(event->cat, "iris") != 0) { /* a call by itself */
        key.program_id = (int64_t)taking->messages->num_piles;
        key.launch = UINT64_MAX;
    } else if (iris_i_is_fetch(event)) {
        phase = phase_of(taking->messages, event);
        if (phase == NULL) {
            return -1;
        }
        key.phase = *phase;
    }
    pile = pile_of(taking->messages, &key);
    if (pile == NULL) {
        return -1;
    }
    pile->bytes += transfer->bytes;
    add_cost(pile, event);
    pile->at = iris_i_flow_end(event, event->ts_ns);
    return 0;
}

/* The signal takes all earlier puts of its workgroup to that rank. */
static int take_pile(struct trace_messages *messages,
                     const struct iris_event *event)
{
    struct iris_flow_list *signals = &messages->flows.signals;
    struct iris_flow_point *signal = &signals->points[signals->count - 1];
    struct trace_pile key = key_of(event, event->pid, event->target_rank);
    struct trace_pile *pile;
    struct trace_cost *more;

    if (event->target_rank == event->pid) {
        return 0;
    }
    pile = pile_of(messages, &key);
    more = iris_i_grow(messages->costs, messages->num_costs, sizeof *more);
    if (pile == NULL || more == NULL) {
        messages->costs = more == NULL ? messages->costs : more;
        return -1;
    }
    messages->costs = more;
    more[messages->num_costs] = pile->cost;
    more[messages->num_costs].is_release = 1;
    more[messages->num_costs].waits_itself = waits_for_result(event);
    more[messages->num_costs].own_ns = event->dur_ns;
    signal->cost = ++messages->num_costs;
    signal->bytes = pile->bytes;
    pile->bytes = 0;
    memset(&pile->cost, 0, sizeof pile->cost);
    return 0;
}

int trace_messages_add(void *arg, const struct iris_event *event)
{
    struct trace_messages *messages = arg;
    struct taking taking = {messages, event};
    size_t num_signals = messages->flows.signals.count;
    size_t num_waits = messages->flows.waits.count;
    uint64_t *phase;

    if (trace_streams_add(&messages->streams, event) != 0) {
        return -1;
    }
    if (iris_i_is_collective(event)) {
        return trace_calls_add(&messages->calls, event);
    }
    if (iris_i_flows_add(&messages->flows, event) != 0 ||
        iris_i_transfers(event, add_bytes, &taking) != 0) {
        return -1;
    }
    if (messages->flows.signals.count == num_signals &&
        messages->flows.waits.count == num_waits) {
        return 0;
    }
    phase = phase_of(messages, event);
    if (phase == NULL) {
        return -1;
    }
    ++*phase;
    return messages->flows.signals.count > num_signals
               ? take_pile(messages, event)
               : 0;
}

/* ---- Listing messages ---- */

/* The signal's item, with its bytes and cost, which only the first one has. */
static struct trace_item take_signal(const struct trace_messages *messages,
                                     struct iris_flow_point *signal)
{
    struct trace_item item = trace_item_at(&signal->at);

    item.bytes = signal->bytes;
    if (signal->cost != 0) {
        item.cost = messages->costs[signal->cost - 1];
    }
    signal->bytes = signal->cost = 0;
    return item;
}

/* A signal that several waits saw has its bytes in the first one's message. */
static int list_waits(struct trace_messages *messages,
                      struct trace_items *items)
{
    struct iris_flows *flows = &messages->flows;

    for (size_t i = 0; i < flows->waits.count; i++) {
        const struct iris_flow_point *wait = &flows->waits.points[i];
        const struct iris_flow_point *found =
            iris_i_flows_signal_of(flows, wait);
        struct trace_item send, receive;

        if (found == NULL || found->at.pid == wait->at.pid) {
            continue;
        }
        send = take_signal(
            messages, &flows->signals.points[found - flows->signals.points]);
        receive = trace_item_at(&wait->at);
        receive.begin_ns = wait->begin_ns;
        if (trace_items_add(items, &send, &receive) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Signals that no wait saw. */
static int list_signals(struct trace_messages *messages,
                        struct trace_items *items)
{
    const struct iris_flow_list *signals = &messages->flows.signals;

    for (size_t i = 0; i < signals->count; i++) {
        struct iris_flow_point *signal = &signals->points[i];
        struct trace_item send = take_signal(messages, signal);
        struct trace_item receive =
            trace_item_of_network(signal->rank, signal->at.ns);

        if (send.bytes != 0 && trace_items_add(items, &send, &receive) != 0) {
            return -1;
        }
    }
    return 0;
}

static int list_piles(const struct trace_messages *messages,
                      struct trace_items *items)
{
    for (size_t i = 0; i < messages->num_places; i++) {
        const struct trace_pile *pile = &messages->piles[i];
        struct trace_item send = trace_item_of_network(pile->from, pile->at.ns);
        struct trace_item receive =
            trace_item_of_network(pile->to, pile->at.ns);

        if (pile->bytes == 0) {
            continue;
        }
        *(pile->from == pile->pid ? &send : &receive) =
            trace_item_at(&pile->at);
        send.bytes = pile->bytes;
        send.cost = pile->cost;
        if (trace_items_add(items, &send, &receive) != 0) {
            return -1;
        }
    }
    return 0;
}

int trace_messages_list(struct trace_messages *messages,
                        struct trace_items *items_p)
{
    iris_i_flows_sort(&messages->flows);
    trace_streams_join(&messages->streams);
    return list_waits(messages, items_p) != 0 ||
                   list_signals(messages, items_p) != 0 ||
                   list_piles(messages, items_p) != 0 ||
                   trace_calls_list(&messages->calls, &messages->streams,
                                    items_p) != 0
               ? -1
               : 0;
}
