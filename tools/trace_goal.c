/* SPDX-License-Identifier: MIT
 *
 * iris-trace export: the messages of a trace as a schedule in the GOAL language
 * of LogGOPSim (Hoefler, Siebert and Lumsdaine, ICPP 2009).
 */
#include "config.h"

#include "trace.h"

#include "trace/flows.h"

#include <stdlib.h>
#include <string.h>

/* One end of a message, or what a rank calculates before it. */
struct item {
    int rank;
    char tid[20]; /* what of one track comes in order */
    int64_t ns;
    int is_send;
    int peer;
    uint64_t bytes;
    uint64_t tag;
};

static int compare_items(const void *left, const void *right)
{
    const struct item *a = left, *b = right;

    if (a->rank != b->rank) {
        return a->rank - b->rank;
    }
    if (a->ns != b->ns) {
        return a->ns < b->ns ? -1 : 1;
    }
    return (a->tag > b->tag) - (a->tag < b->tag);
}

static int take(void *arg, const struct iris_event *event)
{
    return iris_i_flows_add(arg, event);
}

static struct item item_of(const struct iris_flow_end *at)
{
    struct item item = {.rank = at->pid, .ns = at->ns};

    memcpy(item.tid, at->tid, sizeof item.tid);
    return item;
}

/* Every wait whose signal is known is a message from the one to the other. */
static struct item *list_messages(const struct iris_flows *flows,
                                  size_t *count_p)
{
    struct item *items = malloc((2 * flows->waits.count + 1) * sizeof *items);
    size_t count = 0;

    for (size_t i = 0; items != NULL && i < flows->waits.count; i++) {
        const struct iris_flow_point *wait = &flows->waits.points[i];
        const struct iris_flow_point *signal =
            iris_i_flows_signal_of(flows, wait);

        if (signal == NULL || signal->at.pid == wait->at.pid) {
            continue;
        }
        items[count] = item_of(&signal->at);
        items[count].is_send = 1;
        items[count].peer = wait->at.pid;
        items[count + 1] = item_of(&wait->at);
        items[count + 1].peer = signal->at.pid;
        items[count].bytes = items[count + 1].bytes = signal->bytes;
        items[count].tag = items[count + 1].tag = count / 2 + 1;
        count += 2;
    }
    if (items != NULL && count > 1) {
        qsort(items, count, sizeof *items, compare_items);
    }
    *count_p = count;
    return items;
}

/* The latest item of the same track, or -1. */
static long before(const struct item *items, long first, long i)
{
    for (long k = i - 1; k >= first; k--) {
        if (strcmp(items[k].tid, items[i].tid) == 0) {
            return k;
        }
    }
    return -1;
}

/* Labels: l<2 * i> is what item i waits for in time, l<2 * i + 1> itself. */
static void print_item(FILE *file, const struct item *items, long first, long i)
{
    const struct item *item = &items[i];
    long last = before(items, first, i);
    long label = 2 * (i - first);
    int64_t gap = last < 0 ? 0 : item->ns - items[last].ns;

    fprintf(file, "l%ld: calc %lld\n", label, (long long)(gap > 0 ? gap : 0));
    fprintf(file, "l%ld: %s %llub %s %d tag %llu\n", label + 1,
            item->is_send ? "send" : "recv", (unsigned long long)item->bytes,
            item->is_send ? "to" : "from", item->peer,
            (unsigned long long)item->tag);
    fprintf(file, "l%ld requires l%ld\n", label + 1, label);
    if (last >= 0) {
        fprintf(file, "l%ld requires l%ld\n", label, 2 * (last - first) + 1);
    }
}

static void print_goal(FILE *file, const struct item *items, long count,
                       int num_ranks)
{
    long i = 0;

    fprintf(file, "num_ranks %d\n", num_ranks);
    for (int rank = 0; rank < num_ranks; rank++) {
        long first = i;

        fprintf(file, "\nrank %d {\n", rank);
        for (; i < count && items[i].rank == rank; i++) {
            print_item(file, items, first, i);
        }
        if (i == first) {
            fprintf(file, "l0: calc 0\n");
        }
        fprintf(file, "}\n");
    }
}

static int write_goal(const struct iris_flows *flows, int num_ranks)
{
    size_t count;
    struct item *items = list_messages(flows, &count);
    FILE *file = items == NULL ? NULL : trace_open();
    int ret = 1;

    if (file != NULL) {
        print_goal(file, items, (long)count, num_ranks);
        ret = trace_close(file);
    }
    free(items);
    return ret;
}

int trace_export(void)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    struct iris_flows flows;
    int ret;

    if (trace_options.format == NULL ||
        strcmp(trace_options.format, "goal") != 0) {
        fprintf(stderr,
                "iris-trace export: --format=%s; goal is what there "
                "is\n",
                trace_options.format == NULL ? "" : trace_options.format);
        return 2;
    }
    ret = iris_i_flows_open(&flows);
    if (ret == 0) {
        ret = trace_read(trace_options.files[0], &figures, take, &flows);
    }
    if (ret == 0) {
        iris_i_flows_sort(&flows);
        ret = write_goal(&flows, figures.num_ranks);
    }
    iris_i_flows_close(&flows);
    trace_free(&figures);
    return ret == 0 ? 0 : 1;
}
