/* SPDX-License-Identifier: MIT
 *
 * iris sim run: runs a trace's schedule on a platform, event by event.
 *
 * A send occupies its rank's way out and the receiver's way in for the time that
 * its bytes take, after all sends that were ready before it. The rank itself
 * continues at once, as after a put. A receive ends when all bytes have arrived.
 * A copy engine starts, then sends at its own rate, and arrives without a flag.
 *
 * A step is ready when all steps that it requires are done; the heap has the
 * ready ones, the earliest first.
 */
#include "config.h"

#include "iris.h"
#include "sim.h"
#include "base/base.h"

#include <math.h>
#include <stdlib.h>

/* The times at which a step could begin and was done, in us. For a send,
 * `arrival` is the time when all of it has reached the receiver. */
struct sim_times {
    double begin, end, arrival;
    double cost;  /* of a calc: the part that its release and atomics take */
    size_t cause; /* the step that it waited for last; SIM_NO_STEP: none */
    int is_done;
};

/* Intervals at the same time count once: a rank may have several tracks. */
struct sim_rank_figures {
    double end_us, compute_us, wait_us;
    double link_us;          /* its link sends */
    uint64_t sent, received; /* bytes */
};

struct sim_run {
    struct sim_times *times; /* of each step */
    struct sim_rank_figures *ranks;
    double us;
    size_t last;      /* the step that ended last; SIM_NO_STEP: no step */
    size_t num_stuck; /* steps that never ran: a deadlock */
};

/* Ways of a rank to and from its own node, and to and from others. */
struct rank_ways {
    double out[2], in[2];
    double computed, waited; /* until when intervals have been counted */
};

/* The length that the interval adds to the union of the earlier ones. */
static double find_added(double begin, double end, double *until)
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
    struct rank_ways *ways;
    double *pairs;   /* in a mesh, until when a rank's link to a peer is full */
    size_t *waiting; /* number of unfinished steps that each step waits for */
    struct ready *heap;
    size_t count;
};

/* ---- Steps that are ready, the earliest first ---- */

static int is_earlier(const struct ready *a, const struct ready *b)
{
    return a->us != b->us ? a->us < b->us : a->step < b->step;
}

static void push_ready(struct engine *engine, double us, size_t step)
{
    struct ready one = {us, step};
    size_t at = engine->count++;

    while (at > 0 && is_earlier(&one, &engine->heap[(at - 1) / 2])) {
        engine->heap[at] = engine->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    engine->heap[at] = one;
}

static struct ready pop_ready(struct engine *engine)
{
    struct ready top = engine->heap[0];
    struct ready last = engine->heap[--engine->count];
    size_t at = 0, next;

    while ((next = 2 * at + 1) < engine->count) {
        if (next + 1 < engine->count &&
            is_earlier(&engine->heap[next + 1], &engine->heap[next])) {
            next++;
        }
        if (!is_earlier(&engine->heap[next], &last)) {
            break;
        }
        engine->heap[at] = engine->heap[next];
        at = next;
    }
    engine->heap[at] = last;
    return top;
}

/* ---- Steps ---- */

static void finish_step(struct engine *engine, size_t i, double us)
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
            push_ready(engine, times[after].begin, after);
        }
    }
}

static void receive_step(struct engine *engine, size_t i)
{
    struct sim_times *times = engine->run->times;
    const struct sim_step *step = &engine->schedule->steps[i];
    struct sim_rank_figures *rank = &engine->run->ranks[step->rank];
    double arrival = times[step->partner].arrival;

    rank->received += engine->schedule->steps[step->partner].amount;
    if (arrival > times[i].begin) {
        rank->wait_us += find_added(times[i].begin, arrival,
                                    &engine->ways[step->rank].waited);
        times[i].cause = step->partner;
        finish_step(engine, i, arrival);
    } else {
        finish_step(engine, i, times[i].begin);
    }
}

static double find_larger(double a, double b)
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
static double find_latency(const struct engine *engine,
                           const struct sim_step *step)
{
    return engine->platform->costs[is_far(engine, step) ? SIM_HOP : SIM_FLAG];
}

static double find_round_trip(const struct engine *engine,
                              const struct sim_step *step)
{
    return step->is_round ? 2 * find_latency(engine, step) : 0;
}

/* The rate of a link, or of the copy engine if the platform has one. */
static enum sim_cost find_rate(const struct engine *engine,
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
        (double)step->amount / 1e6 * platform->costs[find_rate(engine, step)];
    double *out = &engine->ways[step->rank].out[far];
    double *in = &engine->ways[step->peer].in[far];

    engine->run->ranks[step->rank].link_us += length;
    if (!far && platform->links > 1) {
        out = &engine->pairs[step->rank * near + step->peer % near];
        *out = find_larger(us, *out) + length * platform->links;
        return *out;
    }
    *out = find_larger(us, *out) + length;
    *in = find_larger(*out, *in + length);
    return *in;
}

