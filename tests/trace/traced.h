/* SPDX-License-Identifier: MIT
 *
 * Makes an example record what it does: included ahead of its source, it stands
 * in for iris_spawn(). An observer counts what is to be in the trace.
 */
#ifndef IRIS_TESTS_TRACED_H
#define IRIS_TESTS_TRACED_H

#include "config.h"

#include <iris/device.h>
#include <iris/iris.h>

#include "context/context.h"

#include <stdio.h>
#include <stdlib.h>

struct traced {
    iris_rank_fn fn;
    void *arg;
};

#define TRACED_RANKS 64

/* What one rank's kernels did: operations, and bytes from and to each rank. */
struct traced_counts {
    _Atomic unsigned long ops;
    _Atomic unsigned long fetched[TRACED_RANKS], sent[TRACED_RANKS];
};

static void traced_move(struct traced_counts *counts,
                        const struct iris_cpu_event *event)
{
    int fetches = event->op == IRIS_OP_LOAD || event->op == IRIS_OP_GET;

    if (event->op == IRIS_OP_WAIT || event->op == IRIS_OP_BARRIER ||
        event->target_rank < 0 || event->target_rank >= TRACED_RANKS ||
        event->target_rank == event->rank) {
        return;
    }
    atomic_fetch_add(fetches ? &counts->fetched[event->target_rank]
                             : &counts->sent[event->target_rank],
                     (unsigned long)event->bytes);
}

static iris_status_t traced_count(void *self,
                                  const struct iris_cpu_event *event)
{
    struct traced_counts *counts = self;
    int is_one = event->after && event->op != IRIS_OP_FENCE &&
                 (event->op != IRIS_OP_BARRIER || event->address != NULL) &&
                 (event->op != IRIS_OP_GET || !event->write) &&
                 ((event->op != IRIS_OP_PUT && event->op != IRIS_OP_COPY) ||
                  event->write);

    atomic_fetch_add(&counts->ops, (unsigned long)is_one);
    if (is_one) {
        traced_move(counts, event);
    }
    return IRIS_OK;
}

/* Of the host's collectives the examples have an all_reduce: a rank has its part
 * for each other, twice. */
static void traced_call(void *self, const struct iris_host_event *event)
{
    struct traced_counts *counts = self;
    const struct iris_group *group = event->group;
    int n = group == NULL ? 0 : group->members.count;

    if (event->op != IRIS_HOST_COLLECTIVE || !event->after) {
        return;
    }
    for (int i = 0; i < n; i++) {
        if (group->ranks[i] != event->rank) {
            atomic_fetch_add(&counts->sent[group->ranks[i]],
                             2 * event->bytes / (unsigned long)n);
        }
    }
}

static void traced_print(int rank, const struct traced_counts *counts)
{
    printf("observed %d %lu\n", rank, (unsigned long)counts->ops);
    for (int i = 0; i < TRACED_RANKS; i++) {
        if (counts->fetched[i] != 0) {
            printf("moved %d %d %lu\n", i, rank,
                   (unsigned long)counts->fetched[i]);
        }
        if (counts->sent[i] != 0) {
            printf("moved %d %d %lu\n", rank, i,
                   (unsigned long)counts->sent[i]);
        }
    }
}

static int traced_main(iris_t *iris, void *arg)
{
    const struct traced *traced = (const struct traced *)arg;
    struct traced_counts count = {0};
    struct iris_observer observer = {
        .device = traced_count, .host = traced_call, .self = &count};
    int ret = (int)iris_trace_enable(iris, 300000);

    (void)iris_i_hooks_add(&iris->hooks, &observer);
    ret = ret != 0 ? ret : traced->fn(iris, traced->arg);
    /* Of all ranks, and then each rank's own file. */
    for (int merge = 1; ret == 0 && merge >= 0; merge--) {
        ret = (int)iris_trace_export(iris, getenv("TRACED_FILE"), merge);
    }
    traced_print(iris_rank(iris), &count);
    iris_i_hooks_remove(&iris->hooks, &observer);
    return ret;
}

static iris_status_t traced_spawn(const struct iris_config *config,
                                  int num_ranks, iris_rank_fn fn, void *arg)
{
    struct traced traced = {fn, arg};

    return iris_spawn(config, num_ranks, traced_main, &traced);
}
#define iris_spawn traced_spawn

#endif /* IRIS_TESTS_TRACED_H */
