/* SPDX-License-Identifier: MIT
 *
 * Runs a schedule on a platform, event by event. A send occupies its rank's way
 * out and the receiver's way in for the time that its bytes take, after all
 * sends that were ready before it. The rank itself continues at once, as after
 * a put. A receive ends when all bytes have arrived. A copy engine starts, then
 * sends at its own rate, and arrives without a flag. With a network, a rank
 * sends one message at a time to other nodes, and the network reports its
 * arrival.
 */
#include "config.h"

#include "sim_engine.h"

#include <math.h>
#include <stdlib.h>

/* Ways of a rank to and from its own node, and to and from others. */
struct ways {
    double out[2], in[2];
    double computed, waited; /* until when intervals have been counted */
    size_t first, last;      /* messages to the network; SIM_NO_STEP: none */
    double sent_us;          /* when the first of them left */
};

/* The length that the interval adds to the union of the earlier ones. */
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
    struct sim_network *network; /* NULL: none */
    double compute;
    struct sim_run *run;
    struct ways *ways;
    double *pairs;   /* in a mesh, until when a rank's link to a peer is full */
    size_t *waiting; /* number of unfinished steps that each step waits for */
    size_t *next;    /* of each step: the rank's next message to the network */
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

static int is_far(const struct engine *engine, const struct sim_step *step)
{
    int near = engine->platform->node_ranks;

    return step->rank / near != step->peer / near;
}

/* A flag's way to the peer. */
static double latency(const struct engine *engine, const struct sim_step *step)
{
    return engine->platform->costs[is_far(engine, step) ? SIM_HOP : SIM_FLAG];
}

static double round_trip(const struct engine *engine,
                         const struct sim_step *step)
{
    return step->is_round ? 2 * latency(engine, step) : 0;
}

/* The rate of a link, or of the copy engine if the platform has one. */
static enum sim_cost rate_of(const struct engine *engine,
                             const struct sim_step *step)
{
    if (is_far(engine, step)) {
        return SIM_NETWORK;
    }
    return step->is_copy && engine->platform->costs[SIM_ENGINE] > 0 ? SIM_ENGINE
                                                                    : SIM_LINK;
}

/* The time at which the last byte arrives. With a switch, a rank's messages
 * leave one after the other, and arrive one after the other. In a mesh this
 * holds for each pair. */
static double cross_links(struct engine *engine, const struct sim_step *step,
                          double us)
{
    const struct sim_platform *platform = engine->platform;
    int far = is_far(engine, step), near = platform->node_ranks;
    double length =
        (double)step->amount / 1e6 * platform->costs[rate_of(engine, step)];
    double *out = &engine->ways[step->rank].out[far];
    double *in = &engine->ways[step->peer].in[far];

    engine->run->ranks[step->rank].link_us += length;
    if (!far && platform->links > 1) {
        out = &engine->pairs[step->rank * near + step->peer % near];
        *out = larger(us, *out) + length * platform->links;
        return *out;
    }
    *out = larger(us, *out) + length;
    *in = larger(*out, *in + length);
    return *in;
}

static void send_on_links(struct engine *engine, size_t i, double us)
{
    const struct sim_step *step = &engine->schedule->steps[i];
    double arrival = cross_links(engine, step, us);

    engine->run->times[i].arrival =
        arrival + (step->is_copy && !is_far(engine, step)
                       ? engine->platform->costs[SIM_COPY]
                       : latency(engine, step));
}

/* Starts the rank's first message that waits for the network. */
static void send_next(struct engine *engine, int rank, double us)
{
    struct ways *ways = &engine->ways[rank];
    const struct sim_step *step;

    if (ways->first != SIM_NO_STEP) {
        step = &engine->schedule->steps[ways->first];
        ways->sent_us = us;
        sim_network_send(engine->network, step->rank, step->peer,
                         (double)step->amount, ways->first);
    }
}

static void send_on_network(struct engine *engine, size_t i, double us)
{
    int rank = engine->schedule->steps[i].rank;
    struct ways *ways = &engine->ways[rank];

    engine->run->times[i].arrival = INFINITY;
    engine->next[i] = SIM_NO_STEP;
    if (ways->first != SIM_NO_STEP) {
        engine->next[ways->last] = i;
        ways->last = i;
        return;
    }
    ways->first = ways->last = i;
    send_next(engine, rank, us);
}

