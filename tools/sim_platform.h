/* SPDX-License-Identifier: MIT
 *
 * A machine as iris sim models it: the costs of a few steps, in a JSON file.
 */
#ifndef IRIS_TOOLS_SIM_PLATFORM_H
#define IRIS_TOOLS_SIM_PLATFORM_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    int leaf_ports;  /* ports of a leaf switch, for ranks; 0: unknown */
    int spines;      /* switches that each leaf switch has a link to */
    double cache_mb; /* bytes of a call beyond it have SIM_MEMORY; 0: none */
    double costs[SIM_COSTS];
};

const char *sim_cost_name(enum sim_cost cost);
int sim_cost_is_rate(enum sim_cost cost);

/* Read and write the file. Return 0, or -1 after printing a message. */
int sim_platform_read(struct sim_platform *platform_p, const char *path);
void sim_platform_write(const struct sim_platform *platform, FILE *file);

/* Applies "link=2x" (the rate doubles) or "flag=0.5x" (the time halves).
 * Returns 0, or -1 after printing a message if the text is not such a change. */
int sim_platform_change(struct sim_platform *platform, const char *text);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_TOOLS_SIM_PLATFORM_H */