static void send_step(struct engine *engine, size_t i, double us)
{
    const struct sim_step *step = &engine->schedule->steps[i];
    struct sim_times *times = &engine->run->times[i];

    engine->run->ranks[step->rank].sent += step->amount;
    times->arrival =
        cross_links(engine, step, us) + (step->is_copy && !is_far(engine, step)
                                             ? engine->platform->costs[SIM_COPY]
                                             : find_latency(engine, step));
    finish_step(engine, i, us + find_round_trip(engine, step));
    /* A receive that became ready before ends; others run in their turn. */
    if (is_waiting(engine, step->partner) &&
        engine->run->times[step->partner].begin <= us) {
        receive_step(engine, step->partner);
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
            find_round_trip(engine, step) +
            (step->is_release ? engine->platform->costs[SIM_RELEASE] : 0);

        times[ready.step].cost = cost;
        engine->run->ranks[step->rank].compute_us += find_added(
            ready.us, ready.us + us, &engine->ways[step->rank].computed);
        finish_step(engine, ready.step, ready.us + us + cost);
    } else if (step->kind == SIM_SEND) {
        send_step(engine, ready.step, ready.us);
    } else if (step->partner != SIM_NO_STEP && times[step->partner].is_done) {
        receive_step(engine, ready.step);
    }
}

static void sum_up_run(struct engine *engine)
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

static void free_run(struct sim_run *run)
{
    free(run->times);
    free(run->ranks);
}

/* Runs the schedule. `compute` is the factor of intervals between operations.
 * Returns 0, or -1 without memory. */
static int run_schedule(const struct sim_schedule *schedule,
                        const struct sim_platform *platform, double compute,
                        struct sim_run *run_p)
{
    size_t count = schedule->num_steps, ranks = (size_t)schedule->num_ranks;
    struct sim_run run = {.times = calloc(count + 1, sizeof *run.times),
                          .ranks = calloc(ranks, sizeof *run.ranks)};
    struct engine engine = {.schedule = schedule,
                            .platform = platform,
                            .compute = compute,
                            .run = &run};
    int ret = -1;

    engine.ways = calloc(ranks, sizeof *engine.ways);
    engine.pairs =
        calloc(ranks * (size_t)platform->node_ranks, sizeof *engine.pairs);
    engine.waiting = calloc(count + 1, sizeof *engine.waiting);
    engine.heap = calloc(count + 1, sizeof *engine.heap);
    if (run.times != NULL && run.ranks != NULL && engine.ways != NULL &&
        engine.pairs != NULL && engine.waiting != NULL && engine.heap != NULL) {
        for (size_t i = 0; i < count; i++) {
            engine.waiting[i] = schedule->steps[i].num_before;
            run.times[i].cause = SIM_NO_STEP;
            if (engine.waiting[i] == 0) {
                push_ready(&engine, 0, i);
            }
        }
        while (engine.count > 0) {
            run_step(&engine, pop_ready(&engine));
        }
        sum_up_run(&engine);
        ret = 0;
    }
    free(engine.ways);
    free(engine.pairs);
    free(engine.waiting);
    free(engine.heap);
    if (ret != 0) {
        free_run(&run);
        return -1;
    }
    *run_p = run;
    return 0;
}

/* ---- The command ---- */

static const char *const kinds[] = {"compute", "send", "wait"};

static int read_schedule(const char *path, struct sim_schedule *schedule_p)
{
    struct sim_items items = {0};
    int num_ranks, ret = sim_messages_read(path, &items, &num_ranks);

    if (ret == 0) {
        ret = sim_schedule_make(&items, num_ranks, schedule_p);
    }
    free(items.items);
    return ret;
}

/* ---- Results ---- */

struct critical_path {
    double compute, transport, waiting; /* us */
    size_t steps;
};

/* Walks back from the last step, each time to the step that it waited for
 * last. */
static struct critical_path
find_critical_path(const struct sim_schedule *schedule,
                   const struct sim_run *run)
{
    struct critical_path path = {0};
    size_t i = run->last;

    while (i != SIM_NO_STEP) {
        size_t cause = run->times[i].cause;
        double since = cause == SIM_NO_STEP ? 0 : run->times[cause].end;
        double us = run->times[i].end - since;

        if (schedule->steps[i].kind == SIM_CALC) {
            path.compute += us - run->times[i].cost;
        } else if (cause != SIM_NO_STEP &&
                   schedule->steps[cause].rank != schedule->steps[i].rank) {
            path.transport += us;
        } else {
            path.waiting += us;
        }
        path.steps++;
        i = cause;
    }
    return path;
}

