/* SPDX-License-Identifier: MIT
 *
 * A program for schedules.sh: collectives NAME FILE makes one collective's call
 * on four ranks, and a part of them on three, and counts what each rank has for
 * each other by the definition of the call.
 */
#include <iris/iris.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 4
#define COUNT 60 /* elements of 4 bytes; 60 has 2, 3 and 4 as factors */
#define ROOT 1

struct job {
    const char *name;
    const char *file;
};

/* What a call is made with. `n` members, and this rank's place among them. */
struct call {
    iris_t *iris;
    struct iris_ccl_options options;
    float *in, *out;
    int n, own;
};

/* Elements that a member has for another in an all_to_allv, and of its own in an
 * all_gatherv. */
static size_t uneven(int from, int to)
{
    return (size_t)(10 * from + 3 * to);
}

struct counts {
    size_t to[RANKS], to_at[RANKS], from[RANKS], from_at[RANKS];
    size_t own[RANKS], own_at[RANKS];
};

static struct counts counts_of(const struct call *call)
{
    struct counts counts = {{0}, {0}, {0}, {0}, {0}, {0}};

    for (int i = 0; i < call->n; i++) {
        size_t *last;

        counts.to[i] = uneven(call->own, i);
        counts.from[i] = uneven(i, call->own);
        counts.own[i] = uneven(i, 0);
        last = i + 1 < RANKS ? counts.to_at + i + 1 : NULL;
        if (last != NULL) {
            *last = counts.to_at[i] + counts.to[i];
            counts.from_at[i + 1] = counts.from_at[i] + counts.from[i];
            counts.own_at[i + 1] = counts.own_at[i] + counts.own[i];
        }
    }
    return counts;
}

static iris_status_t enqueue_even(struct call *c, const char *name)
{
    iris_dtype_t type = IRIS_DTYPE_F32;
    iris_reduce_op_t sum = IRIS_REDUCE_SUM;
    size_t part = COUNT / (size_t)c->n;

    if (strcmp(name, "all_gather") == 0) {
        return iris_all_gather(c->iris, c->in, c->out, part, type, &c->options);
    }
    if (strcmp(name, "reduce_scatter") == 0) {
        return iris_reduce_scatter(c->iris, c->in, c->out, part, type, sum,
                                   &c->options);
    }
    if (strcmp(name, "all_to_all") == 0) {
        return iris_all_to_all(c->iris, c->in, c->out, part, type, &c->options);
    }
    if (strcmp(name, "broadcast") == 0) {
        return iris_ccl_broadcast(c->iris, c->in, c->out, COUNT, type, ROOT,
                                  &c->options);
    }
    if (strcmp(name, "reduce") == 0) {
        return iris_reduce(c->iris, c->in, c->out, COUNT, type, sum, ROOT,
                           &c->options);
    }
    return iris_all_reduce(c->iris, c->in, c->out, COUNT, type, sum,
                           &c->options);
}

/* Member 0 sends to the last one, which is all that send and recv do here; in a
 * ring all send and receive. */
static iris_status_t enqueue_messages(struct call *c, const char *name)
{
    struct counts counts = counts_of(c);
    iris_dtype_t type = IRIS_DTYPE_F32;
    size_t part = COUNT / (size_t)c->n;

    if (strcmp(name, "gather") == 0) {
        return iris_gather(c->iris, c->in, c->out, part, type, ROOT,
                           &c->options);
    }
    if (strcmp(name, "scatter") == 0) {
        return iris_scatter(c->iris, c->in, c->out, part, type, ROOT,
                            &c->options);
    }
    if (strcmp(name, "all_gatherv") == 0) {
        return iris_all_gatherv(c->iris, c->in, c->out, counts.own,
                                counts.own_at, type, &c->options);
    }
    if (strcmp(name, "all_to_allv") == 0) {
        return iris_all_to_allv(c->iris, c->in, counts.to, counts.to_at, c->out,
                                counts.from, counts.from_at, type, &c->options);
    }
    if (strcmp(name, "send_recv") == 0) {
        return iris_send_recv(c->iris, c->in, COUNT, (c->own + 1) % c->n,
                              c->out, COUNT, (c->own + c->n - 1) % c->n, type,
                              &c->options);
    }
    return c->own == 0
               ? iris_send(c->iris, c->in, COUNT, type, c->n - 1, &c->options)
           : c->own == c->n - 1
               ? iris_recv(c->iris, c->out, COUNT, type, 0, &c->options)
               : IRIS_OK;
}

