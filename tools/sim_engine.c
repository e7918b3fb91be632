/* SPDX-License-Identifier: MIT
 *
 * Runs a schedule on a platform, event by event. A send occupies its rank's way
 * out and the receiver's way in for as long as its bytes take, after all sends
 * that were ready before it; the rank itself goes on at once, as after a put. A
 * receive ends when all bytes have arrived.
 */
#include "config.h"

#include "sim_engine.h"

#include <stdlib.h>

/* Ways of a rank to and from its own node, and to and from others. */
struct ways {
    double out[2], in[2];
    double computed, waited; /* until when intervals have been counted */
};

/* What the interval adds to those before it. */
static double added(double begin, double end, double *until)
{
    double from = begin > *until ? begin : *until;

    *until = end > *until ? end : *until;
    return end > from ? end - from : 0;
}

/* A step that is ready. */
struct ready {
    double us;
    size_t step;
};

struct engine {
    const struct sim_schedule *schedule;
    const struct sim_platform *platform;
    double compute;
    struct sim_run *run;
    struct ways *ways;
    size_t *waiting; /* of each step: what it still waits for */
    struct ready *heap;
    size_t count;
};

/* ---- Steps that are ready, the earliest first ---- */

static int is_before(const struct ready *a, const struct ready *b)
{
    return a->us != b->us ? a->us < b->us : a->step < b->step;
}

