/* SPDX-License-Identifier: MIT
 *
 * Makes the schedule of a trace's messages: each rank's computations, sends and
 * receives, and their dependencies. Hoefler, Siebert and Lumsdaine described such
 * schedules (GOAL, ICPP 2009).
 */
#include "config.h"

#include "sim.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Joining ---- */

/* A send or receive, with the key that joins it with its partner. */
struct message_end {
    int from, to;
    uint64_t tag;
    size_t step;
};

static int compare_key(const struct message_end *a, const struct message_end *b)
{
    int order = a->from - b->from;

    order = order != 0 ? order : a->to - b->to;
    return order != 0 ? order : IRIS_COMPARE(a->tag, b->tag);
}

static int compare_end(const void *left, const void *right)
{
    const struct message_end *a = left, *b = right;
    int order = compare_key(a, b);

    return order != 0 ? order : IRIS_COMPARE(a->step, b->step);
}

static size_t list_ends(const struct sim_schedule *schedule, enum sim_kind kind,
                        struct message_end *ends)
{
    size_t count = 0;

    for (size_t i = 0; i < schedule->num_steps; i++) {
        const struct sim_step *step = &schedule->steps[i];
        int sends = kind == SIM_SEND;

        if (step->kind == kind) {
            ends[count++] = (struct message_end){
                sends ? step->rank : step->peer,
                sends ? step->peer : step->rank, step->tag, i};
        }
    }
    qsort(ends, count, sizeof *ends, compare_end);
    return count;
}

/* Joins the first send with a tag with the first receive, and so on. */
static int join_ends(struct sim_schedule *schedule)
{
    struct message_end *ends =
        calloc(2 * schedule->num_steps + 1, sizeof *ends);
    size_t num_sends, num_receives, i = 0, k = 0;
    struct message_end *receives;

    if (ends == NULL) {
        return -1;
    }
    num_sends = list_ends(schedule, SIM_SEND, ends);
    receives = ends + num_sends;
    num_receives = list_ends(schedule, SIM_RECV, receives);
    while (i < num_sends && k < num_receives) {
        int order = compare_key(&ends[i], &receives[k]);

        if (order == 0) {
            schedule->steps[ends[i].step].partner = receives[k].step;
            schedule->steps[receives[k].step].partner = ends[i].step;
        }
        i += order <= 0;
        k += order >= 0;
    }
    free(ends);
    return 0;
}

static int compare_arrows(const void *left, const void *right)
{
    const struct sim_arrow *a = left, *b = right;

    int order = IRIS_COMPARE(a->before, b->before);

    return order != 0 ? order : IRIS_COMPARE(a->after, b->after);
}

static void sort_arrows(struct sim_schedule *schedule)
{
    size_t at = 0;

    iris_i_sort(schedule->arrows, schedule->num_arrows,
                sizeof *schedule->arrows, compare_arrows);
    for (size_t i = 0; i < schedule->num_steps; i++) {
        schedule->steps[i].first_after = at;
        while (at < schedule->num_arrows && schedule->arrows[at].before == i) {
            at++;
        }
    }
}

void sim_schedule_free(struct sim_schedule *schedule)
{
    free(schedule->steps);
    free(schedule->arrows);
}

/* ---- Steps ---- */

static int compare_items(const void *left, const void *right)
{
    const struct sim_item *a = left, *b = right;

    int order = a->rank - b->rank;

    order = order != 0 ? order : IRIS_COMPARE(a->ns, b->ns);
    return order != 0 ? order : IRIS_COMPARE(a->tag, b->tag);
}

/* One rank's part of the items, in the order of time. */
struct rank_part {
    struct sim_schedule *schedule;
    const struct sim_item *items;
    long *previous; /* of each item: the one before on its track, or -1 */
    size_t *begin;  /* the calc of its step */
    size_t *steps;  /* its message */
    long *latest;   /* the last item of each track */
    long num_tracks;
};

/* Items of one batch are one step of their track. */
static int is_same_step(const struct sim_item *a, const struct sim_item *b)
{
    return a == b || (a->batch != 0 && a->batch == b->batch);
}

/* Puts item i at the end of its track; the one that was there, or -1. */
static long append_item(struct rank_part *part, long i)
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

static size_t add_step(struct sim_schedule *schedule,
                       const struct sim_step *step)
{
    schedule->steps[schedule->num_steps] = *step;
    schedule->steps[schedule->num_steps].partner = SIM_NO_STEP;
    return schedule->num_steps++;
}

static void add_arrow(struct sim_schedule *schedule, size_t before,
                      size_t after)
{
    schedule->arrows[schedule->num_arrows++] =
        (struct sim_arrow){before, after};
    schedule->steps[after].num_before++;
}

/* The part of the interval before item i (after `last`, unless that is -1) that
 * is not a cost of the platform, in ns. */
