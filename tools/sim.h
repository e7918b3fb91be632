/* SPDX-License-Identifier: MIT
 *
 * Declarations that the files of iris sim share.
 */
#ifndef IRIS_TOOLS_SIM_H
#define IRIS_TOOLS_SIM_H

#include <iris/ccl.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- sim.c: options and platforms ---- */

/* Costs: name in the file, whether the file has a rate in GB/s (else
 * microseconds), and whether the cost has to do with other nodes. */
#define SIM_COST_ROWS(X)                                                     \
    X(LAUNCH, "launch_us", 0)    /* one kernel of a stream */                \
    X(FLAG, "flag_us", 0)        /* a flag, one way */                       \
    X(MEET, "meet_us", 0)        /* both meetings of a collective */         \
    X(LANES, "lanes_us", 0)      /* each doubling of the lanes */            \
    X(PEER, "peer_us", 0)        /* each peer beyond the first */            \
    X(COMBINE, "combine_us", 0)  /* a reduction of any size */               \
    X(COPY, "copy_us", 0)        /* a copy on a stream */                    \
    X(RELEASE, "release_us", 0)  /* a signal's wait for earlier writes */    \
    X(HOP, "hop_us", 0)          /* a flag to another node */                \
    X(LINK, "link_gbs", 1)       /* out of a rank, within a node */          \
    X(ENGINE, "engine_gbs", 1)   /* copies on streams; 0: as links */        \
    X(REDUCE, "reduce_gbs", 1)   /* reading and combining operands */        \
    X(LOCAL, "local_gbs", 1)     /* copying within a rank */                 \
    X(MEMORY, "memory_gbs", 1)   /* beyond the cache, the additional time */ \
    X(NETWORK, "network_gbs", 1) /* out of a rank, to other nodes */

enum sim_cost {
#define ROW(NAME, name, is_rate) SIM_##NAME,
    SIM_COST_ROWS(ROW)
#undef ROW
        SIM_COSTS,
};

/* `costs` are microseconds each, or microseconds per MB (1,000,000 bytes). */
struct sim_platform {
    char name[64];
    char source[256]; /* where the figures are from */
    int gpu;
    int node_ranks;  /* ranks of a node; the rest is reached by the network */
    int links;       /* peers that a rank sends to when its links are full */
    int is_shared;   /* ranks of a node share one memory, and its bandwidth */
    double cache_mb; /* bytes of a call beyond it have SIM_MEMORY; 0: none */
    double costs[SIM_COSTS];
};

const char *sim_cost_name(enum sim_cost cost);
int sim_cost_is_rate(enum sim_cost cost);

void sim_platform_write(const struct sim_platform *platform, FILE *file);

struct sim_options {
    const char *platform; /* a file; NULL: not given */
    const char *output;   /* NULL: none */
    const char *perfetto; /* a trace of the predicted run */
    const char *bytes;
    const char *ranks;
    const char *variant;
    const char *changes[16]; /* of --what-if */
    int num_changes;
    double compute; /* factor of the intervals between operations */
    int json;
};

extern struct sim_options sim_options;

/* Each returns the exit status. */
int sim_fit_part(char **words, int num_words);
int sim_run_part(char **words, int num_words);
int sim_collective_part(char **words, int num_words);

/* Reads the platform of --platform and applies --what-if. Returns 0, or -1
 * after printing a message. */
int sim_platform_given(struct sim_platform *platform_p);

/* ---- sim_messages.c: the messages of a trace ---- */

/* The parts of an operation that a platform times, see docs/timing.md. Times
 * are the traced machine's; the platform's replace them. */
struct sim_item_cost {
    int is_release;    /* a signal: it waits for the writes before it */
    int is_copy;       /* by a copy engine */
    int waits_before;  /* for the results of atomics before it */
    int waits_itself;  /* for its own result, after which its rank goes on */
    int64_t before_ns; /* of those atomics */
    int64_t own_ns;    /* of the operation */
};

/* One end of a message. */
struct sim_item {
    int rank;
    char tid[20];     /* items of one track come in order; empty: of none */
    int64_t begin_ns; /* for a wait, its begin; else the same as ns */
    int64_t ns;
    int is_send;
    int peer;
    uint64_t bytes;
    uint64_t tag;
    uint64_t batch; /* not 0: items of one track with it are one step */
    int from_start; /* the time before the first item of its track counts */
    struct sim_item_cost cost;
};

struct sim_items {
    struct sim_item *items;
    size_t count;
};

/* Reads a merged trace: all ends of all messages.
 * The caller frees the list. Returns 0, or -1 after printing a message. */
int sim_messages_read(const char *path, struct sim_items *items_p,
                      int *num_ranks_p);

/* ---- sim_schedule.c ---- */

enum sim_kind { SIM_CALC, SIM_SEND, SIM_RECV };

#define SIM_NO_STEP SIZE_MAX

/* Steps of a rank are next to each other. */
struct sim_step {
    enum sim_kind kind;
    int rank;
    int peer;        /* for a calc, the peer of its round */
    uint64_t amount; /* ns of calc, else bytes */
    uint64_t tag;
    int is_release, is_round, is_copy;
    size_t partner;     /* for a send or recv; SIM_NO_STEP: no partner */
    size_t num_before;  /* steps that it waits for */
    size_t first_after; /* in `after` */
};

struct sim_arrow {
    size_t before, after;
};

struct sim_schedule {
    int num_ranks;
    struct sim_step *steps;
    size_t num_steps;
    struct sim_arrow *arrows; /* sorted by `before` */
    size_t num_arrows;
};

/* Sorts the items, and makes their schedule. Returns 0, or -1 after printing a
 * message. */
int sim_schedule_make(struct sim_items *items, int num_ranks,
                      struct sim_schedule *schedule_p);
void sim_schedule_free(struct sim_schedule *schedule);

/* ---- sim_collective.c ---- */

struct sim_call {
    int op;       /* an enum iris_ccl_op */
    size_t bytes; /* size of the larger buffer */
    int ranks;
    iris_ccl_variant_t variant; /* IRIS_CCL_AUTO: the library's choice */
};

/* `amounts` are counts, or MB, of each cost; the call takes the sum of their
 * products with the platform's costs. */
struct sim_plan {
    double amounts[SIM_COSTS];
    const char *way; /* the variant's name, or "far": of several nodes */
    int shots;       /* exchanges */
    double sent;     /* bytes that a rank sends to its peers, flags included */
};

struct sim_plan sim_plan(const struct sim_platform *platform,
                         const struct sim_call *call);

/* Microseconds. */
double sim_time(const struct sim_platform *platform,
                const double amounts[SIM_COSTS]);

#endif /* IRIS_TOOLS_SIM_H */
