/* SPDX-License-Identifier: MIT
 *
 * The costs of a collective for each rank, with the algorithm of the library:
 * all ranks act at the same time, and every link is in use at once.
 */
#include "config.h"

#include <iris/device/kernels/ccl_args.h>

#include "sim_collective.h"
#include "ccl/ccl.h"

#include <math.h>

#define MB 1e6
#define PACKET_BYTES 8       /* bytes of data that a lane sends at once */
#define LEAST_LANES 64       /* of a workgroup */
#define MOST_LANES (1 << 11) /* beyond which more lanes start for nothing */

/* One call, and what follows from it. */
struct work {
    const struct sim_platform *platform;
    int ranks;
    double part;   /* bytes that a rank has for one other, or for all */
    double each;   /* bytes that a rank sends to each other */
    double fan;    /* how many peers get them */
    int is_packet; /* flags in the data: twice the bytes, and no meetings */
    int reduces;
    int shots;
};

static int is_packet(iris_ccl_variant_t variant)
{
    return variant == IRIS_CCL_PACKET || variant == IRIS_CCL_ONE_SHOT_PACKET ||
           variant == IRIS_CCL_TWO_SHOT_PACKET;
}

static int is_two_shot(iris_ccl_variant_t variant)
{
    return variant == IRIS_CCL_TWO_SHOT || variant == IRIS_CCL_TWO_SHOT_PACKET;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Bytes go through the links and through the network at the same time: the
 * slower way counts. */
static void add_transport(const struct work *work, double *amounts)
{
    const struct sim_platform *platform = work->platform;
    int near =
        work->ranks < platform->node_ranks ? work->ranks : platform->node_ranks;
    double peers = near - 1 < work->fan ? near - 1 : work->fan;
    double links =
        work->each / MB * larger(peers, peers > 0 ? platform->links : 0);
    double network = work->each / MB * (work->fan - peers);

    if (network * platform->costs[SIM_NETWORK] >
        links * platform->costs[SIM_LINK]) {
        amounts[SIM_NETWORK] = network;
    } else {
        amounts[SIM_LINK] = links;
    }
}

static void add_steps(const struct work *work, double *amounts)
{
    int spans = work->ranks > work->platform->node_ranks;
    double lanes =
        work->part / PACKET_BYTES / (work->shots == 2 ? work->ranks : 1);

    amounts[SIM_LAUNCH] = 1;
    amounts[SIM_PEER] = work->ranks - 2;
    amounts[SIM_COMBINE] = work->reduces;
    if (work->is_packet) {
        amounts[spans ? SIM_HOP : SIM_FLAG] = work->shots;
        lanes = lanes < LEAST_LANES ? LEAST_LANES : lanes;
        amounts[SIM_LANES] = log2(lanes > MOST_LANES ? MOST_LANES : lanes);
    } else {
        amounts[SIM_MEET] = 1;
        amounts[SIM_HOP] = spans ? 2 : 0;
    }
}

struct sim_plan sim_plan(const struct sim_platform *platform,
                         const struct sim_call *call)
{
    const struct iris_ccl_kind *kind = &iris_i_ccl_kinds[call->op];
    int in_parts = kind->in_parts || kind->out_parts;
    double n = call->ranks,
           part = in_parts ? (double)call->bytes / n : (double)call->bytes;
    int is_far =
        call->variant == IRIS_CCL_AUTO && call->ranks > platform->node_ranks;
    iris_ccl_variant_t variant =
        call->variant != IRIS_CCL_AUTO
            ? call->variant
            : iris_i_ccl_table_variant(call->op, platform->gpu, call->ranks,
                                       (size_t)part);
    struct work work = {.platform = platform,
                        .ranks = call->ranks,
                        .part = part,
                        .fan = n - 1,
                        .is_packet = !is_far && is_packet(variant),
                        .reduces = kind->reduces};
    struct sim_plan plan = {.way = is_far ? "far"
                                          : iris_ccl_variant_name(variant)};

    work.shots = !is_far && is_two_shot(variant) ? 2 : 1;
    plan.shots = work.shots;
    work.each = work.shots == 2 ? 2 * part / n : part;
    work.each *= work.is_packet ? 2 : 1;
    add_steps(&work, plan.amounts);
    add_transport(&work, plan.amounts);
    if (kind->reduces) {
        plan.amounts[SIM_REDUCE] = (work.shots == 2 ? part : part * n) / MB;
    } else if (in_parts) {
        plan.amounts[SIM_LOCAL] = part / MB;
    }
    if (platform->is_shared) { /* all ranks move their bytes at the same time */
        plan.amounts[SIM_LINK] *= n;
        plan.amounts[SIM_REDUCE] *= n;
        plan.amounts[SIM_LOCAL] *= n;
    }
    if (platform->cache_mb > 0) {
        plan.amounts[SIM_MEMORY] =
            larger(0, (double)call->bytes / MB - platform->cache_mb);
    }
    plan.sent = work.each * work.fan;
    return plan;
}

double sim_time(const struct sim_platform *platform,
                const double amounts[SIM_COSTS])
{
    double us = 0;

    for (int i = 0; i < SIM_COSTS; i++) {
        us += amounts[i] * platform->costs[i];
    }
    return us;
}
