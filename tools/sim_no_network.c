/* SPDX-License-Identifier: MIT
 *
 * Replaces the network between nodes in a build without SimGrid.
 */
#include "config.h"

#include "sim.h"

struct sim_network *sim_network_open(const struct sim_platform *platform,
                                     const char *topology, int num_ranks)
{
    (void)platform;
    (void)topology;
    (void)num_ranks;
    fprintf(stderr, "iris sim: --topology needs SimGrid, which this build does "
                    "not have: install libsimgrid-dev, and configure again\n");
    return NULL;
}

/* Never called, because sim_network_open() returns NULL. */
void sim_network_run(struct sim_network *network,
                     const struct sim_network_events *events)
{
    (void)network;
    (void)events;
}

void sim_network_send(struct sim_network *network, int from, int to,
                      double bytes, size_t id)
{
    (void)network;
    (void)from;
    (void)to;
    (void)bytes;
    (void)id;
}
