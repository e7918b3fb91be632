/* SPDX-License-Identifier: MIT
 *
 * iris-trace export: the messages of a trace as a schedule in the GOAL language
 * of LogGOPSim (Hoefler, Siebert and Lumsdaine, ICPP 2009). trace_messages.c
 * has what a message is.
 */
#include "config.h"

#include "trace_goal.h"

#include "trace_figures.h"
#include "trace_messages.h"

#include <stdlib.h>
#include <string.h>

static int compare_items(const void *left, const void *right)
{
    const struct trace_item *a = left, *b = right;

    if (a->rank != b->rank) {
        return a->rank - b->rank;
    }
    if (a->ns != b->ns) {
        return a->ns < b->ns ? -1 : 1;
    }
    return (a->tag > b->tag) - (a->tag < b->tag);
}

/* ---- Printing ---- */

/* One rank's part of the items, in the order of time. */
struct part {
    FILE *file;
    const struct trace_item *items;
    long count;
};

static int is_same_batch(const struct trace_item *a, const struct trace_item *b)
{
    return a->batch != 0 && a->batch == b->batch;
}

/* The latest item of the same track that is no part of the same step; -1. */
static long before(const struct part *part, long i)
{
    const struct trace_item *item = &part->items[i];

    for (long k = i - 1; k >= 0; k--) {
        if (strcmp(part->items[k].tid, item->tid) == 0 &&
            !is_same_batch(&part->items[k], item)) {
            return k;
        }
    }
    return -1;
}

/* Item i waits for item `last` and for all that is one step with that. */
static void print_requires(const struct part *part, long i, long last)
{
    const struct trace_item *step = &part->items[last];

    fprintf(part->file, "l%ld requires l%ld\n", 2 * i, 2 * last + 1);
    for (long k = last - 1; k >= 0; k--) {
        if (strcmp(part->items[k].tid, step->tid) != 0) {
            continue;
        }
        if (!is_same_batch(&part->items[k], step)) {
            break;
        }
        fprintf(part->file, "l%ld requires l%ld\n", 2 * i, 2 * k + 1);
    }
}

/* Labels: l<2 * i> is the interval before item i, l<2 * i + 1> the item itself.
 * The interval ends where a wait begins, so it has no time spent waiting. An
 * item without a track is done by the network: it waits for nothing. */
static void print_item(const struct part *part, long i)
{
    const struct trace_item *item = &part->items[i];
    long last = item->tid[0] == '\0' ? -1 : before(part, i);
    int64_t gap = last < 0 ? 0 : item->begin_ns - part->items[last].ns;

    fprintf(part->file, "l%ld: calc %lld\n", 2 * i,
            (long long)(gap > 0 ? gap : 0));
    fprintf(part->file, "l%ld: %s %llub %s %d tag %llu\n", 2 * i + 1,
            item->is_send ? "send" : "recv", (unsigned long long)item->bytes,
            item->is_send ? "to" : "from", item->peer,
            (unsigned long long)item->tag);
    fprintf(part->file, "l%ld requires l%ld\n", 2 * i + 1, 2 * i);
    if (last >= 0) {
        print_requires(part, i, last);
    }
}

static void print_goal(FILE *file, const struct trace_items *items,
                       int num_ranks)
{
    size_t first = 0;

    fprintf(file, "num_ranks %d\n", num_ranks);
    for (int rank = 0; rank < num_ranks; rank++) {
        struct part part = {file, items->items + first, 0};

        fprintf(file, "\nrank %d {\n", rank);
        while (first < items->count && items->items[first].rank == rank) {
            print_item(&part, part.count++);
            first++;
        }
        if (part.count == 0) {
            fprintf(file, "l0: calc 0\n");
        }
        fprintf(file, "}\n");
    }
}

static int write_goal(struct trace_messages *messages, int num_ranks,
                      FILE *(*open)(void), FILE **file_p)
{
    struct trace_items items = {0};
    FILE *file = trace_messages_list(messages, &items) != 0 ? NULL : open();

    if (file != NULL) {
        if (items.count > 1) {
            qsort(items.items, items.count, sizeof *items.items, compare_items);
        }
        print_goal(file, &items, num_ranks);
        *file_p = file;
    }
    free(items.items);
    return file == NULL ? -1 : 0;
}

int trace_goal(const char *path, FILE *(*open)(void), FILE **file_p)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    struct trace_messages messages;
    int ret = trace_messages_open(&messages);

    if (ret == 0) {
        ret = trace_read(path, &figures, trace_messages_add, &messages);
    }
    if (ret == 0) {
        ret = write_goal(&messages, figures.num_ranks, open, file_p);
    }
    trace_messages_close(&messages);
    trace_free(&figures);
    return ret;
}
