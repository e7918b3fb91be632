/* SPDX-License-Identifier: MIT
 *
 * The transfers of an event of a trace: bytes, source and target.
 */
#include "config.h"

#include "trace_transfers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 4096

static int is_any(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

int iris_i_is_fetch(const struct iris_event *event)
{
    static const char *const names[] = {"load", "get", "get on stream",
                                        "host broadcast", NULL};

    return is_any(event->name, names);
}

int iris_i_is_collective(const struct iris_event *event)
{
    return event->members[0] != '\0';
}

static int moves_nothing(const struct iris_event *event)
{
    static const char *const names[] = {"wait", "wait on stream", "barrier",
                                        "workgroup collective", NULL};

    return event->target_rank < 0 || event->pid < 0 ||
           is_any(event->name, names);
}

/* ---- Collectives ---- */

struct members {
    int own; /* the event's rank's place; -1: it is no member */
    int count;
    int ranks[MAX_RANKS];
};

/* From a list such as "0-3,6"; larger numbers are no ranks. */
static void read_members(const struct iris_event *event,
                         struct members *members_p)
{
    const char *text = event->members;
    char *end;

    members_p->own = -1;
    members_p->count = 0;
    while (*text != '\0' && members_p->count < MAX_RANKS) {
        long first = strtol(text, &end, 10), last = first;

        if (end == text) {
            break;
        }
        if (*end == '-') {
            last = strtol(end + 1, &end, 10);
        }
        last = last < MAX_RANKS ? last : MAX_RANKS - 1;
        for (; first >= 0 && first <= last && members_p->count < MAX_RANKS;
             first++) {
            members_p->own =
                first == event->pid ? members_p->count : members_p->own;
            members_p->ranks[members_p->count++] = (int)first;
        }
        text = end + (*end == ',');
    }
}

/* Bytes of the part that is the member's. */
static uint64_t share(uint64_t bytes, int count, int member)
{
    return bytes / (uint64_t)count +
           ((uint64_t)member < bytes % (uint64_t)count);
}

static uint64_t sent_to(const struct iris_event *event,
                        const struct members *members, int to)
{
    if (strcmp(event->kernel, "iris_reduce") == 0) {
        return members->ranks[to] == event->target_rank ? event->payload : 0;
    }
    if (strcmp(event->kernel, "iris_all_reduce") == 0) {
        return share(event->payload, members->count, to) +
               share(event->payload, members->count, members->own);
    }
    return strcmp(event->kernel, "iris_ccl_broadcast") == 0 &&
                   event->target_rank != event->pid
               ? 0
               : event->payload;
}

int iris_i_is_messages(const struct iris_event *event)
{
    static const char *const kernels[] = {
        "iris_gather", "iris_scatter", "iris_all_gatherv", "iris_all_to_allv",
        "iris_send",   "iris_recv",    "iris_send_recv",   NULL};

    return event->members[0] != '\0' && is_any(event->kernel, kernels);
}

const char *iris_i_next_message(const char *text, int *rank_p,
                                uint64_t *bytes_p)
{
    unsigned long long bytes;
    int rank, length = 0;

    if (sscanf(text, "%d:%llu%n", &rank, &bytes, &length) != 2 || rank < 0 ||
        rank >= MAX_RANKS) {
        return NULL;
    }
    *rank_p = rank;
    *bytes_p = bytes;
    return text + length + (text[length] == ',');
}

static int visit_messages(const struct iris_event *event,
                          int (*each)(void *arg,
                                      const struct iris_transfer_of *transfer),
                          void *arg)
{
    struct iris_transfer_of one = {.from = event->pid};
    const char *text = event->sends;
    int ret = 0;

    while (ret == 0 &&
           (text = iris_i_next_message(text, &one.to, &one.bytes)) != NULL) {
        ret = each(arg, &one);
    }
    return ret;
}

static int visit_collective(
    const struct iris_event *event,
    int (*each)(void *arg, const struct iris_transfer_of *transfer), void *arg)
{
    struct members *members = malloc(sizeof *members);
    int ret = 0;

    if (members == NULL) {
        return -1;
    }
    read_members(event, members);
    for (int i = 0; ret == 0 && members->own >= 0 && i < members->count; i++) {
        const struct iris_transfer_of one = {event->pid, members->ranks[i],
                                             sent_to(event, members, i)};

        if (i != members->own && one.bytes != 0) {
            ret = each(arg, &one);
        }
    }
    free(members);
    return ret;
}

int iris_i_transfers(const struct iris_event *event,
                     int (*each)(void *arg,
                                 const struct iris_transfer_of *transfer),
                     void *arg)
{
    struct iris_transfer_of one = {event->pid, event->target_rank,
                                   event->payload};

    if (event->ph != 'X' && event->ph != 'i') {
        return 0;
    }
    if (iris_i_is_messages(event)) {
        return visit_messages(event, each, arg);
    }
    if (iris_i_is_collective(event)) {
        return visit_collective(event, each, arg);
    }
    if (moves_nothing(event)) {
        return 0;
    }
    if (iris_i_is_fetch(event)) {
        one.from = event->target_rank;
        one.to = event->pid;
    }
    return each(arg, &one);
}
