/* SPDX-License-Identifier: MIT
 *
 * The state of a rank in iris probe, and the checks: shared by its files.
 */
#ifndef IRIS_TOOLS_PROBE_H
#define IRIS_TOOLS_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/iris.h>

#include "probe_kernels.h"

enum probe_verdict {
    PROBE_OK, /* from here on each is worse than the one before */
    PROBE_UNREACHABLE,
    PROBE_WRONG,
    PROBE_FAILED,
    PROBE_HUNG
};

/* The findings of one rank. */
struct probe_found {
    enum probe_verdict verdict;
    char text[512];
};

struct probe_options {
    int num_ranks;
    int64_t bytes;  /* size of a large copy */
    int64_t rounds; /* rounds of flags and data */
    int64_t from;   /* the first step; those before have been made */
    bool tabs;      /* lines for programs */
};

/* In memory that the ranks share. */
struct probe_shared {
    int num_bad; /* rank 0's */
    struct probe_found found[PROBE_MOST_RANKS];
};

/* One rank. */
struct probe {
    iris_t *iris;
    iris_stream_t *stream; /* beside the context's own */
    struct probe_shared *shared;
    struct probe_options options;
    struct probe_args args; /* arguments of the current step */
    int first;              /* ranks of it; all of them: second is -1 */
    int second;
};

/* A check of two ranks, or of all. The members of a step call run(). When all
 * of them have returned, they call verify(), which may be NULL. They write
 * *found_p if all calls succeeded and a value was wrong, or for a note;
 * otherwise they leave it unchanged. */
struct probe_check {
    const char *name;
    enum {
        PROBE_OF_PAIRS,
        PROBE_OF_MORE, /* all ranks, where they are no pair */
        PROBE_OF_ALL   /* all ranks */
    } members;
    iris_status_t (*run)(struct probe *probe, struct probe_found *found_p);
    iris_status_t (*verify)(struct probe *probe, struct probe_found *found_p);
};

/* All of them, a NULL name at the end. */
extern const struct probe_check probe_checks[];

/* The library's collectives by each variant, a graph of one, a tensor. */
iris_status_t probe_library_run(struct probe *probe,
                                struct probe_found *found_p);

#endif /* IRIS_TOOLS_PROBE_H */
