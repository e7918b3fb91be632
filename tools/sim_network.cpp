/* SPDX-License-Identifier: MIT
 *
 * A network of two levels of switches in SimGrid. A rank's port is a host of its
 * fat-tree zone. SimGrid's second is our microsecond, which is finer than the
 * precision of its clock. A timer stands for the next work that is due, and each
 * message is an activity, so that no actor needs a stack.
 */
#include "config.h"

#include "sim.h"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

struct message {
    size_t id;
    s4u::CommPtr comm;
};

struct sim_network {
    const struct sim_network_events *events;
    std::vector<s4u::Host *> ports; /* of each rank */
    std::unordered_map<const s4u::Activity *, message> messages;
    s4u::CommPtr ended; /* the latest: SimGrid is not done with it */
    s4u::Engine *engine;
    double begin_us; /* the engine's time when the run began */
    double due_us;   /* time of the earliest timer; INFINITY: no timer */
};

static struct sim_network *the_network;

static double now(const struct sim_network *network)
{
    return s4u::Engine::get_clock() - network->begin_us;
}

static void wake(struct sim_network *network);

static void set_timer(struct sim_network *network, double us)
{
    if (us < network->due_us) {
        network->due_us = us;
        Timer::set(network->begin_us + us, [network, us] {
            if (us == network->due_us) { /* not overtaken by an earlier one */
                wake(network);
            }
        });
    }
}

/* The clock may have been rounded to a time before the timer's. */
static void wake(struct sim_network *network)
{
    double us = std::max(network->due_us, now(network));

    network->due_us = INFINITY;
    set_timer(network, network->events->run_until(network->events->arg, us));
}

static void end_message(s4u::Activity const &activity)
{
    struct sim_network *network = the_network;
    auto found = network->messages.find(&activity);
    const struct sim_network_events *events = network->events;
    double us = now(network);
    size_t id;

    if (found == network->messages.end()) {
        return;
    }
    id = found->second.id;
    network->ended = found->second.comm;
    network->messages.erase(found);
    events->has_arrived(events->arg, id, us);
    set_timer(network, events->run_until(events->arg, us));
}

/* ---- The platform ---- */

/* Ports by place: a leaf switch has `leaf_ports` places. */
static std::vector<s4u::Host *> make_ports(const struct sim_platform *platform,
                                           unsigned num_leaves)
{
    unsigned down = (unsigned)platform->leaf_ports;
    unsigned up = (unsigned)platform->spines;
    double rate = 1e6 / platform->costs[SIM_NETWORK]; /* bytes per us */
    std::vector<s4u::Host *> ports;
    s4u::NetZone *root = s4u::create_full_zone("cluster");
    s4u::ClusterCallbacks callbacks([&ports](s4u::NetZone *zone,
                                             const std::vector<unsigned long> &,
                                             unsigned long id) {
        s4u::Host *host = zone->create_host("port" + std::to_string(id), 1);

        ports.push_back(host);
        return std::make_pair(host->get_netpoint(),
                              (simgrid::kernel::routing::NetPoint *)nullptr);
    });

    s4u::create_fatTree_zone(
        "network", root, {2, {down, num_leaves}, {1, up}, {1, 1}}, callbacks,
        rate, 0, s4u::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
    root->seal();
    return ports;
}

static void place_ranks(struct sim_network *network,
                        const struct sim_platform *platform, bool is_rail,
                        unsigned num_ranks)
{
    unsigned near = (unsigned)platform->node_ranks;
    unsigned down = (unsigned)platform->leaf_ports;
    unsigned nodes = (num_ranks + near - 1) / near;
    unsigned of_rail = (nodes + down - 1) / down; /* leaf switches */
    unsigned leaves = is_rail ? near * of_rail : (num_ranks + down - 1) / down;
    std::vector<s4u::Host *> ports = make_ports(platform, leaves);

    for (unsigned rank = 0; rank < num_ranks; rank++) {
        unsigned rail = rank % near, node = rank / near;

        network->ports.push_back(
            ports[is_rail ? rail * of_rail * down + node : rank]);
    }
}

struct sim_network *sim_network_open(const struct sim_platform *platform,
                                     const char *topology, int num_ranks)
{
    const char *args[] = {/* SimGrid removes its options */
                          "iris sim",
                          "--log=root.thresh:warning",
                          "--cfg=network/model:CM02", /* no allowance for TCP */
                          "--cfg=network/TCP-gamma:0",
                          "--cfg=network/crosstraffic:0",
                          nullptr};
    int argc = 5;
    bool is_rail = strcmp(topology, "rail") == 0;

    if (!is_rail && strcmp(topology, "fat_tree") != 0) {
        fprintf(stderr,
                "iris sim: there is no topology %s, only fat_tree and "
                "rail\n",
                topology);
        return nullptr;
    }
    if (platform->leaf_ports < 1 || platform->spines < 1 ||
        !(platform->costs[SIM_NETWORK] > 0)) {
        fprintf(stderr, "iris sim: the platform lacks leaf_ports, spines or "
                        "network_gbs\n");
        return nullptr;
    }
    the_network = new sim_network();
    the_network->engine = new s4u::Engine(&argc, (char **)args);
    s4u::Activity::on_completion_cb(end_message);
    place_ranks(the_network, platform, is_rail, (unsigned)num_ranks);
    return the_network;
}

/* ---- Running ---- */

void sim_network_run(struct sim_network *network,
                     const struct sim_network_events *events)
{
    network->events = events;
    network->begin_us = s4u::Engine::get_clock();
    network->due_us = INFINITY;
    set_timer(network, 0);
    network->engine->run();
}

void sim_network_send(struct sim_network *network, int from, int to,
                      double bytes, size_t id)
{
    s4u::CommPtr comm = s4u::Comm::sendto_init(network->ports[(size_t)from],
                                               network->ports[(size_t)to]);

    comm->set_payload_size((uint64_t)bytes);
    network->messages[comm.get()] = {id, comm};
    comm->start();
}
