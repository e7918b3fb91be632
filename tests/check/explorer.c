/* SPDX-License-Identifier: MIT
 *
 * Runs a small program in all ways that IRIS_CHECK=weak allows, for the litmus
 * tests: explorer [--all] [--limit N] PROGRAM [ARGUMENT]...
 *
 * A step is what one workgroup does in one turn. Two steps depend on each other
 * if they use the same word and one of them writes it. The first step of a
 * workgroup sees the effects of its rank's earlier workgroups. The library's own
 * kernels make all writes visible to all. Source-DPOR (Abdulla, Aronsson,
 * Jonsson, Sagonas, POPL 2014) with sleep sets chooses the steps. So executions
 * that differ only in the order of independent steps count as one. Each old
 * value has a separate run.
 *
 * A run begins with a script of steps and values, in the nodes that the latest
 * run left; it then goes on as it likes, and adds nodes.
 */
#include "config.h"

#include "tools/iris.h"
#include "tools/replay.h"

#include <stdbool.h>
#include <stddef.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct exploration {
    unsigned most;        /* limit for the number of executions */
    bool goes_on;         /* continue after a failure */
    unsigned long count;  /* number of different executions */
    unsigned long again;  /* runs that repeated one of them from some step on */
    unsigned long failed; /* runs that failed */
    char failure[512];    /* the first failure; empty if no run failed */
    bool is_complete;
};

/* Accesses to words of 8 bytes. */
struct access {
    int target;
    uint64_t first, last;
    bool writes;
};

/* The effect of a step, independent of the run. */
struct effect {
    unsigned lane; /* the number of the step's workgroup */
    int rank;
    bool begins, leaves, is_own;
    size_t num_accesses;
    struct access *accesses;
};

struct output {
    char *text;
    unsigned long count;
};

/* Must be all zero at the start. */
struct outputs {
    struct output *outputs;
    size_t count;
};

/* A workgroup of the kernel that runs on a stream of the rank. */
struct who {
    int rank;
    unsigned stream;
    unsigned workgroup;
};

#define MOST_NEXT 16
#define MOST_READS 16

/* The action of a workgroup in one turn of an explored run. */
struct step {
    struct who who;
    struct who next[MOST_NEXT]; /* candidates for the turn */
    unsigned num_next;
    unsigned old[MOST_READS]; /* choices of values, 0: the newest */
    unsigned num_values[MOST_READS];
    unsigned num_reads;
    size_t first_op, num_ops;
    bool begins, leaves; /* begins or leaves the kernel */
    bool fails;          /* the poll failed, and nothing else happened */
    bool spins;          /* the latest of many steps that may be a loop */
    bool is_own;         /* the kernel belongs to the library */
};

/* One run: its schedule and the steps in it. */
struct run {
    const struct replay_schedule *schedule;
    struct step *steps;
    size_t num_steps;
};

/* ---- Steps ---- */

/* "step run 0 0 0 of 0 0 0, 1 0 0," */
static bool parse_step_run(const char *line, struct step *step)
{
    struct who *who = &step->who;
    const char *at = strstr(line, " of");

    *step = (struct step){0};
    if (at == NULL || sscanf(line, "step run %d %u %u", &who->rank,
                             &who->stream, &who->workgroup) != 3) {
        return false;
    }
    for (at += 3; *at != '\0'; at = strchr(at, ',') + 1) {
        who = &step->next[step->num_next];
        if (step->num_next == MOST_NEXT || strchr(at, ',') == NULL ||
            sscanf(at, "%d %u %u", &who->rank, &who->stream, &who->workgroup) !=
                3) {
            return false;
        }
        step->num_next++;
    }
    return true;
}

