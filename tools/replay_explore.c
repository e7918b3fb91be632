/* SPDX-License-Identifier: MIT
 *
 * Stateless exploration: a run follows a script of steps up to the point where
 * it differs from earlier runs. Source-DPOR (Abdulla, Aronsson, Jonsson,
 * Sagonas, POPL 2014) with sleep sets chooses the steps. So executions that
 * differ only in the order of independent steps count as one. Each old value
 * has a separate run.
 */
#include "config.h"

#include "replay_explore.h"

#include "replay_outputs.h"
#include "replay_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LANES 32
#define TRIES 5 /* a busy machine may be late */

/* A state of the program, and the step that the latest run made in it. */
struct node {
    /* Sets of lanes. */
    uint32_t enabled;
    uint32_t todo;
    uint32_t done;
    uint32_t stuck;              /* lanes whose polls fail in this state */
    struct replay_effect *sleep; /* steps with which no run needs to begin */
    size_t num_sleep;
    unsigned lane;
    bool is_taken;               /* made, perhaps with other values */
    struct replay_effect whole;  /* for all values that it may read */
    struct replay_effect effect; /* in the latest run */
    unsigned old[REPLAY_MOST_READS], num_values[REPLAY_MOST_READS];
    unsigned num_reads;
    size_t clock[MOST_LANES]; /* 1 + the last node of the lane before this */
};

struct explorer {
    const struct replay_program *program;
    struct replay_exploration *exploration;
    const char *path;
    struct replay_who lanes[MOST_LANES];
    unsigned num_lanes;
    struct node *nodes;
    size_t num_nodes;
    struct replay_outputs outputs;
};

/* ---- Lanes ---- */

static unsigned lane_of(struct explorer *e, const struct replay_who *who)
{
    unsigned i = 0;

    while (i < e->num_lanes && memcmp(&e->lanes[i], who, sizeof *who) != 0) {
        i++;
    }
    if (i == MOST_LANES) {
        fprintf(stderr, "iris replay: more than %d workgroups\n", MOST_LANES);
        exit(2);
    }
    if (i == e->num_lanes) {
        e->lanes[e->num_lanes++] = *who;
    }
    return i;
}

static uint32_t asleep(const struct node *node)
{
    uint32_t lanes = 0;

    for (size_t i = 0; i < node->num_sleep; i++) {
        lanes |= UINT32_C(1) << node->sleep[i].lane;
    }
    return lanes;
}

/* ---- Nodes ---- */

static void forget_step(struct node *node)
{
    free(node->effect.accesses);
    free(node->whole.accesses);
    node->effect = node->whole = (struct replay_effect){0};
    node->is_taken = false;
    node->num_reads = 0;
}

static void pop(struct explorer *e)
{
    struct node *node = &e->nodes[--e->num_nodes];

    forget_step(node);
    for (size_t i = 0; i < node->num_sleep; i++) {
        free(node->sleep[i].accesses);
    }
    free(node->sleep);
}

static void put_to_sleep(struct node *node, const struct replay_effect *effect)
{
    node->sleep =
        replay_grow(node->sleep, node->num_sleep, sizeof *node->sleep);
    node->sleep[node->num_sleep++] = replay_copy(effect);
}

/* Adds a node. Sleeping steps stay asleep unless they depend on the step
 * before. */
static struct node *push(struct explorer *e, const struct replay_step *step)
{
    struct node *node, *before;

    e->nodes = replay_grow(e->nodes, e->num_nodes, sizeof *e->nodes);
    node = &e->nodes[e->num_nodes++];
    *node = (struct node){.lane = lane_of(e, &step->who)};
    for (unsigned i = 0; i < step->num_next; i++) {
        node->enabled |= UINT32_C(1) << lane_of(e, &step->next[i]);
    }
    before = e->num_nodes > 1 ? node - 1 : NULL;
    for (size_t i = 0; before != NULL && i < before->num_sleep; i++) {
        if (!replay_depend(&before->sleep[i], &before->effect)) {
            put_to_sleep(node, &before->sleep[i]);
        }
    }
    return node;
}

/* Adds the step's effect to that of its runs with other values. */
static void add_effect(struct replay_effect *whole,
                       const struct replay_effect *effect)
{
    struct replay_effect sum = *effect;

    sum.begins |= whole->begins;
    sum.leaves |= whole->leaves;
    sum.num_accesses += whole->num_accesses;
    sum.accesses = replay_alloc(NULL, sum.num_accesses * sizeof *sum.accesses);
    memcpy(sum.accesses, effect->accesses,
           effect->num_accesses * sizeof *sum.accesses);
    if (whole->num_accesses != 0) {
        memcpy(sum.accesses + effect->num_accesses, whole->accesses,
               whole->num_accesses * sizeof *sum.accesses);
    }
    free(whole->accesses);
    *whole = sum;
}

/* ---- Races between steps ---- */

static bool is_before(const struct explorer *e, size_t first, size_t second)
{
    return e->nodes[second].clock[e->nodes[first].lane] >= first + 1;
}