/* Elements that member `from` has for member `to`, by the meaning of the call.
 * An all_reduce is a reduce_scatter and an all_gather. */
static size_t meant(const char *name, int n, int from, int to)
{
    size_t part = COUNT / (size_t)n;

    if (strcmp(name, "all_reduce") == 0) {
        return 2 * part;
    }
    if (strcmp(name, "broadcast") == 0) {
        return from == ROOT ? COUNT : 0;
    }
    if (strcmp(name, "reduce") == 0) {
        return to == ROOT ? COUNT : 0;
    }
    if (strcmp(name, "gather") == 0) {
        return to == ROOT ? part : 0;
    }
    if (strcmp(name, "scatter") == 0) {
        return from == ROOT ? part : 0;
    }
    if (strcmp(name, "all_gatherv") == 0) {
        return uneven(from, 0);
    }
    if (strcmp(name, "all_to_allv") == 0) {
        return uneven(from, to);
    }
    if (strcmp(name, "send_recv") == 0) {
        return to == (from + 1) % n ? COUNT : 0;
    }
    if (strcmp(name, "send") == 0) {
        return from == 0 && to == n - 1 ? COUNT : 0;
    }
    return part;
}

static iris_status_t enqueue(struct call *call, const char *name)
{
    static const char *const even[] = {"all_reduce",     "all_gather",
                                       "reduce_scatter", "all_to_all",
                                       "broadcast",      "reduce"};

    for (size_t i = 0; i < sizeof even / sizeof even[0]; i++) {
        if (strcmp(name, even[i]) == 0) {
            return enqueue_even(call, name);
        }
    }
    return enqueue_messages(call, name);
}

static void count(const char *name, const int *ranks, int n, int rank)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            size_t elements = i == k ? 0 : meant(name, n, i, k);

            if (ranks[i] == rank && elements != 0) {
                printf("moved %d %d %zu\n", ranks[i], ranks[k], 4 * elements);
            }
        }
    }
}

/* All ranks, twice, and then 3, 0 and 2 in this order. */
static iris_status_t call_all(iris_t *iris, const char *name, float *memory)
{
    static const int all[] = {0, 1, 2, 3}, some[] = {3, 0, 2};
    struct call call = {.iris = iris, .in = memory, .out = memory + 512};
    int rank = iris_rank(iris), is_member = rank != 1;
    iris_group_t *group = NULL;
    iris_status_t status;

    iris_ccl_options_init(&call.options);
    call.n = RANKS;
    call.own = rank;
    status = iris_all_reduce_preamble(iris, &call.options);
    status = status ? status : enqueue(&call, name);
    status = status ? status : enqueue(&call, name);
    count(name, all, RANKS, rank);
    count(name, all, RANKS, rank);
    status = status ? status
                    : iris_group_create(iris, some, is_member ? 3 : 0, &group);
    if (status == IRIS_OK && is_member) {
        call.options.group = group;
        call.n = 3;
        call.own = rank == 3 ? 0 : rank == 0 ? 1 : 2;
        status = iris_all_reduce_preamble(iris, &call.options);
        status = status ? status : enqueue(&call, name);
        count(name, some, 3, rank);
    }
    return status ? status : iris_stream_synchronize(iris, NULL);
}

static int rank_main(iris_t *iris, void *arg)
{
    const struct job *job = arg;
    void *memory = NULL;
    iris_status_t status = iris_trace_enable(iris, 10000);

    status = status ? status : iris_calloc(iris, 1, 16384, &memory);
    status = status ? status : call_all(iris, job->name, memory);
    return (int)(status ? status : iris_trace_export(iris, job->file, 1));
}

int main(int argc, char **argv)
{
    struct job job = {argv[1], argv[2]};
    iris_status_t status =
        argc == 3 ? iris_spawn(NULL, RANKS, rank_main, &job) : IRIS_ERR_INVALID;

    if (status != IRIS_OK) {
        fprintf(stderr, "%s\n", iris_last_error());
    }
    return status != IRIS_OK;
}
