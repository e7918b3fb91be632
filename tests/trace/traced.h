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

#include "context/context_type.h"

#include <stdio.h>
#include <stdlib.h>

struct traced {
    iris_rank_fn fn;
    void *arg;
};

static iris_status_t traced_count(void *self,
                                  const struct iris_cpu_event *event)
{
    int is_one = event->after && event->op != IRIS_OP_FENCE &&
                 (event->op != IRIS_OP_BARRIER || event->address != NULL) &&
                 (event->op != IRIS_OP_GET || !event->write) &&
                 ((event->op != IRIS_OP_PUT && event->op != IRIS_OP_COPY) ||
                  event->write);

    atomic_fetch_add((_Atomic unsigned long *)self, (unsigned long)is_one);
    return IRIS_OK;
}

static int traced_main(iris_t *iris, void *arg)
{
    const struct traced *traced = (const struct traced *)arg;
    _Atomic unsigned long count = 0;
    struct iris_observer observer = {
        .device = traced_count, .host = NULL, .self = &count};
    int ret = (int)iris_trace_enable(iris, 300000);

    (void)iris_i_hooks_add(&iris->hooks, &observer);
    ret = ret != 0 ? ret : traced->fn(iris, traced->arg);
    ret =
        ret != 0 ? ret : (int)iris_trace_export(iris, getenv("TRACED_FILE"), 1);
    printf("observed %d %lu\n", iris_rank(iris), (unsigned long)count);
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