static void send(struct engine *engine, size_t i, double us)
{
    const struct sim_step *step = &engine->schedule->steps[i];

    engine->run->ranks[step->rank].sent += step->amount;
    if (engine->network != NULL && step->amount > 0 && is_far(engine, step)) {
        send_on_network(engine, i, us);
    } else {
        send_on_links(engine, i, us);
    }
}

/* Whether the send is done and the arrival of its bytes is known. */
static int has_arrival(const struct engine *engine, size_t i)
{
    const struct sim_times *times = &engine->run->times[i];

    return times->is_done && times->arrival < INFINITY;
}

/* A receive that became ready before `us` ends; others run in their turn. */
static void deliver(struct engine *engine, size_t i, double us)
{
    size_t partner = engine->schedule->steps[i].partner;

    if (has_arrival(engine, i) && is_waiting(engine, partner) &&
        engine->run->times[partner].begin <= us) {
        receive(engine, partner);
    }
}

static void run_step(struct engine *engine, struct ready ready)
{
    const struct sim_step *step = &engine->schedule->steps[ready.step];
    struct sim_times *times = engine->run->times;

    if (times[ready.step].is_done) { /* a receive with its send in this us */
        return;
    }
    if (step->kind == SIM_CALC) {
        double us = (double)step->amount / 1000 * engine->compute;
        double cost =
            round_trip(engine, step) +
            (step->is_release ? engine->platform->costs[SIM_RELEASE] : 0);

        times[ready.step].cost = cost;
        engine->run->ranks[step->rank].compute_us +=
            added(ready.us, ready.us + us, &engine->ways[step->rank].computed);
        finish(engine, ready.step, ready.us + us + cost);
    } else if (step->kind == SIM_SEND) {
        send(engine, ready.step, ready.us);
        finish(engine, ready.step, ready.us + round_trip(engine, step));
        deliver(engine, ready.step, ready.us);
    } else if (step->partner != SIM_NO_STEP &&
               has_arrival(engine, step->partner)) {
        receive(engine, ready.step);
    }
}

/* ---- The network's calls ---- */

static double run_until(void *arg, double us)
{
    struct engine *engine = arg;

    while (engine->count > 0 && engine->heap[0].us <= us) {
        run_step(engine, pop(engine));
    }
    return engine->count > 0 ? engine->heap[0].us : INFINITY;
}

static void has_arrived(void *arg, size_t i, double us)
{
    struct engine *engine = arg;
    const struct sim_step *step = &engine->schedule->steps[i];
    struct ways *ways = &engine->ways[step->rank];

    engine->run->times[i].arrival = us + engine->platform->costs[SIM_HOP];
    engine->run->ranks[step->rank].link_us += us - ways->sent_us;
    ways->first = engine->next[i];
    send_next(engine, step->rank, us);
    deliver(engine, i, us);
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
                   const struct sim_platform *platform,
                   struct sim_network *network, double compute,
                   struct sim_run *run_p)
{
    size_t count = schedule->num_steps, ranks = (size_t)schedule->num_ranks;
    struct sim_run run = {.times = calloc(count + 1, sizeof *run.times),
                          .ranks = calloc(ranks, sizeof *run.ranks)};
    struct engine engine = {.schedule = schedule,
                            .platform = platform,
                            .network = network,
                            .compute = compute,
                            .run = &run};
    struct sim_network_events events = {run_until, has_arrived, &engine};
    int ret = -1;

    engine.ways = calloc(ranks, sizeof *engine.ways);
    engine.pairs =
        calloc(ranks * (size_t)platform->node_ranks, sizeof *engine.pairs);
    engine.waiting = calloc(count + 1, sizeof *engine.waiting);
    engine.next = calloc(count + 1, sizeof *engine.next);
    engine.heap = calloc(count + 1, sizeof *engine.heap);
    if (run.times != NULL && run.ranks != NULL && engine.ways != NULL &&
        engine.pairs != NULL && engine.waiting != NULL && engine.next != NULL &&
        engine.heap != NULL) {
        for (size_t i = 0; i < ranks; i++) {
            engine.ways[i].first = SIM_NO_STEP;
        }
        for (size_t i = 0; i < count; i++) {
            engine.waiting[i] = schedule->steps[i].num_before;
            run.times[i].cause = SIM_NO_STEP;
            if (engine.waiting[i] == 0) {
                push(&engine, 0, i);
            }
        }
        if (network != NULL) {
            sim_network_run(network, &events);
        } else {
            (void)run_until(&engine, INFINITY);
        }
        sum_up(&engine);
        ret = 0;
    }
    free(engine.ways);
    free(engine.pairs);
    free(engine.waiting);
    free(engine.next);
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