/* Parses another line about the latest step. */
static bool parse_step(const char *line, struct step *step)
{
    unsigned i = step->num_reads;

    step->begins |= strcmp(line, "step begins") == 0;
    step->leaves |= strcmp(line, "step leaves") == 0;
    step->fails |= strcmp(line, "step fails") == 0;
    step->spins |= strcmp(line, "step spins") == 0;
    step->is_own |= strcmp(line, "step own") == 0;
    if (strncmp(line, "step old", 8) == 0) {
        step->num_reads++;
        return i < MOST_READS &&
               sscanf(line, "step old %u of %u", &step->old[i],
                      &step->num_values[i]) == 2;
    }
    return true;
}

/* Finds the steps of a run. The caller frees them. */
static struct run parse_run(const struct replay_schedule *schedule)
{
    struct run run = {.schedule = schedule};

    run.steps =
        replay_alloc(NULL, (schedule->num_marks + 1) * sizeof *run.steps);
    for (size_t i = 0; i < schedule->num_marks; i++) {
        const struct replay_mark *mark = &schedule->marks[i];
        struct step *last = &run.steps[run.num_steps];
        bool begins = strncmp(mark->line, "step run", 8) == 0;

        if (begins && run.num_steps > 0) {
            last[-1].num_ops = mark->op - last[-1].first_op;
        }
        if (begins ? !parse_step_run(mark->line, last)
                   : run.num_steps == 0 || !parse_step(mark->line, last - 1)) {
            fprintf(stderr, "explorer: a wrong line: %s\n", mark->line);
            exit(2);
        }
        if (begins) {
            last->first_op = mark->op;
            run.num_steps++;
        }
    }
    if (run.num_steps > 0) {
        struct step *last = &run.steps[run.num_steps - 1];

        last->num_ops = schedule->num_ops - last->first_op;
    }
    return run;
}

/* ---- Effects of steps ---- */

static struct effect find_effect(const struct replay_schedule *schedule,
                                 const struct step *step, unsigned lane)
{
    struct effect effect = {.lane = lane,
                            .rank = step->who.rank,
                            .begins = step->begins,
                            .leaves = step->leaves,
                            .is_own = step->is_own};

    effect.accesses =
        replay_alloc(NULL, step->num_ops * sizeof *effect.accesses);
    for (size_t i = 0; i < step->num_ops; i++) {
        const struct replay_op *op = &schedule->ops[step->first_op + i];

        if (op->target >= 0 && op->bytes != 0) {
            effect.accesses[effect.num_accesses++] =
                (struct access){op->target, op->offset / 8,
                                (op->offset + op->bytes - 1) / 8, op->writes};
        }
    }
    return effect;
}

static struct effect copy_effect(const struct effect *effect)
{
    struct effect copy = *effect;
    size_t bytes = effect->num_accesses * sizeof *copy.accesses;

    copy.accesses = replay_alloc(NULL, bytes);
    memcpy(copy.accesses, effect->accesses, bytes);
    return copy;
}

/* Whether the order of the two steps may matter. */
static bool depend(const struct effect *a, const struct effect *b)
{
    if (a->lane == b->lane || a->is_own || b->is_own ||
        (a->rank == b->rank &&
         ((a->begins && b->leaves) || (a->leaves && b->begins)))) {
        return true;
    }
    for (size_t i = 0; i < a->num_accesses; i++) {
        for (size_t k = 0; k < b->num_accesses; k++) {
            const struct access *x = &a->accesses[i];
            const struct access *y = &b->accesses[k];

            if ((x->writes || y->writes) && x->target == y->target &&
                x->first <= y->last && y->first <= x->last) {
                return true;
            }
        }
    }
    return false;
}

static bool is_same_lane(const struct step *a, const struct step *b)
{
    return a->who.rank == b->who.rank && a->who.stream == b->who.stream &&
           a->who.workgroup == b->who.workgroup;
}

/* Whether the step reads the same value at the same place in the code as the
 * step before, or does nothing at all. */
