/* SPDX-License-Identifier: MIT
 *
 * iris sim collective: predicts the time of a collective by the number of ranks,
 * with the algorithm of the library: all ranks act at the same time, and every
 * link is in use at once.
 *
 * A plan is the call as amounts of a platform's costs; the sum of their products
 * is its time.
 */
#include "config.h"

#include "iris.h"
#include "sim.h"
#include "base/base.h"
#include "ccl/ccl.h"

#include <iris/device/kernels/ccl_args.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Plans ---- */

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

static double find_max(double a, double b)
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
        work->each / MB * find_max(peers, peers > 0 ? platform->links : 0);
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
            find_max(0, (double)call->bytes / MB - platform->cache_mb);
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

/* ---- The command ---- */

#define MOST_RANKS 1048576

/* Parses "64M" as bytes. Returns 0, or -1 if it is not a size. */
static int parse_bytes(const char *text, size_t *bytes_p)
{
    static const char units[] = "KMG";
    char *end;
    double bytes = text == NULL ? 0 : strtod(text, &end);
    const char *unit;

    if (!(bytes >= 1)) {
        return -1;
    }
    unit = *end == '\0' ? NULL : strchr(units, *end);
    if (unit != NULL) {
        bytes *= (double)((size_t)1 << (10 * (unit - units + 1)));
        end++;
    }
    if (*end != '\0' || bytes > 1e15) {
        return -1;
    }
    *bytes_p = (size_t)bytes;
    return 0;
}

/* Parses "8", or "2:4096" for 2, 4 and so on. Returns 0, or -1 if it is not a
 * number of ranks. */
static int parse_ranks(const char *text, int *least_p, int *most_p)
{
    char *end;
    long least = text == NULL ? 0 : strtol(text, &end, 10), most = least;

    if (least > 0 && *end == ':') {
        most = strtol(end + 1, &end, 10);
    }
    if (least < 2 || most < least || most > MOST_RANKS || *end != '\0') {
        return -1;
    }
    *least_p = (int)least;
    *most_p = (int)most;
    return 0;
}

/* The calls to predict: one for each number of ranks. */
struct scale {
    struct sim_platform platform;
    struct sim_call call;
    const char *name;
    int least, most;
};

static int parse_call(struct scale *scale, const char *name)
{
    int op = iris_i_ccl_find_op(name);

    scale->name = name;
    scale->call.op = (enum iris_ccl_op)op;
    if (op < 0 || parse_bytes(sim_options.bytes, &scale->call.bytes) != 0 ||
        parse_ranks(sim_options.ranks, &scale->least, &scale->most) != 0) {
        fprintf(stderr,
                "iris sim collective: pass a collective such as all_reduce, "
                "--bytes=64M, and --ranks=8 or --ranks=2:4096\n");
        return -1;
    }
    if (sim_options.variant != NULL) {
        scale->call.variant =
            iris_i_ccl_find_variant(scale->call.op, sim_options.variant);
        if (scale->call.variant == IRIS_CCL_AUTO) {
            fprintf(stderr,
                    "iris sim collective: %s has no variant %s that the model "
                    "knows\n",
                    scale->name, sim_options.variant);
            return -1;
        }
    }
    return 0;
}

static void print_collective(const struct scale *scale,
                             const struct sim_plan *plan, double us)
{
    const struct sim_platform *platform = &scale->platform;

    printf("%-14s %12zu bytes %7d ranks %-17s %14.3f us, %10.0f bytes sent:",
           scale->name, scale->call.bytes, scale->call.ranks, plan->way, us,
           plan->sent);
    for (int i = 0; i < SIM_COSTS; i++) {
        double part = plan->amounts[i] * platform->costs[i];

        if (part > 0) {
            printf(" %.*s %.1f", (int)strcspn(sim_cost_name(i), "_"),
                   sim_cost_name(i), part);
        }
    }
    printf("\n");
}

static void print_collective_json(struct iris_json_writer *json,
                                  const struct scale *scale,
                                  const struct sim_plan *plan, double us)
{
    iris_i_json_begin(json, NULL, '{');
    iris_i_json_text(json, "op", scale->name);
    iris_i_json_uint(json, "bytes", scale->call.bytes);
    iris_i_json_int(json, "ranks", scale->call.ranks);
    iris_i_json_text(json, "variant", plan->way);
    iris_i_json_real(json, "us", us);
    iris_i_json_uint(json, "sent_bytes", (uint64_t)plan->sent);
    iris_i_json_begin(json, "parts_us", '{');
    for (int i = 0; i < SIM_COSTS; i++) {
        char name[32];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(sim_cost_name(i), "_"),
                 sim_cost_name(i));
        iris_i_json_real(json, name,
                         plan->amounts[i] * scale->platform.costs[i]);
    }
    iris_i_json_end(json);
    iris_i_json_end(json);
}

int sim_collective_part(char **words, int num_words)
{
    struct scale scale = {.least = 0};
    struct iris_json_writer json = iris_i_json_writer(stdout);

    (void)num_words;
    if (parse_call(&scale, words[0]) != 0) {
        return 2;
    }
    if (sim_platform_given(&scale.platform) != 0) {
        return 1;
    }
    if (scale.most > scale.platform.node_ranks &&
        !(scale.platform.costs[SIM_NETWORK] > 0)) {
        fprintf(stderr,
                "iris sim collective: %d ranks are more than a node's %d, and "
                "the platform has no network_gbs\n",
                scale.most, scale.platform.node_ranks);
        return 1;
    }
    if (sim_options.json) {
        iris_i_json_begin(&json, NULL, '[');
    }
    for (long ranks = scale.least; ranks <= scale.most; ranks *= 2) {
        struct sim_plan plan;
        double us;

        scale.call.ranks = (int)ranks;
        plan = sim_plan(&scale.platform, &scale.call);
        us = sim_time(&scale.platform, plan.amounts);
        if (sim_options.json) {
            print_collective_json(&json, &scale, &plan, us);
        } else {
            print_collective(&scale, &plan, us);
        }
    }
    if (sim_options.json) {
        iris_i_json_end(&json);
    }
    return 0;
}