static int64_t find_interval(const struct rank_part *part, long i, long last)
{
    const struct sim_item *item = &part->items[i];
    int64_t since = last >= 0          ? part->items[last].ns
                    : item->from_start ? 0
                                       : item->begin_ns;
    int64_t ns = item->begin_ns - since - item->cost.before_ns;

    ns -= last >= 0 ? part->items[last].cost.own_ns : 0;
    return ns > 0 ? ns : 0;
}

/* The interval before item i, which waits for item `last` and for all that is
 * one step with that. */
static size_t add_calc(struct rank_part *part, long i, long last)
{
    const struct sim_item *item = &part->items[i];
    struct sim_step calc = {.kind = SIM_CALC,
                            .rank = item->rank,
                            .peer = item->peer,
                            .amount = (uint64_t)find_interval(part, i, last),
                            .is_release = item->cost.is_release,
                            .is_round = item->cost.waits_before};
    size_t step = add_step(part->schedule, &calc);

    for (long k = last;
         k >= 0 && is_same_step(&part->items[last], &part->items[k]);
         k = part->previous[k]) {
        add_arrow(part->schedule, part->steps[k], step);
    }
    return step;
}

/* The interval before a step ends where its wait begins, so it has no time
 * spent waiting. An item without a track is done by the network: it waits for
 * nothing. */
static void add_item(struct rank_part *part, long i)
{
    const struct sim_item *item = &part->items[i];
    long last = item->tid[0] == '\0' ? -1 : append_item(part, i);
    int begins = last < 0 || !is_same_step(item, &part->items[last]);
    struct sim_step message = {.kind = item->is_send ? SIM_SEND : SIM_RECV,
                               .rank = item->rank,
                               .peer = item->peer,
                               .amount = item->bytes,
                               .tag = item->tag,
                               .is_copy = item->cost.is_copy,
                               .is_round = item->cost.waits_itself};

    part->begin[i] = begins ? add_calc(part, i, last) : part->begin[last];
    part->steps[i] = add_step(part->schedule, &message);
    add_arrow(part->schedule, part->begin[i], part->steps[i]);
}

static int add_rank(struct sim_schedule *schedule, const struct sim_item *items,
                    size_t count)
{
    struct rank_part part = {.schedule = schedule, .items = items};
    int ret = -1;

    part.previous = calloc(count + 1, sizeof *part.previous);
    part.begin = calloc(count + 1, sizeof *part.begin);
    part.steps = calloc(count + 1, sizeof *part.steps);
    part.latest = calloc(count + 1, sizeof *part.latest);
    if (part.previous != NULL && part.begin != NULL && part.steps != NULL &&
        part.latest != NULL) {
        for (size_t i = 0; i < count; i++) {
            add_item(&part, (long)i);
        }
        ret = 0;
    }
    free(part.previous);
    free(part.begin);
    free(part.steps);
    free(part.latest);
    return ret;
}

/* Whether all items are between ranks. */
static int has_known_ranks(const struct sim_items *items, int num_ranks)
{
    for (size_t i = 0; i < items->count; i++) {
        const struct sim_item *item = &items->items[i];

        if (item->rank < 0 || item->rank >= num_ranks || item->peer < 0 ||
            item->peer >= num_ranks) {
            return 0;
        }
    }
    return 1;
}

static int add_ranks(struct sim_schedule *schedule,
                     const struct sim_items *items)
{
    size_t first = 0, end = 0;

    schedule->steps = calloc(2 * items->count + 1, sizeof *schedule->steps);
    schedule->arrows = calloc(2 * items->count + 1, sizeof *schedule->arrows);
    if (schedule->steps == NULL || schedule->arrows == NULL) {
        return -1;
    }
    for (int rank = 0; rank < schedule->num_ranks; rank++, first = end) {
        while (end < items->count && items->items[end].rank == rank) {
            end++;
        }
        if (add_rank(schedule, items->items + first, end - first) != 0) {
            return -1;
        }
    }
    sort_arrows(schedule);
    return join_ends(schedule);
}

int sim_schedule_make(struct sim_items *items, int num_ranks,
                      struct sim_schedule *schedule_p)
{
    struct sim_schedule schedule = {.num_ranks = num_ranks};
    const char *why = "no memory";

    if (num_ranks < 1 || !has_known_ranks(items, num_ranks)) {
        why = "it has messages of ranks that it does not have";
    } else {
        iris_i_sort(items->items, items->count, sizeof *items->items,
                    compare_items);
        if (add_ranks(&schedule, items) == 0) {
            *schedule_p = schedule;
            return 0;
        }
    }
    sim_schedule_free(&schedule);
    fprintf(stderr, "iris sim: a trace of %d ranks: %s\n", num_ranks, why);
    return -1;
}
