/* SPDX-License-Identifier: MIT
 *
 * iris sim run: writes the messages of a trace as a schedule, see sim_schedule.h.
 * trace_messages.c finds the messages.
 */
#include "config.h"

#include "sim_trace.h"

#include "sim_parts.h"
#include "trace.h"
#include "trace_messages.h"
#include "trace_scale.h"

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
    long *previous; /* of each item: the one before on its track, or -1 */
    long *begin;    /* the first item of its step */
    long *latest;   /* the last item of each track */
    long num_tracks;
};

/* Items of one batch are one step of their track. */
static int is_same_step(const struct trace_item *a, const struct trace_item *b)
{
    return a == b || (a->batch != 0 && a->batch == b->batch);
}

/* Puts item i at the end of its track; the one that was there, or -1. */
static long append(struct part *part, long i)
{
    long track = 0;

    while (track < part->num_tracks &&
           strcmp(part->items[part->latest[track]].tid, part->items[i].tid) !=
               0) {
        track++;
    }
    part->previous[i] = track < part->num_tracks ? part->latest[track] : -1;
    part->num_tracks += track == part->num_tracks;
    part->latest[track] = i;
    return part->previous[i];
}

/* The interval before item i waits for item `last` and for all that is one step
 * with that. */
static void print_requires(const struct part *part, long i, long last)
{
    const struct trace_item *step = &part->items[last];

    for (long k = last; k >= 0 && is_same_step(step, &part->items[k]);
         k = part->previous[k]) {
        fprintf(part->file, "l%ld requires l%ld\n", 2 * i, 2 * k + 1);
    }
}

/* The part of the interval before item i (after `last`, unless that is -1) that
 * is not a cost of the platform, in ns. */
static int64_t interval(const struct part *part, long i, long last)
{
    const struct trace_item *item = &part->items[i];
    int64_t since = last >= 0          ? part->items[last].ns
                    : item->from_start ? 0
                                       : item->begin_ns;
    int64_t ns = item->begin_ns - since - item->cost.before_ns;

    ns -= last >= 0 ? part->items[last].cost.own_ns : 0;
    return ns > 0 ? ns : 0;
}

static void print_calc(const struct part *part, long i, long last)
{
    const struct trace_cost *cost = &part->items[i].cost;

    fprintf(part->file, "l%ld: calc %lld", 2 * i,
            (long long)interval(part, i, last));
    if (cost->is_release) {
        fprintf(part->file, " release");
    }
    if (cost->waits_before) {
        fprintf(part->file, " round %d", part->items[i].peer);
    }
    fprintf(part->file, "\n");
}

static void print_message(const struct part *part, long i)
{
    const struct trace_item *item = &part->items[i];

    fprintf(part->file, "l%ld: %s %llub %s %d tag %llu%s%s\n", 2 * i + 1,
            item->is_send ? "send" : "recv", (unsigned long long)item->bytes,
            item->is_send ? "to" : "from", item->peer,
            (unsigned long long)item->tag, item->cost.is_copy ? " copy" : "",
            item->cost.waits_itself ? " round" : "");
}

/* Labels: l<2 * i> is the interval before item i, if that begins a step, and
 * l<2 * i + 1> the item itself. The interval ends where a wait begins, so it
 * has no time spent waiting. An item without a track is done by the network: it
 * waits for nothing. */
static void print_item(struct part *part, long i)
{
    const struct trace_item *item = &part->items[i];
    long last = item->tid[0] == '\0' ? -1 : append(part, i);
    int begins = last < 0 || !is_same_step(item, &part->items[last]);

    part->begin[i] = begins ? i : part->begin[last];
    if (begins) {
        print_calc(part, i, last);
    }
    print_message(part, i);
    fprintf(part->file, "l%ld requires l%ld\n", 2 * i + 1, 2 * part->begin[i]);
    if (begins && last >= 0) {
        print_requires(part, i, last);
    }
}

static int print_rank(FILE *file, const struct trace_item *items, long count)
{
    struct part part = {.file = file, .items = items, .count = count};

    part.previous = calloc((size_t)count + 1, sizeof *part.previous);
    part.begin = calloc((size_t)count + 1, sizeof *part.begin);
    part.latest = calloc((size_t)count + 1, sizeof *part.latest);
    if (part.previous != NULL && part.begin != NULL && part.latest != NULL) {
        for (long i = 0; i < count; i++) {
            print_item(&part, i);
        }
    }
    free(part.previous);
    free(part.begin);
    free(part.latest);
    return part.previous == NULL || part.begin == NULL || part.latest == NULL
               ? -1
               : 0;
}

static int print_schedule(FILE *file, const struct trace_items *items,
                          int num_ranks)
{
    size_t first = 0, end = 0;

    fprintf(file, "num_ranks %d\n", num_ranks);
    for (int rank = 0; rank < num_ranks; rank++) {
        while (end < items->count && items->items[end].rank == rank) {
            end++;
        }
        fprintf(file, "\nrank %d {\n", rank);
        if (print_rank(file, items->items + first, (long)(end - first)) != 0) {
            return -1;
        }
        fprintf(file, first == end ? "l0: calc 0\n}\n" : "}\n");
        first = end;
    }
    return 0;
}

static int write_schedule(struct trace_messages *messages, int num_ranks,
                          FILE **file_p)
{
    struct trace_items items = {0};
    int ret = trace_messages_list(messages, &items);
    FILE *file = ret != 0 ? NULL : tmpfile();

    if (ret == 0 && file == NULL) {
        perror("iris sim: a temporary file");
    }
    if (file != NULL) {
        if (items.count > 1) {
            qsort(items.items, items.count, sizeof *items.items, compare_items);
        }
        ret = print_schedule(file, &items, num_ranks);
        *file_p = file;
    }
    free(items.items);
    if (ret != 0) {
        fprintf(stderr, "a schedule of %d ranks: no memory\n", num_ranks);
    }
    return file == NULL ? -1 : ret;
}

/* The number of ranks to write, or -1 after printing a message. */
static int scale_to(const char *path, struct trace_scale *scale)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    int ret = trace_read(path, &figures, NULL, NULL);

    scale->from = figures.num_ranks;
    scale->to = sim_options.scale;
    scale->is_ring = sim_options.is_ring;
    trace_free(&figures);
    if (ret == 0 && (scale->from < 1 || scale->to % scale->from != 0)) {
        fprintf(stderr, "%s: %d ranks are no multiple of the trace's %d\n",
                path, scale->to, scale->from);
        return -1;
    }
    return ret;
}

int sim_trace_schedule(const char *path, FILE **file_p)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    struct trace_messages messages;
    struct trace_scale scale = {.event = trace_messages_add, .arg = &messages};
    int ret = sim_options.scale == 0 ? 0 : scale_to(path, &scale);

    if (ret != 0 || trace_messages_open(&messages) != 0) {
        return -1;
    }
    if (sim_options.scale == 0) {
        ret = trace_read(path, &figures, trace_messages_add, &messages);
        scale.to = figures.num_ranks;
    } else {
        ret = trace_read(path, &figures, trace_scale_event, &scale);
    }
    if (ret == 0) {
        ret = write_schedule(&messages, scale.to, file_p);
    }
    trace_messages_close(&messages);
    trace_free(&figures);
    return ret;
}
