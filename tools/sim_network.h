/* SPDX-License-Identifier: MIT
 *
 * The network between nodes, simulated by SimGrid: flows share links and ports.
 */
#ifndef IRIS_TOOLS_SIM_NETWORK_H
#define IRIS_TOOLS_SIM_NETWORK_H

#include "sim_platform.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sim_network;

/* Times are microseconds since the run began. */
struct sim_network_events {
    /* Does all work up to `us`; returns when the next is due, INFINITY: none. */
    double (*run_until)(void *arg, double us);
    /* The last byte of message `id` has arrived. */
    void (*has_arrived)(void *arg, size_t id, double us);
    void *arg;
};

/* Opens the network of a cluster with this number of ranks. In a "fat_tree",
 * all ranks of a node are at one leaf switch. In a "rail" network, a leaf
 * switch has the ranks with the same place in their nodes. A process has one
 * network. Returns NULL, after printing a message, if the topology is unknown
 * or this build has no SimGrid. */
struct sim_network *sim_network_open(const struct sim_platform *platform,
                                     const char *topology, int num_ranks);

/* Calls `events` until no work is due and no message is under way. */
void sim_network_run(struct sim_network *network,
                     const struct sim_network_events *events);

/* Sends a message; only events may call it. */
void sim_network_send(struct sim_network *network, int from, int to,
                      double bytes, size_t id);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_TOOLS_SIM_NETWORK_H */
