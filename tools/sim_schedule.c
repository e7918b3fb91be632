/* SPDX-License-Identifier: MIT
 *
 * Schedules in the GOAL language of LogGOPSim (Hoefler, Siebert and Lumsdaine,
 * ICPP 2009): each rank's computations, sends and receives, and their
 * dependencies. Reads schedules, joins sends with receives, and writes the
 * messages of a trace as a schedule. A line may end with a word of our own:
 *
 *     calc 100 release      then its rank waits for its writes' arrival
 *     calc 100 round 1      then for results of atomics at rank 1
 *     send 8b to 1 tag 1 round   its rank goes on with the result of this atomic
 *     send 8b to 1 tag 1 copy    a copy engine sends
 */
#include "config.h"

#include "sim.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ---- */

#define MOST_RANKS 65536

/* The state while a file is read. */
struct reading {
    struct sim_schedule *schedule;
    const char *name;
    unsigned long line;
    int rank;     /* -1: outside a rank's part */
    size_t first; /* step of this rank */
};

static int complain_of_line(const struct reading *reading, const char *what)
{
    fprintf(stderr, "iris sim: %s:%lu: %s\n", reading->name, reading->line,
            what);
    return -1;
}

static int compare_label(const void *left, const void *right)
{
    const struct sim_step *a = left, *b = right;

    return (a->label > b->label) - (a->label < b->label);
}

/* The step of this rank with that label, or NULL. */
static struct sim_step *find_step(const struct reading *reading, uint64_t label)
{
    const struct sim_schedule *schedule = reading->schedule;
    struct sim_step key = {.label = label};

    return reading->first == schedule->num_steps
               ? NULL
               : bsearch(&key, schedule->steps + reading->first,
                         schedule->num_steps - reading->first, sizeof key,
                         compare_label);
}

static int add_step(struct reading *reading, const struct sim_step *step)
{
    struct sim_schedule *schedule = reading->schedule;
    size_t count = schedule->num_steps;
    void *more = iris_i_grow(schedule->steps, count, sizeof *step);

    if (more == NULL) {
        return complain_of_line(reading, "no memory");
    }
    schedule->steps = more;
    if (count > reading->first &&
        schedule->steps[count - 1].label >= step->label) {
        return complain_of_line(reading, "labels of a rank must grow");
    }
    schedule->steps[schedule->num_steps++] = *step;
    return 0;
}

/* Adds "l3 requires l1", if both steps exist already. */
static int add_arrow(struct reading *reading, uint64_t after, uint64_t before)
{
    struct sim_schedule *schedule = reading->schedule;
    struct sim_step *to = find_step(reading, after),
                    *from = find_step(reading, before);
    void *more = iris_i_grow(schedule->arrows, schedule->num_arrows,
                             sizeof *schedule->arrows);

    if (to == NULL || from == NULL) {
        return complain_of_line(reading, "requires a label that is not above");
    }
    if (more == NULL) {
        return complain_of_line(reading, "no memory");
    }
    schedule->arrows = more;
    schedule->arrows[schedule->num_arrows++] = (struct sim_arrow){
        (size_t)(from - schedule->steps), (size_t)(to - schedule->steps)};
    to->num_before++;
    return 0;
}

static int begin_rank(struct reading *reading, const char *line)
{
    int rank;

    if (sscanf(line, "rank %d {", &rank) != 1 || rank != reading->rank + 1 ||
        rank >= reading->schedule->num_ranks) {
        return complain_of_line(reading, "ranks are not in order");
    }
    reading->rank = rank;
    reading->first = reading->schedule->num_steps;
    return 0;
}

/* Reads the words behind a step. Returns 0, or -1 after printing a message. */
static int parse_words(const struct reading *reading, const char *line,
                       struct sim_step *step)
{
    const char *round = strstr(line, " round");

    step->is_release = strstr(line, " release") != NULL;
    step->is_copy = strstr(line, " copy") != NULL;
    step->is_round = round != NULL;
    if (round != NULL && step->kind == SIM_CALC &&
        sscanf(round, " round %d", &step->peer) != 1) {
        step->peer = -1;
    }
    return step->peer >= 0 && step->peer < reading->schedule->num_ranks
               ? 0
               : complain_of_line(reading, "a peer that is no rank");
}

static int parse_line(struct reading *reading, const char *line)
{
    struct sim_step step = {.rank = reading->rank, .partner = SIM_NO_STEP};
    unsigned long long label, other, amount, tag = 0;

    if (line[0] == '\n' || line[0] == '}') {
        return 0;
    }
    if (strncmp(line, "rank ", 5) == 0) {
        return begin_rank(reading, line);
    }
    if (reading->rank < 0) {
        return complain_of_line(reading, "a step outside of a rank");
    }
    if (sscanf(line, "l%llu requires l%llu", &label, &other) == 2) {
        return add_arrow(reading, label, other);
    }
    if (sscanf(line, "l%llu: calc %llu", &label, &amount) == 2) {
        step.kind = SIM_CALC;
    } else if (sscanf(line, "l%llu: send %llub to %d tag %llu", &label, &amount,
                      &step.peer, &tag) == 4 ||
               sscanf(line, "l%llu: recv %llub from %d tag %llu", &label,
                      &amount, &step.peer, &tag) == 4) {
        step.kind = strstr(line, ": send ") != NULL ? SIM_SEND : SIM_RECV;
    } else {
        return complain_of_line(reading,
                                "neither calc, send, recv nor requires");
    }
    step.label = label;
    step.amount = amount;
    step.tag = tag;
    return parse_words(reading, line, &step) != 0 ? -1
                                                  : add_step(reading, &step);
}

