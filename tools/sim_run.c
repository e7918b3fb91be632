/* SPDX-License-Identifier: MIT
 *
 * iris sim run: a trace or a schedule, timed by a platform.
 */
#include "config.h"

#include "sim_engine.h"
#include "sim_parts.h"
#include "sim_schedule.h"
#include "sim_trace.h"
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STUCK 16 /* steps of a deadlock to print */

static const char *const kinds[] = {"compute", "send", "wait"};

/* ---- Reading ---- */

/* Whether the file is a schedule, not a trace. */
static int is_schedule(FILE *file)
{
    char text[16] = "";
    size_t count = fread(text, 1, sizeof text - 1, file);

    rewind(file);
    return count > 9 && strncmp(text, "num_ranks", 9) == 0;
}

static int read_schedule(const char *path, struct sim_schedule *schedule_p)
{
    FILE *file = fopen(path, "re");
    int ret = -1;

    if (file == NULL) {
        fprintf(stderr, "iris sim: %s: %s\n", path, strerror(errno));
        return -1;
    }
    if (is_schedule(file)) {
        if (sim_options.scale != 0) {
            fprintf(stderr, "iris sim: --scale takes a trace, no schedule\n");
            fclose(file);
            return -1;
        }
    } else {
        fclose(file);
        if (sim_trace_schedule(path, &file) != 0) {
            return -1;
        }
        rewind(file);
    }
    ret = sim_schedule_read(schedule_p, file, path);
    fclose(file);
    return ret;
}

/* ---- Deadlocks ---- */

static void tell_stuck(const struct sim_schedule *schedule,
                       const struct sim_run *run, size_t i)
{
    const struct sim_step *step = &schedule->steps[i];
    unsigned long long tag = step->tag, label = step->label;

    if (step->kind != SIM_RECV) {
        fprintf(stderr, "  rank %d: l%llu requires itself\n", step->rank,
                label);
    } else if (step->partner == SIM_NO_STEP) {
        fprintf(stderr,
                "  rank %d waits in l%llu for %llu bytes of rank %d, tag %llu: "
                "that rank never sends them\n",
                step->rank, label, (unsigned long long)step->amount, step->peer,
                tag);
    } else if (!run->times[step->partner].is_done) {
        fprintf(stderr,
                "  rank %d waits in l%llu for %llu bytes of rank %d, tag %llu: "
                "that rank sends them in l%llu, which it never reaches\n",
                step->rank, label, (unsigned long long)step->amount, step->peer,
                tag, (unsigned long long)schedule->steps[step->partner].label);
    }
}

/* Whether all steps that the step requires are done. */
static int is_reached(const struct sim_schedule *schedule,
                      const struct sim_run *run, size_t i)
{
    for (size_t k = 0; k < schedule->num_arrows; k++) {
        if (schedule->arrows[k].after == i &&
            !run->times[schedule->arrows[k].before].is_done) {
            return 0;
        }
    }
    return 1;
}

/* Prints the waits of the ranks; without waits, prints steps that require each
 * other. */
static void tell_deadlock(const struct sim_schedule *schedule,
                          const struct sim_run *run)
{
    int told = 0;

    fprintf(stderr, "iris sim: a deadlock: %zu of %zu steps never run\n",
            run->num_stuck, schedule->num_steps);
    for (int reached = 1; reached >= 0 && told == 0; reached--) {
        for (size_t i = 0; i < schedule->num_steps && told < MOST_STUCK; i++) {
            if (!run->times[i].is_done &&
                is_reached(schedule, run, i) == reached) {
                tell_stuck(schedule, run, i);
                told++;
            }
        }
    }
}

/* ---- Results ---- */

struct path {
    double compute, transport, waiting; /* us */
    size_t steps;
};

/* Walks back from the last step, each time to the step that it waited for
 * last. */
static struct path critical(const struct sim_schedule *schedule,
                            const struct sim_run *run)
{
    struct path path = {0};
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

static void print_table(const struct sim_schedule *schedule,
                        const struct sim_run *run)
{
    struct path path = critical(schedule, run);

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

static void print_json(const struct sim_schedule *schedule,
                       const struct sim_run *run)
{
    struct iris_json_writer json = iris_i_json_writer(stdout);
    struct path path = critical(schedule, run);

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
    FILE *file = sim_open(sim_options.perfetto);

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
    return sim_close(file, sim_options.perfetto);
}

int sim_run_part(void)
{
    struct sim_platform platform;
    struct sim_schedule schedule;
    struct sim_network *network = NULL;
    struct sim_run run;
    int ret = 1;

    if (sim_platform_given(&platform) != 0 ||
        read_schedule(sim_options.words[0], &schedule) != 0) {
        return 1;
    }
    if (sim_options.topology != NULL) {
        network = sim_network_open(&platform, sim_options.topology,
                                   schedule.num_ranks);
        if (network == NULL) {
            sim_schedule_free(&schedule);
            return 1;
        }
    }
    if (sim_engine_run(&schedule, &platform, network, sim_options.compute,
                       &run) != 0) {
        fprintf(stderr, "iris sim: no memory\n");
        sim_schedule_free(&schedule);
        return 1;
    }
    if (run.num_stuck > 0) {
        tell_deadlock(&schedule, &run);
    } else {
        (sim_options.json ? print_json : print_table)(&schedule, &run);
        ret =
            sim_options.perfetto != NULL ? write_perfetto(&schedule, &run) : 0;
    }
    sim_engine_free(&run);
    sim_schedule_free(&schedule);
    return ret;
}