static bool repeats_step(const struct replay_schedule *schedule,
                         const struct step *before, const struct step *step)
{
    const struct replay_op *a = &schedule->ops[before->first_op];
    const struct replay_op *b = &schedule->ops[step->first_op];

    if (step->begins || step->leaves || step->is_own) {
        return false;
    }
    return step->num_ops == 0 ||
           (step->num_ops == 1 && before->num_ops == 1 && !b->writes &&
            a->code == b->code && replay_is_same(a, b));
}

/* Marks the steps that repeat step `at` in a loop. The loop is certain up to
 * the last step that spins, and one repetition after it. A step that repeat an
 * old value equals the one that read it earlier. */
static void mark_loop(const struct run *run, size_t at, bool *idle)
{
    const struct step *first = &run->steps[at];
    size_t known = at, i = at + 1;
    bool spins = false;

    for (; i < run->num_steps; i++) {
        const struct step *step = &run->steps[i];

        if (is_same_lane(first, step)) {
            if (!repeats_step(run->schedule, first, step)) {
                break;
            }
            idle[i] |= step->num_ops == 1 &&
                       run->schedule->ops[step->first_op].behind != 0;
            spins |= step->spins;
            known = spins ? i : known;
        }
    }
    for (i = at + 1; i <= known; i++) {
        idle[i] |= is_same_lane(first, &run->steps[i]);
    }
}

/* Marks the steps that change nothing: polls that failed, and reads in a loop
 * that repeat a value. The run without them is the same. */
static void find_idle(const struct run *run, bool *idle)
{
    for (size_t i = 0; i < run->num_steps; i++) {
        idle[i] = run->steps[i].fails && run->steps[i].num_ops == 0;
    }
    for (size_t i = 0; i < run->num_steps; i++) {
        if (!idle[i] && run->steps[i].num_ops == 1) {
            mark_loop(run, i, idle);
        }
    }
}

/* ---- Outputs ---- */

static void add_output(struct outputs *outputs, const char *text)
{
    struct output *output;
    size_t i = 0, bytes = strlen(text) + 1;

    while (i < outputs->count && strcmp(outputs->outputs[i].text, text) != 0) {
        i++;
    }
    if (i == outputs->count) {
        output =
            replay_grow(&outputs->outputs, &outputs->count, sizeof *output);
        *output = (struct output){.text = replay_alloc(NULL, bytes)};
        memcpy(output->text, text, bytes);
    }
    outputs->outputs[i].count++;
}

/* Prints the outputs if `prints` is set, and frees them. */
static void end_outputs(struct outputs *outputs, bool prints)
{
    for (size_t i = 0; i < outputs->count; i++) {
        const struct output *output = &outputs->outputs[i];
        size_t length = strlen(output->text);

        if (prints) {
            printf("%lu executions: %s%s", output->count, output->text,
                   length == 0 || output->text[length - 1] != '\n' ? "\n" : "");
        }
        free(output->text);
    }
    free(outputs->outputs);
    *outputs = (struct outputs){0};
}

#define MOST_LANES 32
#define TRIES 5 /* a busy machine may be late */

/* A state of the program, and the step that the latest run made in it. */
struct node {
    /* Sets of lanes. */
    uint32_t enabled;
    uint32_t todo;
    uint32_t done;
    uint32_t stuck;       /* lanes whose polls fail in this state */
    struct effect *sleep; /* steps with which no run needs to begin */
    size_t num_sleep;
    unsigned lane;
    bool is_taken;        /* made, perhaps with other values */
    struct effect whole;  /* for all values that it may read */
    struct effect effect; /* in the latest run */
    unsigned old[MOST_READS], num_values[MOST_READS];
    unsigned num_reads;
    size_t clock[MOST_LANES]; /* 1 + the last node of the lane before this */
};

struct explorer {
    const struct replay_program *program;
    struct exploration *exploration;
    const char *path;
    struct who lanes[MOST_LANES];
    unsigned num_lanes;
    struct node *nodes;
    size_t num_nodes;
    struct outputs outputs;
};

/* ---- Lanes ---- */