/* ---- Joining ---- */

/* A send or receive, with the key that joins it with its partner. */
struct message_end {
    int from, to;
    uint64_t tag;
    size_t step;
};

static int compare_key(const struct message_end *a, const struct message_end *b)
{
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    if (a->to != b->to) {
        return a->to < b->to ? -1 : 1;
    }
    return (a->tag > b->tag) - (a->tag < b->tag);
}

static int compare_end(const void *left, const void *right)
{
    const struct message_end *a = left, *b = right;
    int order = compare_key(a, b);

    return order != 0 ? order : (a->step > b->step) - (a->step < b->step);
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

    return a->before != b->before
               ? (a->before > b->before ? 1 : -1)
               : (a->after > b->after) - (a->after < b->after);
}

static void sort_arrows(struct sim_schedule *schedule)
{
    size_t at = 0;

    if (schedule->num_arrows > 1) {
        qsort(schedule->arrows, schedule->num_arrows, sizeof *schedule->arrows,
              compare_arrows);
    }
    for (size_t i = 0; i < schedule->num_steps; i++) {
        schedule->steps[i].first_after = at;
        while (at < schedule->num_arrows && schedule->arrows[at].before == i) {
            at++;
        }
    }
}

int sim_schedule_read(struct sim_schedule *schedule_p, FILE *file,
                      const char *name)
{
    struct sim_schedule schedule = {0};
    struct reading reading = {.schedule = &schedule, .name = name, .rank = -1};
    char *line = NULL;
    size_t capacity = 0;
    int ret = 0;

    while (ret == 0 && getline(&line, &capacity, file) > 0) {
        reading.line++;
        if (schedule.num_ranks > 0) {
            ret = parse_line(&reading, line);
        } else if (sscanf(line, "num_ranks %d", &schedule.num_ranks) != 1 ||
                   schedule.num_ranks < 1 || schedule.num_ranks > MOST_RANKS) {
            ret =
                complain_of_line(&reading, "no schedule: num_ranks is missing");
        }
    }
    free(line);
    if (ret == 0 && (schedule.num_ranks == 0 || join_ends(&schedule) != 0)) {
        ret = complain_of_line(&reading, schedule.num_ranks == 0 ? "is empty"
                                                                 : "no memory");
    }
    if (ret != 0) {
        sim_schedule_free(&schedule);
        return -1;
    }
    sort_arrows(&schedule);
    *schedule_p = schedule;
    return 0;
}

void sim_schedule_free(struct sim_schedule *schedule)
{
    free(schedule->steps);
    free(schedule->arrows);
}

/* ---- Writing ---- */

static int compare_items(const void *left, const void *right)
{
    const struct sim_item *a = left, *b = right;

    if (a->rank != b->rank) {
        return a->rank - b->rank;
    }
    if (a->ns != b->ns) {
        return a->ns < b->ns ? -1 : 1;
    }
    return (a->tag > b->tag) - (a->tag < b->tag);
}

/* One rank's part of the items, in the order of time. */
struct rank_part {
    FILE *file;
    const struct sim_item *items;
    long count;
    long *previous; /* of each item: the one before on its track, or -1 */
    long *begin;    /* the first item of its step */
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

/* The interval before item i waits for item `last` and for all that is one step
 * with that. */
static void print_requires(const struct rank_part *part, long i, long last)
{
    const struct sim_item *step = &part->items[last];

    for (long k = last; k >= 0 && is_same_step(step, &part->items[k]);
         k = part->previous[k]) {
        fprintf(part->file, "l%ld requires l%ld\n", 2 * i, 2 * k + 1);
    }
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

static void print_calc(const struct rank_part *part, long i, long last)
{
    const struct sim_item_cost *cost = &part->items[i].cost;

    fprintf(part->file, "l%ld: calc %lld", 2 * i,
            (long long)find_interval(part, i, last));
    if (cost->is_release) {
        fprintf(part->file, " release");
    }
    if (cost->waits_before) {
        fprintf(part->file, " round %d", part->items[i].peer);
    }
    fprintf(part->file, "\n");
}

static void print_message(const struct rank_part *part, long i)
{
    const struct sim_item *item = &part->items[i];

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
static void print_item(struct rank_part *part, long i)
{
    const struct sim_item *item = &part->items[i];
    long last = item->tid[0] == '\0' ? -1 : append_item(part, i);
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

static int print_rank(FILE *file, const struct sim_item *items, long count)
{
    struct rank_part part = {.file = file, .items = items, .count = count};

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

static int print_schedule(FILE *file, const struct sim_items *items,
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

int sim_schedule_write(struct sim_items *items, int num_ranks, FILE *file)
{
    if (items->count > 1) {
        qsort(items->items, items->count, sizeof *items->items, compare_items);
    }
    if (print_schedule(file, items, num_ranks) == 0) {
        return 0;
    }
    fprintf(stderr, "iris sim: a schedule of %d ranks: no memory\n", num_ranks);
    return -1;
}
