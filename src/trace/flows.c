/* SPDX-License-Identifier: MIT
 *
 * Matches each wait with the signal that ended it, and each signal with the put
 * before it.
 */
#include "config.h"

#include "trace/trace.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A workgroup's latest put to a rank. Two puts with the same slot lose an
 * arrow. */
#define NUM_PUTS 65536
struct iris_flow_put {
    int64_t program_id;
    uint64_t launch;
    int target;
    struct iris_flow_end at;
};

int iris_i_flows_open(struct iris_flows *flows)
{
    memset(flows, 0, sizeof *flows);
    flows->puts = calloc(NUM_PUTS, sizeof *flows->puts);
    return flows->puts == NULL ? -1 : 0;
}

void iris_i_flows_close(struct iris_flows *flows)
{
    free(flows->puts);
    free(flows->signals.points);
    free(flows->waits.points);
}

static struct iris_flow_put *put_of(struct iris_flows *flows,
                                    const struct iris_event *event)
{
    uint64_t key = (uint64_t)event->pid * 1000003 + event->launch;

    key = key * 1000003 + (uint64_t)event->program_id;
    key = (key * 1000003 + (uint64_t)event->target_rank) * 0x9e3779b97f4a7c15u;
    return &flows->puts[key >> 48];
}

struct iris_flow_end iris_i_flow_end(const struct iris_event *event, int64_t ns)
{
    struct iris_flow_end end = {.pid = event->pid, .ns = ns};

    snprintf(end.tid, sizeof end.tid, "%.19s", event->tid);
    return end;
}

static void write_end(struct iris_out *out, const struct iris_flow_arrow *arrow,
                      char phase, const struct iris_flow_end *end)
{
    iris_i_out_next(out);
    iris_i_out_print(out,
                     "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"%c\","
                     "\"id\":%llu,\"pid\":%d,\"tid\":\"%s\",\"ts\":",
                     arrow->name, arrow->cat, phase,
                     (unsigned long long)arrow->id, end->pid, end->tid);
    iris_i_out_us(out, end->ns);
    iris_i_out_print(out, phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

void iris_i_flow_write(struct iris_out *out,
                       const struct iris_flow_arrow *arrow)
{
    write_end(out, arrow, 's', &arrow->from);
    write_end(out, arrow, 'f', &arrow->to);
}

static int append(struct iris_flow_list *list,
                  const struct iris_flow_point *point)
{
    void *points = iris_i_grow(list->points, list->count, sizeof *point);

    if (points == NULL) {
        return -1;
    }
    list->points = points;
    list->points[list->count++] = *point;
    return 0;
}

static int add_signal(struct iris_flows *flows, const struct iris_event *event,
                      struct iris_flow_point *point)
{
    struct iris_flow_put *put = put_of(flows, event);

    point->rank = event->target_rank;
    point->at = iris_i_flow_end(event, event->ts_ns);
    point->put.pid = -1;
    if (put->at.tid[0] != '\0' && put->at.pid == event->pid &&
        put->launch == event->launch && put->program_id == event->program_id &&
        put->target == event->target_rank) {
        point->put = put->at;
        put->at.tid[0] = '\0'; /* the put does not belong to the next signal */
    }
    return append(&flows->signals, point);
}

int iris_i_flows_add(struct iris_flows *flows, const struct iris_event *event)
{
    struct iris_flow_point point = {.offset = event->offset,
                                    .value = event->value,
                                    .begin_ns = event->ts_ns,
                                    .end_ns = event->ts_ns + event->dur_ns};

    if (event->ph != 'X') {
        return 0;
    }
    if (strcmp(event->name, "put") == 0 && event->target_rank >= 0) {
        struct iris_flow_put *put = put_of(flows, event);

        put->program_id = event->program_id;
        put->launch = event->launch;
        put->target = event->target_rank;
        put->at = iris_i_flow_end(event, event->ts_ns);
    }
    if (event->signal && event->offset != IRIS_EVENT_NOWHERE) {
        return add_signal(flows, event, &point);
    }
    if (event->held && event->offset != IRIS_EVENT_NOWHERE) {
        point.rank = event->pid;
        point.at = iris_i_flow_end(event, point.end_ns > event->ts_ns
                                              ? point.end_ns - 1
                                              : point.end_ns);
        return append(&flows->waits, &point);
    }
    return 0;
}

/* ---- Finding ---- */

static int compare_words(const struct iris_flow_point *a,
                         const struct iris_flow_point *b)
{
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    return a->value < b->value ? -1 : a->value > b->value;
}

static int compare(const void *left, const void *right)
{
    const struct iris_flow_point *a = left, *b = right;
    int order = compare_words(a, b);

    return order != 0 ? order : (a->at.ns > b->at.ns) - (a->at.ns < b->at.ns);
}

void iris_i_flows_sort(struct iris_flows *flows)
{
    if (flows->signals.count > 1) {
        qsort(flows->signals.points, flows->signals.count,
              sizeof *flows->signals.points, compare);
    }
}

const struct iris_flow_point *
iris_i_flows_signal_of(const struct iris_flows *flows,
                       const struct iris_flow_point *wait)
{
    const struct iris_flow_point *points = flows->signals.points;
    size_t low = 0, high = flows->signals.count;

    /* The first signal after the wait's end. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_words(&points[middle], wait);

        if (order < 0 || (order == 0 && points[middle].at.ns <= wait->end_ns)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low > 0 && compare_words(&points[low - 1], wait) == 0) {
        return &points[low - 1];
    }
    return low < flows->signals.count && compare_words(&points[low], wait) == 0
               ? &points[low]
               : NULL;
}
