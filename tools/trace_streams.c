/* SPDX-License-Identifier: MIT
 *
 * Kernels' runs on streams.
 */
#include "config.h"

#include "trace_streams.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

struct trace_run {
    int pid;
    char tid[20];
    uint64_t stream, id;
    int64_t ts_ns, dur_ns;
    int is_collective; /* a kernel of the library's collectives */
    int64_t computed;  /* of a run: see trace_streams_find() */
    size_t run;        /* of a launch; SIZE_MAX: unknown */
};

/* Ranks number their runs alike. */
struct trace_active {
    int pid;
    uint64_t id;
};

static int add_run(struct trace_run **runs, size_t *count,
                   const struct iris_event *event)
{
    struct trace_run *more = iris_i_grow(*runs, *count, sizeof **runs);

    if (more == NULL) {
        return -1;
    }
    *runs = more;
    more[*count] = (struct trace_run){
        .pid = event->pid,
        .stream = event->stream,
        .id = event->id,
        .ts_ns = event->ts_ns,
        .dur_ns = event->dur_ns,
        .is_collective = strncmp(event->kernel, "iris_k_ccl_", 11) == 0,
        .run = SIZE_MAX};
    memcpy(more[*count].tid, event->tid, sizeof more->tid - 1);
    ++*count;
    return 0;
}

int trace_streams_add(struct trace_streams *streams,
                      const struct iris_event *event)
{
    size_t last = streams->num_active;
    struct trace_active *more;

    if (strcmp(event->cat, "iris_kernel") == 0) {
        return add_run(&streams->runs, &streams->num_runs, event);
    }
    if (strncmp(event->name, "launch ", 7) == 0) {
        return add_run(&streams->launches, &streams->num_launches, event);
    }
    if (event->launch == 0 ||
        (last > 0 && streams->active[last - 1].pid == event->pid &&
         streams->active[last - 1].id == event->launch)) {
        return 0;
    }
    more = iris_i_grow(streams->active, last, sizeof *more);
    if (more == NULL) {
        return -1;
    }
    streams->active = more;
    more[streams->num_active++] =
        (struct trace_active){event->pid, event->launch};
    return 0;
}

void trace_streams_free(struct trace_streams *streams)
{
    free(streams->launches);
    free(streams->runs);
    free(streams->active);
}

/* ---- Joining ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_active(const void *left, const void *right)
{
    const struct trace_active *a = left, *b = right;

    return a->pid != b->pid ? a->pid - b->pid : compare_numbers(a->id, b->id);
}

static int compare_stream(const struct trace_run *a, const struct trace_run *b)
{
    return a->pid != b->pid ? a->pid - b->pid
                            : compare_numbers(a->stream, b->stream);
}

static int compare_by_stream(const void *left, const void *right)
{
    const struct trace_run *a = left, *b = right;
    int order = compare_stream(a, b);

    return order != 0 ? order : (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

static int compare_by_track(const void *left, const void *right)
{
    const struct trace_run *a = left, *b = right;
    int order = a->pid != b->pid ? a->pid - b->pid : strcmp(a->tid, b->tid);

    return order != 0 ? order : (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

static void sort(void *items, size_t count, size_t bytes,
                 int (*compare)(const void *, const void *))
{
    if (count > 1) {
        qsort(items, count, bytes, compare);
    }
}

/* How many from `first` on are of the same stream. */
static size_t count_stream(const struct trace_run *runs, size_t count,
                           size_t first)
{
    size_t end = first;

    while (end < count && compare_stream(&runs[end], &runs[first]) == 0) {
        end++;
    }
    return end - first;
}

/* A kernel with operations of its own may have waited: it counts as none. Runs
 * differ by 1 ns at least, which keeps them in order. */
static void sum_up(struct trace_streams *streams)
{
    struct trace_run *runs = streams->runs;
    int64_t computed = 0;

    for (size_t i = 0; i < streams->num_runs; i++) {
        struct trace_active key = {runs[i].pid, runs[i].id};
        int is_active;

        computed =
            i > 0 && compare_stream(&runs[i], &runs[i - 1]) == 0 ? computed : 0;
        runs[i].computed = computed;
        is_active = streams->num_active > 0 &&
                    bsearch(&key, streams->active, streams->num_active,
                            sizeof key, compare_active) != NULL;
        computed +=
            1 + (is_active || runs[i].is_collective ? 0 : runs[i].dur_ns);
    }
}

/* A stream that lacks a launch or a run, which may have been dropped, is left
 * alone. */
void trace_streams_join(struct trace_streams *streams)
{
    struct trace_run *launches = streams->launches, *runs = streams->runs;
    size_t first = 0, run = 0;

    sort(streams->active, streams->num_active, sizeof *streams->active,
         compare_active);
    sort(launches, streams->num_launches, sizeof *launches, compare_by_stream);
    sort(runs, streams->num_runs, sizeof *runs, compare_by_stream);
    sum_up(streams);
    while (first < streams->num_launches && run < streams->num_runs) {
        int order = compare_stream(&launches[first], &runs[run]);
        size_t count = count_stream(launches, streams->num_launches, first);
        size_t num_runs = count_stream(runs, streams->num_runs, run);

        for (size_t i = 0; order == 0 && count == num_runs && i < count; i++) {
            launches[first + i].run = run + i;
        }
        first += order <= 0 ? count : 0;
        run += order >= 0 ? num_runs : 0;
    }
    sort(launches, streams->num_launches, sizeof *launches, compare_by_track);
}

const char *trace_streams_find(const struct trace_streams *streams,
                               const struct iris_event *call,
                               int64_t *computed_p)
{
    struct trace_run key = {.pid = call->pid, .ts_ns = call->ts_ns};
    size_t low = 0, high = streams->num_launches;

    memcpy(key.tid, call->tid, sizeof key.tid - 1);
    while (low < high) { /* the first launch after the call began */
        size_t middle = low + (high - low) / 2;

        if (compare_by_track(&streams->launches[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < streams->num_launches; low++) {
        const struct trace_run *launch = &streams->launches[low];

        if (launch->pid != key.pid || strcmp(launch->tid, key.tid) != 0 ||
            launch->ts_ns > call->ts_ns + call->dur_ns) {
            break;
        }
        if (launch->is_collective && launch->run != SIZE_MAX) {
            *computed_p = streams->runs[launch->run].computed;
            return streams->runs[launch->run].tid;
        }
    }
    return NULL;
}
