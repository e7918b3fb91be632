/* SPDX-License-Identifier: MIT
 *
 * Reads schedules, and joins sends with receives.
 */
#include "config.h"

#include "sim_schedule.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define MOST_RANKS 65536

/* The state while a file is read. */
struct reading {
    struct sim_schedule *schedule;
    const char *name;
    unsigned long line;
    int rank;     /* -1: outside a rank's part */
    size_t first; /* step of this rank */
};

static int fail(const struct reading *reading, const char *what)
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
static struct sim_step *find(const struct reading *reading, uint64_t label)
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
        return fail(reading, "no memory");
    }
    schedule->steps = more;
    if (count > reading->first &&
        schedule->steps[count - 1].label >= step->label) {
        return fail(reading, "labels of a rank must grow");
    }
    schedule->steps[schedule->num_steps++] = *step;
    return 0;
}

/* Adds "l3 requires l1", if both steps exist already. */
static int add_arrow(struct reading *reading, uint64_t after, uint64_t before)
{
    struct sim_schedule *schedule = reading->schedule;
    struct sim_step *to = find(reading, after), *from = find(reading, before);
    void *more = iris_i_grow(schedule->arrows, schedule->num_arrows,
                             sizeof *schedule->arrows);

    if (to == NULL || from == NULL) {
        return fail(reading, "requires a label that is not above");
    }
    if (more == NULL) {
        return fail(reading, "no memory");
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
        return fail(reading, "ranks are not in order");
    }
    reading->rank = rank;
    reading->first = reading->schedule->num_steps;
    return 0;
}

/* Reads the words behind a step. Returns 0, or -1 after printing a message. */
static int take_words(const struct reading *reading, const char *line,
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
               : fail(reading, "a peer that is no rank");
}

static int take_line(struct reading *reading, const char *line)
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
        return fail(reading, "a step outside of a rank");
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
        return fail(reading, "neither calc, send, recv nor requires");
    }
    step.label = label;
    step.amount = amount;
    step.tag = tag;
    return take_words(reading, line, &step) != 0 ? -1
                                                 : add_step(reading, &step);
}

/* ---- Joining ---- */

/* A send or receive, with the key that joins it with its partner. */
struct end {
    int from, to;
    uint64_t tag;
    size_t step;
};

static int compare_key(const struct end *a, const struct end *b)
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
    const struct end *a = left, *b = right;
    int order = compare_key(a, b);

    return order != 0 ? order : (a->step > b->step) - (a->step < b->step);
}

static size_t list_ends(const struct sim_schedule *schedule, enum sim_kind kind,
                        struct end *ends)
{
    size_t count = 0;

    for (size_t i = 0; i < schedule->num_steps; i++) {
        const struct sim_step *step = &schedule->steps[i];
        int sends = kind == SIM_SEND;

        if (step->kind == kind) {
            ends[count++] =
                (struct end){sends ? step->rank : step->peer,
                             sends ? step->peer : step->rank, step->tag, i};
        }
    }
    qsort(ends, count, sizeof *ends, compare_end);
    return count;
}

/* Joins the first send with a tag with the first receive, and so on. */
static int join(struct sim_schedule *schedule)
{
    struct end *ends = calloc(2 * schedule->num_steps + 1, sizeof *ends);
    size_t num_sends, num_receives, i = 0, k = 0;
    struct end *receives;

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
            ret = take_line(&reading, line);
        } else if (sscanf(line, "num_ranks %d", &schedule.num_ranks) != 1 ||
                   schedule.num_ranks < 1 || schedule.num_ranks > MOST_RANKS) {
            ret = fail(&reading, "no schedule: num_ranks is missing");
        }
    }
    free(line);
    if (ret == 0 && (schedule.num_ranks == 0 || join(&schedule) != 0)) {
        ret =
            fail(&reading, schedule.num_ranks == 0 ? "is empty" : "no memory");
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