static unsigned lane_of(struct explorer *e, const struct who *who)
{
    unsigned i = 0;

    while (i < e->num_lanes && memcmp(&e->lanes[i], who, sizeof *who) != 0) {
        i++;
    }
    if (i == MOST_LANES) {
        fprintf(stderr, "explorer: more than %d workgroups\n", MOST_LANES);
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
    node->effect = node->whole = (struct effect){0};
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

static void put_to_sleep(struct node *node, const struct effect *effect)
{
    struct effect copy = copy_effect(effect);

    *(struct effect *)replay_grow(&node->sleep, &node->num_sleep, sizeof copy) =
        copy;
}

/* Adds a node. Sleeping steps stay asleep unless they depend on the step
 * before. */
static struct node *push(struct explorer *e, const struct step *step)
{
    struct node *node, *before;

    node = replay_grow(&e->nodes, &e->num_nodes, sizeof *node);
    *node = (struct node){.lane = lane_of(e, &step->who)};
    for (unsigned i = 0; i < step->num_next; i++) {
        node->enabled |= UINT32_C(1) << lane_of(e, &step->next[i]);
    }
    before = e->num_nodes > 1 ? node - 1 : NULL;
    for (size_t i = 0; before != NULL && i < before->num_sleep; i++) {
        if (!depend(&before->sleep[i], &before->effect)) {
            put_to_sleep(node, &before->sleep[i]);
        }
    }
    return node;
}

/* Adds the step's effect to that of its runs with other values. */
static void add_effect(struct effect *whole, const struct effect *effect)
{
    struct effect sum = *effect;

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
             depend(&before->effect, &node->effect) && k < e->num_lanes; k++) {
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
        !depend(&e->nodes[first].effect, &e->nodes[second].effect)) {
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

static void take_step(struct explorer *e, size_t at,
                      const struct replay_schedule *schedule,
                      const struct step *step)
{
    struct node *node = &e->nodes[at];

    free(node->effect.accesses);
    node->effect = find_effect(schedule, step, node->lane);
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
static void fail_step(struct node *node, const struct step *step)
{
    memcpy(node->old, step->old, sizeof node->old);
    memcpy(node->num_values, step->num_values, sizeof node->num_values);
    node->num_reads = step->num_reads;
}

static int complain(const struct replay_result *result)
{
    fprintf(stderr,
            "explorer: the program does not do the same under the same "
            "schedule; it said:\n%s",
            result->output);
    return -1;
}

/* Adds a step of the run as node `at` if it is new. Returns 1 to go on, 0 if
 * the run is redundant, and -1 if it does not follow the script. */
static int absorb_step(struct explorer *e, size_t at, size_t scripted,
                       const struct step *step,
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
        take_step(e, at, schedule, step);
    }
    return 1;
}

/* Adds the new steps of the run. Returns 1 if it is a new execution, 0 if
 * another run covers it, and -1 if it does not follow the script. */
static int absorb_run(struct explorer *e, const struct replay_result *result)
{
    struct run made = parse_run(&result->schedule);
    bool *idle = replay_alloc(NULL, made.num_steps * sizeof *idle);
    size_t scripted = e->num_nodes, at = 0;
    int ret = 1;

    find_idle(&made, idle);
    for (size_t i = 0; i < made.num_steps && ret == 1; i++) {
        const struct step *step = &made.steps[i];
        unsigned lane = lane_of(e, &step->who);

        if (at + 1 == scripted && idle[i] && lane == e->nodes[at].lane) {
            fail_step(&e->nodes[at], step);
            ret = 0;
        } else if (!idle[i]) {
            ret = absorb_step(e, at, scripted, step, made.schedule);
            at++;
        }
    }
    free(idle);
    free(made.steps);
    return ret < 0 || (ret > 0 && at < scripted) ? complain(result) : ret;
}

/* Runs the script, which has the steps and values of all nodes. */
static int run_script(struct explorer *e, struct replay_result *result)
{
    static const struct replay_schedule from = {.check = "weak", .seed = 1};
    size_t count = 1, most = 1 + e->num_nodes * (1 + MOST_READS);
    struct replay_choice *choices = replay_alloc(NULL, most * sizeof *choices);
    char(*lines)[48] = replay_alloc(NULL, most * sizeof *lines);
    int ret;

    choices[0].text = "explore";
    for (size_t i = 0; i < e->num_nodes; i++) {
        const struct node *node = &e->nodes[i];
        const struct who *who = &e->lanes[node->lane];

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
                "explorer: %s did not run under the schedule; it said:\n%s",
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
    int ret = run_script(e, result);

    for (int i = 1; ret == 0 && result->schedule.is_early && i < TRIES; i++) {
        replay_drop(result);
        ret = run_script(e, result);
    }
    if (ret == 0 && result->schedule.is_early) {
        fprintf(stderr, "explorer: a workgroup or host does not come in "
                        "time for its turn; does it wait in a loop?\n");
        ret = -1;
    }
    return ret;
}

/* Makes one run. Returns 0, or -1 after printing a message. */
static int explore_once(struct explorer *e)
{
    struct exploration *exploration = e->exploration;
    struct replay_result result;
    int ret = run_in_time(e, &result);
    bool is_first;

    if (ret != 0) {
        replay_drop(&result);
        return -1;
    }
    ret = absorb_run(e, &result);
    is_first = exploration->failure[0] == '\0';
    if (ret > 0) {
        exploration->count++;
        add_output(&e->outputs, result.output);
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

/* Runs the program in each order of dependent steps and with each old value
 * that the model allows. Prints each different output once if goes_on is set.
 * After the first failure `path` has its schedule. Returns 0, or -1 after
 * printing a message. */
static int explore_all(const struct replay_program *program, const char *path,
                       struct exploration *exploration)
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
    end_outputs(&e.outputs, exploration->goes_on);
    while (e.num_nodes > 0) {
        pop(&e);
    }
    free(e.nodes);
    return ret;
}

/* ---- The command line ---- */

static struct exploration exploration = {.most = 100000};
static struct replay_program program = {.timeout_s = 60};

static error_t parse_explorer(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case 'a':
        exploration.goes_on = true;
        return 0;
    case 'l':
        exploration.most =
            (unsigned)tool_number(state, "limit", arg, 1, INT_MAX);
        return 0;
    case ARGP_KEY_ARG:
        program.argv = tool_rest(state);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "pass a program");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* 0 if no execution fails, 1 if one does, 2 if there are more or something else
 * went wrong. */
static int report_exploration(void)
{
    if (exploration.failure[0] != '\0') {
        printf("%lu of %lu runs fail, with %s; the schedule is in explored\n",
               exploration.failed, exploration.count + exploration.again,
               exploration.failure);
        return 1;
    }
    printf("no failure in %s%lu executions (%lu more runs were like these)\n",
           exploration.is_complete ? "all " : "", exploration.count,
           exploration.again);
    if (!exploration.is_complete) {
        fprintf(stderr, "explorer: there are more executions; see --limit\n");
    }
    return exploration.is_complete ? 0 : 2;
}

int main(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"all", 'a', NULL, 0, "Explore on after a failure; list the outputs",
         0},
        {"limit", 'l', "NUMBER", 0,
         "Of executions to explore (default: 100000)", 0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_explorer,
        .args_doc = "PROGRAM [ARGUMENT]...",
        .doc = "Runs PROGRAM in all ways that IRIS_CHECK=weak allows, until it "
               "fails, and writes the schedule of the first failure to the "
               "file explored.",
    };
    int ret = 2;

    tool_parse(&argp, argc, argv, NULL);
    if (replay_prepare(&program) != 0) {
        return 2;
    }
    if (explore_all(&program, "explored", &exploration) == 0) {
        ret = report_exploration();
    }
    replay_clean(&program);
    return ret;
}
