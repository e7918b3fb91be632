/* SPDX-License-Identifier: MIT
 *
 * Calls of collectives in a trace, as messages between their members.
 */
#include "config.h"

#include "trace_calls.h"
#include "base/base.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank's call of a collective. */
struct trace_call {
    struct iris_event event; /* its fields, without the raw text */
    size_t order;            /* in the file */
    uint64_t number;         /* index among this rank's calls with these
                              * members */
    int has_messages;        /* it says what it sends and receives */
    const char *stream;      /* the track that ran it; NULL: not known */
    int64_t computed;        /* ns of kernels before it there */
};

int trace_calls_add(struct trace_calls *calls, const struct iris_event *event)
{
    void *more = iris_i_grow(calls->calls, calls->count, sizeof *calls->calls);

    if (more == NULL) {
        return -1;
    }
    calls->calls = more;
    calls->calls[calls->count] = (struct trace_call){
        *event, calls->count, 0, iris_i_is_messages(event), NULL, 0};
    calls->count++;
    return 0;
}

void trace_calls_free(struct trace_calls *calls)
{
    free(calls->calls);
}

/* All that the call sends and receives is one step of its track. */
static struct trace_item item_of(const struct trace_calls *calls,
                                 const struct trace_call *call)
{
    struct iris_flow_end at = iris_i_flow_end(&call->event, call->event.ts_ns);
    struct trace_item item = trace_item_at(&at);

    if (call->stream != NULL) {
        snprintf(item.tid, sizeof item.tid, "%s", call->stream);
        item.begin_ns = item.ns = call->computed;
        item.from_start = 1;
    }
    item.batch = (uint64_t)(call - calls->calls) + 1;
    return item;
}

/* ---- Calls of all members ---- */

/* Calls of messages come last. */
static int compare_group(const struct trace_call *a, const struct trace_call *b)
{
    return a->has_messages != b->has_messages
               ? a->has_messages - b->has_messages
               : strcmp(a->event.members, b->event.members);
}

static int compare_by_rank(const void *left, const void *right)
{
    const struct trace_call *a = left, *b = right;
    int order = compare_group(a, b);

    if (order != 0) {
        return order;
    }
    return a->event.pid != b->event.pid
               ? a->event.pid - b->event.pid
               : (a->order > b->order) - (a->order < b->order);
}

static int compare_by_number(const void *left, const void *right)
{
    const struct trace_call *a = left, *b = right;
    int order = compare_group(a, b);

    if (order != 0) {
        return order;
    }
    return a->number != b->number ? (a->number > b->number ? 1 : -1)
                                  : a->event.pid - b->event.pid;
}

static void number_calls(const struct trace_calls *list)
{
    struct trace_call *calls = list->calls;

    if (list->count < 2) {
        return;
    }
    qsort(calls, list->count, sizeof *calls, compare_by_rank);
    for (size_t i = 1; i < list->count; i++) {
        if (calls[i].event.pid == calls[i - 1].event.pid &&
            compare_group(&calls[i], &calls[i - 1]) == 0) {
            calls[i].number = calls[i - 1].number + 1;
        }
    }
    qsort(calls, list->count, sizeof *calls, compare_by_number);
}

struct listing {
    const struct trace_calls *calls;
    struct trace_items *items;
    const struct trace_call *call;
};

static int list_transfer(void *arg, const struct iris_transfer_of *transfer)
{
    const struct listing *listing = arg;
    const struct trace_calls *calls = listing->calls;
    struct trace_call key = *listing->call;
    const struct trace_call *peer;
    struct trace_item send = item_of(calls, listing->call), receive;

    key.event.pid = transfer->to;
    peer = bsearch(&key, calls->calls, calls->count, sizeof key,
                   compare_by_number);
    receive = peer != NULL ? item_of(calls, peer)
                           : trace_item_of_network(transfer->to, send.ns);
    send.bytes = transfer->bytes;
    return trace_items_add(listing->items, &send, &receive);
}

/* ---- Calls of messages ---- */

/* One call's part of a message. */
struct half {
    const struct trace_call *call;
    int from, to;
    uint64_t bytes;
};

struct halves {
    struct half *halves;
    size_t count;
};

static int compare_pairs(const struct half *a, const struct half *b)
{
    int order = strcmp(a->call->event.members, b->call->event.members);

    order = order != 0 ? order : a->from - b->from;
    return order != 0 ? order : a->to - b->to;
}

static int compare_halves(const void *left, const void *right)
{
    const struct half *a = left, *b = right;
    int order = compare_pairs(a, b);

    return order != 0 ? order
                      : (a->call->order > b->call->order) -
                            (a->call->order < b->call->order);
}

static int add_halves(struct halves *halves, const struct trace_call *call,
                      int is_send)
{
    const char *text = is_send ? call->event.sends : call->event.receives;
    uint64_t bytes;
    int peer;

    while ((text = iris_i_next_message(text, &peer, &bytes)) != NULL) {
        void *more =
            iris_i_grow(halves->halves, halves->count, sizeof *halves->halves);

        if (more == NULL) {
            return -1;
        }
        halves->halves = more;
        halves->halves[halves->count++] =
            (struct half){call, is_send ? call->event.pid : peer,
                          is_send ? peer : call->event.pid, bytes};
    }
    return 0;
}

static int find_halves(const struct trace_calls *calls, int is_send,
                       struct halves *halves_p)
{
    for (size_t i = 0; i < calls->count; i++) {
        if (calls->calls[i].has_messages &&
            add_halves(halves_p, &calls->calls[i], is_send) != 0) {
            return -1;
        }
    }
    if (halves_p->count > 1) {
        qsort(halves_p->halves, halves_p->count, sizeof *halves_p->halves,
              compare_halves);
    }
    return 0;
}

/* A message that no call receives has an end of the network. */
static int join_halves(const struct trace_calls *calls,
                       const struct halves *sends,
                       const struct halves *receives, struct trace_items *items)
{
    size_t k = 0;

    for (size_t i = 0; i < sends->count; i++) {
        const struct half *half = &sends->halves[i];
        struct trace_item send = item_of(calls, half->call);
        struct trace_item receive = trace_item_of_network(half->to, send.ns);

        while (k < receives->count &&
               compare_pairs(&receives->halves[k], half) < 0) {
            k++;
        }
        if (k < receives->count &&
            compare_pairs(&receives->halves[k], half) == 0) {
            receive = item_of(calls, receives->halves[k++].call);
        }
        send.bytes = half->bytes;
        if (trace_items_add(items, &send, &receive) != 0) {
            return -1;
        }
    }
    return 0;
}

int trace_calls_list(struct trace_calls *calls,
                     const struct trace_streams *streams,
                     struct trace_items *items)
{
    struct listing listing = {calls, items, NULL};
    struct halves sends = {NULL, 0}, receives = {NULL, 0};
    int ret = 0;

    number_calls(calls);
    for (size_t i = 0; i < calls->count; i++) {
        struct trace_call *call = &calls->calls[i];

        call->stream =
            trace_streams_find(streams, &call->event, &call->computed);
    }
    for (size_t i = 0; ret == 0 && i < calls->count; i++) {
        listing.call = &calls->calls[i];
        if (!listing.call->has_messages) {
            ret =
                iris_i_transfers(&listing.call->event, list_transfer, &listing);
        }
    }
    if (ret == 0 && (find_halves(calls, 1, &sends) != 0 ||
                     find_halves(calls, 0, &receives) != 0 ||
                     join_halves(calls, &sends, &receives, items) != 0)) {
        ret = -1;
    }
    free(sends.halves);
    free(receives.halves);
    return ret;
}