static void set_clock(struct explorer *e, size_t at)
{
    struct node *node = &e->nodes[at];

    memset(node->clock, 0, sizeof node->clock);
    for (size_t i = 0; i < at; i++) {
        const struct node *before = &e->nodes[i];

        for (unsigned k = 0;
             replay_depend(&before->effect, &node->effect) && k < e->num_lanes;
             k++) {
            if (before->clock[k] > node->clock[k]) {
                node->clock[k] = before->clock[k];
            }
        }
    }
    node->clock[node->lane] = at + 1;
}

/* Whether the two steps race: they depend on each other, and no step between
 * them must come after the first and before the second. */
static bool is_race(const struct explorer *e, size_t first, size_t second)
{
    if (e->nodes[first].lane == e->nodes[second].lane ||
        !replay_depend(&e->nodes[first].effect, &e->nodes[second].effect)) {
        return false;
    }
    for (size_t i = first + 1; i < second; i++) {
        if (is_before(e, first, i) && is_before(e, i, second)) {
            return false;
        }
    }
    return true;
}

/* Returns the lanes that may begin a run of `second` and of the steps between
 * the two, without those that depend on `first`. */
static uint32_t initials(const struct explorer *e, size_t first, size_t second)
{
    uint32_t lanes = 0, seen = 0;

    for (size_t i = first + 1; i <= second; i++) {
        bool is_initial = i == second || !is_before(e, first, i);
        uint32_t lane = UINT32_C(1) << e->nodes[i].lane;

        if (!is_initial || (seen & lane) != 0) {
            continue;
        }
        seen |= lane;
        for (size_t k = first + 1; k < i && is_initial; k++) {
            is_initial = is_before(e, first, k) || !is_before(e, k, i);
        }
        lanes |= is_initial ? lane : 0;
    }
    return lanes;
}

/* For each step that the latest one races with, schedules the other order. */
static void add_races(struct explorer *e, size_t at)
{
    uint32_t own = UINT32_C(1) << e->nodes[at].lane;

    for (size_t i = at; i-- > 0;) {
        struct node *node = &e->nodes[i];
        uint32_t lanes;

        if (!is_race(e, i, at)) {
            continue;
        }
        lanes = initials(e, i, at) & node->enabled;
        if ((lanes & node->todo) != 0 || lanes == 0) {
            continue;
        }
        if ((lanes & ~own) != 0) { /* other lanes need not wait for that step */
            lanes &= ~own;
        }
        node->todo |= lanes & -lanes;
    }
}

/* ---- Runs ---- */

static void take(struct explorer *e, size_t at,
                 const struct replay_schedule *schedule,
                 const struct replay_step *step)
{
    struct node *node = &e->nodes[at];

    free(node->effect.accesses);
    node->effect = replay_effect_of(schedule, step, node->lane);
    add_effect(&node->whole, &node->effect);
    node->is_taken = true;
    node->todo |= UINT32_C(1) << node->lane;
    memcpy(node->old, step->old, sizeof node->old);
    memcpy(node->num_values, step->num_values, sizeof node->num_values);
    node->num_reads = step->num_reads;
    set_clock(e, at);
    add_races(e, at);
}

/* The lane's poll has failed. It may succeed with another value. */
static void fail(struct node *node, const struct replay_step *step)
{
    memcpy(node->old, step->old, sizeof node->old);
    memcpy(node->num_values, step->num_values, sizeof node->num_values);
    node->num_reads = step->num_reads;
}

static int complain(const struct replay_result *result)
{
    fprintf(stderr,
            "iris replay: the program does not do the same under the same "
            "schedule; it said:\n%s",
            result->output);
    return -1;
}

/* Adds a step of the run as node `at` if it is new. Returns 1 to go on, 0 if
 * the run is redundant, and -1 if it does not follow the script. */
static int absorb_step(struct explorer *e, size_t at, size_t scripted,
                       const struct replay_step *step,
                       const struct replay_schedule *schedule)
{
    unsigned lane = lane_of(e, &step->who);

    if (at < scripted && lane != e->nodes[at].lane) {
        return -1;
    }
    if (at >= scripted && (asleep(push(e, step)) & UINT32_C(1) << lane) != 0) {
        return 0;
    }
    if (at + 1 >= scripted) {
        take(e, at, schedule, step);
    }
    return 1;
}

/* Adds the new steps of the run. Returns 1 if it is a new execution, 0 if
 * another run covers it, and -1 if it does not follow the script. */
static int absorb(struct explorer *e, const struct replay_result *result)
{
    const struct replay_schedule *schedule = &result->schedule;
    bool *idle = replay_alloc(NULL, schedule->num_steps * sizeof *idle);
    size_t scripted = e->num_nodes, at = 0;
    int ret = 1;

    replay_find_idle(schedule, idle);
    for (size_t i = 0; i < schedule->num_steps && ret == 1; i++) {
        const struct replay_step *step = &schedule->steps[i];
        unsigned lane = lane_of(e, &step->who);

        if (at + 1 == scripted && idle[i] && lane == e->nodes[at].lane) {
            fail(&e->nodes[at], step);
            ret = 0;
        } else if (!idle[i]) {
            ret = absorb_step(e, at, scripted, step, schedule);
            at++;
        }
    }
    free(idle);
    return ret < 0 || (ret > 0 && at < scripted) ? complain(result) : ret;
}