static void push(struct engine *engine, double us, size_t step)
{
    struct ready one = {us, step};
    size_t at = engine->count++;

    while (at > 0 && is_before(&one, &engine->heap[(at - 1) / 2])) {
        engine->heap[at] = engine->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    engine->heap[at] = one;
}

static struct ready pop(struct engine *engine)
{
    struct ready top = engine->heap[0];
    struct ready last = engine->heap[--engine->count];
    size_t at = 0, next;

    while ((next = 2 * at + 1) < engine->count) {
        if (next + 1 < engine->count &&
            is_before(&engine->heap[next + 1], &engine->heap[next])) {
            next++;
        }
        if (!is_before(&engine->heap[next], &last)) {
            break;
        }
        engine->heap[at] = engine->heap[next];
        at = next;
    }
    engine->heap[at] = last;
    return top;
}

/* ---- Steps ---- */

static void finish(struct engine *engine, size_t i, double us)
{
    const struct sim_schedule *schedule = engine->schedule;
    struct sim_times *times = engine->run->times;
    struct sim_rank_figures *rank =
        &engine->run->ranks[schedule->steps[i].rank];
    size_t at = schedule->steps[i].first_after;

    times[i].end = us;
    times[i].is_done = 1;
    rank->end_us = us > rank->end_us ? us : rank->end_us;
    for (; at < schedule->num_arrows && schedule->arrows[at].before == i;
         at++) {
        size_t after = schedule->arrows[at].after;

        if (us >= times[after].begin) {
            times[after].begin = us;
            times[after].cause = i;
        }
        if (--engine->waiting[after] == 0) {
            push(engine, times[after].begin, after);
        }
    }
}

static void receive(struct engine *engine, size_t i)
{
    struct sim_times *times = engine->run->times;
    const struct sim_step *step = &engine->schedule->steps[i];
    struct sim_rank_figures *rank = &engine->run->ranks[step->rank];
    double arrival = times[step->partner].arrival;

    rank->received += engine->schedule->steps[step->partner].amount;
    if (arrival > times[i].begin) {
        rank->wait_us +=
            added(times[i].begin, arrival, &engine->ways[step->rank].waited);
        times[i].cause = step->partner;
        finish(engine, i, arrival);
    } else {
        finish(engine, i, times[i].begin);
    }
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Whether the receive of a send is ready and not done. */
static int is_waiting(const struct engine *engine, size_t i)
{
    return i != SIM_NO_STEP && engine->waiting[i] == 0 &&
           !engine->run->times[i].is_done;
}

static void send(struct engine *engine, size_t i, double us)
{
    const struct sim_platform *platform = engine->platform;
    const struct sim_step *step = &engine->schedule->steps[i];
    int far =
        step->rank / platform->node_ranks != step->peer / platform->node_ranks;
    double each = platform->costs[far ? SIM_NETWORK : SIM_LINK];
    double length = (double)step->amount / 1e6 * each;
    double *out = &engine->ways[step->rank].out[far];
    double *in = &engine->ways[step->peer].in[far];
    struct sim_rank_figures *rank = &engine->run->ranks[step->rank];
    double begin = larger(us, *out);

    /* One peer alone is sent to over its share of the links. */
    *out = begin + length;
    *in = larger(begin + length * (far ? 1 : platform->links), *in + length);
    engine->run->times[i].arrival =
        *in + platform->costs[far ? SIM_HOP : SIM_FLAG];
    rank->link_us += length;
    rank->sent += step->amount;
}

static void run_step(struct engine *engine, struct ready ready)
{
    const struct sim_step *step = &engine->schedule->steps[ready.step];
    struct sim_times *times = engine->run->times;

    if (times[ready.step].is_done) { /* a receive whose send was the same us */
        return;
    }
    if (step->kind == SIM_CALC) {
        double us = (double)step->amount / 1000 * engine->compute;

        engine->run->ranks[step->rank].compute_us +=
            added(ready.us, ready.us + us, &engine->ways[step->rank].computed);
        finish(engine, ready.step, ready.us + us);
    } else if (step->kind == SIM_SEND) {
        send(engine, ready.step, ready.us);
        finish(engine, ready.step, ready.us);
        if (is_waiting(engine, step->partner) &&
            times[step->partner].begin <= ready.us) {
            receive(engine, step->partner);
        }
    } else if (step->partner != SIM_NO_STEP && times[step->partner].is_done) {
        receive(engine, ready.step);
    }
}

static void sum_up(struct engine *engine)
{
    struct sim_run *run = engine->run;

    run->last = SIM_NO_STEP;
    for (size_t i = 0; i < engine->schedule->num_steps; i++) {
        if (!run->times[i].is_done) {
            run->num_stuck++;
        } else if (run->last == SIM_NO_STEP ||
                   run->times[i].end > run->times[run->last].end) {
            run->last = i;
        }
    }
    run->us = run->last == SIM_NO_STEP ? 0 : run->times[run->last].end;
}

int sim_engine_run(const struct sim_schedule *schedule,
                   const struct sim_platform *platform, double compute,
                   struct sim_run *run_p)
{
    size_t count = schedule->num_steps, ranks = (size_t)schedule->num_ranks;
    struct sim_run run = {.times = calloc(count + 1, sizeof *run.times),
                          .ranks = calloc(ranks, sizeof *run.ranks)};
    struct engine engine = {schedule, platform, compute, &run,
                            NULL,     NULL,     NULL,    0};
    int ret = -1;

    engine.ways = calloc(ranks, sizeof *engine.ways);
    engine.waiting = calloc(count + 1, sizeof *engine.waiting);
    engine.heap = calloc(count + 1, sizeof *engine.heap);
    if (run.times != NULL && run.ranks != NULL && engine.ways != NULL &&
        engine.waiting != NULL && engine.heap != NULL) {
        for (size_t i = 0; i < count; i++) {
            engine.waiting[i] = schedule->steps[i].num_before;
            run.times[i].cause = SIM_NO_STEP;
            if (engine.waiting[i] == 0) {
                push(&engine, 0, i);
            }
        }
        while (engine.count > 0) {
            run_step(&engine, pop(&engine));
        }
        sum_up(&engine);
        ret = 0;
    }
    free(engine.ways);
    free(engine.waiting);
    free(engine.heap);
    if (ret != 0) {
        sim_engine_free(&run);
        return -1;
    }
    *run_p = run;
    return 0;
}

void sim_engine_free(struct sim_run *run)
{
    free(run->times);
    free(run->ranks);
}