static void print_run_table(const struct sim_schedule *schedule,
                            const struct sim_run *run)
{
    struct critical_path path = find_critical_path(schedule, run);

    printf("%.3f us, of which the critical path computes %.3f us and waits for "
           "messages %.3f us, in %zu steps\n",
           run->us, path.compute, path.transport, path.steps);
    printf("%-6s %12s %12s %12s %8s %14s %14s\n", "rank", "end us",
           "compute us", "wait us", "link %", "sent bytes", "received bytes");
    for (int i = 0; i < schedule->num_ranks; i++) {
        const struct sim_rank_figures *rank = &run->ranks[i];

        printf("%-6d %12.3f %12.3f %12.3f %8.1f %14llu %14llu\n", i,
               rank->end_us, rank->compute_us, rank->wait_us,
               run->us > 0 ? 100 * rank->link_us / run->us : 0,
               (unsigned long long)rank->sent,
               (unsigned long long)rank->received);
    }
}

static void print_run_json(const struct sim_schedule *schedule,
                           const struct sim_run *run)
{
    struct iris_json_writer json = iris_i_json_writer(stdout);
    struct critical_path path = find_critical_path(schedule, run);

    iris_i_json_begin(&json, NULL, '{');
    iris_i_json_real(&json, "us", run->us);
    iris_i_json_real(&json, "path_compute_us", path.compute);
    iris_i_json_real(&json, "path_message_us", path.transport);
    iris_i_json_begin(&json, "ranks", '[');
    for (int i = 0; i < schedule->num_ranks; i++) {
        const struct sim_rank_figures *rank = &run->ranks[i];

        iris_i_json_begin(&json, NULL, '{');
        iris_i_json_real(&json, "end_us", rank->end_us);
        iris_i_json_real(&json, "compute_us", rank->compute_us);
        iris_i_json_real(&json, "wait_us", rank->wait_us);
        iris_i_json_real(&json, "link_us", rank->link_us);
        iris_i_json_uint(&json, "sent_bytes", rank->sent);
        iris_i_json_uint(&json, "received_bytes", rank->received);
        iris_i_json_end(&json);
    }
    iris_i_json_end(&json);
    iris_i_json_end(&json);
}

/* Events as iris_trace_export() writes them: a rank is a process. Messages have
 * a track of their own, since a rank goes on while its bytes are on their
 * way. */
static int write_perfetto(const struct sim_schedule *schedule,
                          const struct sim_run *run)
{
    FILE *file = tool_open("iris sim", sim_options.perfetto);

    if (file == NULL) {
        return 1;
    }
    fprintf(file, "{\"traceEvents\":[");
    for (size_t i = 0; i < schedule->num_steps; i++) {
        const struct sim_step *step = &schedule->steps[i];
        const struct sim_times *times = &run->times[i];
        int sends = step->kind == SIM_SEND;

        fprintf(file,
                "%s\n{\"name\":\"%s\",\"cat\":\"model\",\"ph\":\"X\",\"ts\":"
                "%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":\"%s\",\"args\":{"
                "\"target_rank\":%d,\"payload_size\":%llu}}",
                i == 0 ? "" : ",", kinds[step->kind], times->begin,
                (sends ? times->arrival : times->end) - times->begin,
                step->rank, sends ? "messages" : "steps",
                step->kind == SIM_CALC ? step->rank : step->peer,
                (unsigned long long)(sends ? step->amount : 0));
    }
    fprintf(file,
            "\n],\"metadata\":{\"schema_version\":\"1.1\","
            "\"world_size\":%d}}\n",
            schedule->num_ranks);
    return tool_close("iris sim", sim_options.perfetto, file);
}

int sim_run_part(char **words, int num_words)
{
    struct sim_platform platform;
    struct sim_schedule schedule;
    struct sim_run run;
    int ret = 1;

    (void)num_words;
    if (sim_platform_given(&platform) != 0 ||
        read_schedule(words[0], &schedule) != 0) {
        return 1;
    }
    if (run_schedule(&schedule, &platform, sim_options.compute, &run) != 0) {
        fprintf(stderr, "iris sim: no memory\n");
        sim_schedule_free(&schedule);
        return 1;
    }
    if (run.num_stuck > 0) {
        fprintf(stderr,
                "iris sim: %s: messages wait for each other: %zu of %zu steps "
                "never run\n",
                words[0], run.num_stuck, schedule.num_steps);
    } else {
        (sim_options.json ? print_run_json : print_run_table)(&schedule, &run);
        ret =
            sim_options.perfetto != NULL ? write_perfetto(&schedule, &run) : 0;
    }
    free_run(&run);
    sim_schedule_free(&schedule);
    return ret;
}