/* Runs the script, which has the steps and values of all nodes. */
static int run(struct explorer *e, struct replay_result *result)
{
    static const struct replay_schedule from = {.check = "weak", .seed = 1};
    size_t count = 1, most = 1 + e->num_nodes * (1 + REPLAY_MOST_READS);
    struct replay_choice *choices = replay_alloc(NULL, most * sizeof *choices);
    char(*lines)[48] = replay_alloc(NULL, most * sizeof *lines);
    int ret;

    choices[0].text = "explore";
    for (size_t i = 0; i < e->num_nodes; i++) {
        const struct node *node = &e->nodes[i];
        const struct replay_who *who = &e->lanes[node->lane];

        snprintf(lines[count], sizeof *lines, "step run %d %u %u", who->rank,
                 who->stream, who->workgroup);
        choices[count].text = lines[count];
        count++;
        for (unsigned k = 0; k < node->num_reads; k++, count++) {
            snprintf(lines[count], sizeof *lines, "step old %u", node->old[k]);
            choices[count].text = lines[count];
        }
    }
    ret = replay_run(e->program, &from, choices, count, result);
    free(choices);
    free(lines);
    if (ret == 0 && !result->has_schedule) {
        fprintf(stderr,
                "iris replay: %s did not run under the schedule; it said:\n%s",
                e->program->argv[0], result->output);
        ret = -1;
    }
    return ret;
}

/* ---- The search ---- */

/* Chooses the next value of a read in the node's step. */
static bool next_value(struct node *node)
{
    while (node->num_reads > 0) {
        unsigned last = node->num_reads - 1;

        if (node->old[last] + 1 < node->num_values[last]) {
            node->old[last]++;
            return true;
        }
        node->num_reads--;
    }
    return false;
}

/* All values of the step have been explored. */
static void finish_step(struct node *node)
{
    uint32_t lane = UINT32_C(1) << node->lane;

    if (node->is_taken) {
        node->done |= lane;
        put_to_sleep(node, &node->whole);
    } else if ((asleep(node) & lane) == 0) {
        node->stuck |= lane;
        node->todo |= node->enabled; /* it may have stood for others */
    }
    forget_step(node);
}

/* Chooses the first difference between the next run and the latest one. Returns
 * false if everything has been explored. */
static bool advance(struct explorer *e)
{
    for (; e->num_nodes > 0; pop(e)) {
        struct node *node = &e->nodes[e->num_nodes - 1];
        uint32_t lanes;

        if (next_value(node)) {
            return true;
        }
        finish_step(node);
        lanes = (node->done == 0 ? node->enabled : node->todo) & ~node->done &
                ~node->stuck & ~asleep(node);
        if (lanes != 0) {
            node->lane = 0;
            while ((lanes >> node->lane & 1) == 0) {
                node->lane++;
            }
            return true;
        }
    }
    return false;
}

/* Makes a run in which every workgroup and host came in time for its turn.
 * Returns 0, or -1 after printing a message. */
static int run_in_time(struct explorer *e, struct replay_result *result)
{
    int ret = run(e, result);

    for (int i = 1; ret == 0 && result->schedule.is_early && i < TRIES; i++) {
        replay_drop(result);
        ret = run(e, result);
    }
    if (ret == 0 && result->schedule.is_early) {
        fprintf(stderr, "iris replay: a workgroup or host does not come in "
                        "time for its turn; does it wait in a loop?\n");
        ret = -1;
    }
    return ret;
}

/* Makes one run. Returns 0, or -1 after printing a message. */
static int explore_once(struct explorer *e)
{
    struct replay_exploration *exploration = e->exploration;
    struct replay_result result;
    int ret = run_in_time(e, &result);
    bool is_first;

    if (ret != 0) {
        replay_drop(&result);
        return -1;
    }
    ret = absorb(e, &result);
    is_first = exploration->failure[0] == '\0';
    if (ret > 0) {
        exploration->count++;
        replay_outputs_add(&e->outputs, result.output);
    }
    exploration->again += ret == 0;
    if (ret >= 0 && result.failure[0] != '\0') {
        exploration->failed++;
        if (is_first) {
            memcpy(exploration->failure, result.failure,
                   sizeof exploration->failure);
            ret = replay_keep(e->program, e->path);
        }
    }
    replay_drop(&result);
    return ret < 0 ? -1 : 0;
}

int replay_explore(const struct replay_program *program, const char *path,
                   struct replay_exploration *exploration)
{
    struct explorer e = {
        .program = program, .exploration = exploration, .path = path};
    int ret;

    do {
        ret = explore_once(&e);
        if (ret == 0 && exploration->failure[0] != '\0' &&
            !exploration->goes_on) {
            break;
        }
        exploration->is_complete = ret == 0 && !advance(&e);
    } while (ret == 0 && !exploration->is_complete &&
             exploration->count < exploration->most);
    replay_outputs_end(&e.outputs, exploration->goes_on);
    while (e.num_nodes > 0) {
        pop(&e);
    }
    free(e.nodes);
    return ret;
}
