/* SPDX-License-Identifier: MIT
 *
 * The first products of their sizes, by a GPU's library for rank threads.
 *
 * A GPU's library loads a kernel at its first launch. The driver then holds up
 * the host until all kernels of the process have ended, on every GPU. A kernel
 * of a rank thread may wait for a kernel that this thread has not enqueued yet.
 * So members that are threads meet before and after each product of a first
 * call. When they have met, each has enqueued all that the others' kernels wait
 * for, and until they meet again none of them enqueues a kernel that waits.
 */
#include "config.h"

#include "ops/internal.h"

#include "context/context.h"
#include "control/control.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS                                       \
    {                                                \
        {.name = "M"}, {.name = "N"}, {.name = "K"}, \
        {                                            \
            .name = "chunks"                         \
        }                                            \
    }

static const struct iris_call_type types[] = {
    [IRIS_OPS_MATMUL_ALL_REDUCE] = {.name = "iris_matmul_all_reduce",
                                    .fields = FIELDS},
    [IRIS_OPS_ALL_GATHER_MATMUL] = {.name = "iris_all_gather_matmul",
                                    .fields = FIELDS},
    [IRIS_OPS_MATMUL_ALL_GATHER] = {.name = "iris_matmul_all_gather",
                                    .fields = FIELDS},
    [IRIS_OPS_MATMUL_REDUCE_SCATTER] = {.name = "iris_matmul_reduce_scatter",
                                        .fields = FIELDS},
};

/* The calls of a group. */
struct known {
    struct iris_extension extension;
    void *sizes; /* a tree of struct sizes */
};

struct sizes {
    int64_t of[6];
};

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct sizes));
}

static void close_known(struct iris_extension *extension)
{
    struct known *known = (struct known *)extension;

    tdestroy(known->sizes, free);
    free(known);
}

/* Whether every member is a rank of this process. */
static int are_threads(const iris_t *iris, const struct iris_group *group)
{
    for (int i = 0; i < group->members.count; i++) {
        if (iris_i_control_is_remote(iris->control, group->ranks[i])) {
            return 0;
        }
    }
    return group->members.count > 1;
}

static struct known *known_of(const struct iris_ops_call *call)
{
    struct known *known = (struct known *)call->group->ops;

    if (known == NULL) {
        known = calloc(1, sizeof *known);
        if (known != NULL) {
            known->extension.close = close_known;
            call->group->ops = &known->extension;
        }
    }
    return known;
}

/* Adds the sizes of a call. *new_p: they were not known. */
static iris_status_t remember(const iris_t *iris,
                              const struct iris_ops_call *call, int *new_p)
{
    const struct sizes own = {{call->op, call->m, call->n, call->k,
                               (int64_t)call->b->dtype, call->by_column}};
    struct known *known = known_of(call);
    struct sizes *sizes;

    if (known != NULL && tfind(&own, &known->sizes, compare) != NULL) {
        return IRIS_OK;
    }
    sizes = malloc(sizeof *sizes);
    if (sizes != NULL) {
        *sizes = own;
    }
    *new_p = known != NULL && sizes != NULL &&
             tsearch(sizes, &known->sizes, compare) != NULL;
    if (!*new_p) {
        free(sizes);
    }
    return *new_p ? IRIS_OK
                  : iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                                "%s: no memory for its sizes", call->name);
}

iris_status_t iris_i_ops_first(iris_t *iris, struct iris_ops_call *call)
{
    const struct iris_blas *blas;
    void *state;
    iris_status_t status = iris_i_ops_blas(iris, &blas, &state);

    if (status != IRIS_OK || blas == NULL || !blas->on_gpu ||
        !are_threads(iris, call->group)) {
        return status;
    }
    return remember(iris, call, &call->is_first);
}

iris_status_t iris_i_ops_meet(const struct iris_ops_call *call,
                              iris_status_t status)
{
    const struct iris_call post = {
        .type = &types[call->op],
        .fields = {(uint64_t)call->m, (uint64_t)call->n, (uint64_t)call->k,
                   (uint64_t)call->plan.chunks},
        .status = status};

    return call->is_first ? iris_i_agree(&call->group->members, &post) : status;
}
