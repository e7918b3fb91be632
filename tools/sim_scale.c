/* SPDX-License-Identifier: MIT
 *
 * iris sim collective: predicts the time of a collective by the number of
 * ranks.
 */
#include "config.h"

#include "sim_collective.h"
#include "sim_curve.h"
#include "sim_engine.h"
#include "sim_lower.h"
#include "sim_parts.h"
#include "base/base.h"
#include "ccl/ccl.h"

#include <stdlib.h>
#include <string.h>

#define MOST_RANKS 1048576
#define MOST_POINTS 64

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

struct scale {
    struct sim_platform platform;
    struct sim_call call;
    const char *name;
    int least, most;
    int is_hierarchical;
    struct sim_network *network; /* NULL: the sum of costs is the time */
    struct sim_point points[MOST_POINTS];
    size_t count;
};

static int parse(struct scale *scale)
{
    int op = iris_i_ccl_find_op(sim_options.words[0]);

    scale->name = sim_options.words[0];
    scale->call.op = (enum iris_ccl_op)op;
    if (op < 0 || parse_bytes(sim_options.bytes, &scale->call.bytes) != 0 ||
        parse_ranks(sim_options.ranks, &scale->least, &scale->most) != 0) {
        fprintf(stderr,
                "iris sim collective: pass a collective such as all_reduce, "
                "--bytes=64M, and --ranks=8 or --ranks=2:4096\n");
        return -1;
    }
    scale->is_hierarchical = sim_options.variant != NULL &&
                             strcmp(sim_options.variant, "hierarchical") == 0;
    if (sim_options.variant != NULL && !scale->is_hierarchical) {
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

static void print_table(const struct scale *scale, const struct sim_plan *plan,
                        double us)
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

static void print_json(struct iris_json_writer *json, const struct scale *scale,
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

/* Simulates the call message by message. Returns 0, or -1 after printing a
 * message. */
static int simulate(const struct scale *scale, struct sim_plan *plan,
                    double *us_p)
{
    struct sim_schedule schedule;
    struct sim_run run;
    int ret;

    if (sim_lower(&scale->platform, &scale->call, plan, scale->is_hierarchical,
                  &schedule) != 0) {
        return -1;
    }
    ret = sim_engine_run(&schedule, &scale->platform, scale->network, 1, &run);
    if (ret == 0) {
        *us_p = run.us;
        plan->sent = (double)run.ranks[0].sent;
        memset(plan->amounts, 0, sizeof plan->amounts);
        sim_engine_free(&run);
    } else {
        fprintf(stderr, "iris sim: no memory\n");
    }
    sim_schedule_free(&schedule);
    return ret;
}

static int write_picture(const struct scale *scale)
{
    char title[128];
    FILE *file = sim_open(sim_options.picture);

    if (file == NULL) {
        return 1;
    }
    snprintf(title, sizeof title, "%s of %zu bytes on %.63s", scale->name,
             scale->call.bytes, scale->platform.name);
    sim_curve_write(title, scale->points, scale->count, file);
    return sim_close(file, sim_options.picture);
}

int sim_collective_part(void)
{
    struct scale scale = {.least = 0};
    struct iris_json_writer json = iris_i_json_writer(stdout);

    if (parse(&scale) != 0) {
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
    if (sim_options.topology != NULL) {
        scale.network =
            sim_network_open(&scale.platform, sim_options.topology, scale.most);
        if (scale.network == NULL) {
            return 1;
        }
    }
    if (sim_options.json) {
        iris_i_json_begin(&json, NULL, '[');
    }
    for (long ranks = scale.least; ranks <= scale.most; ranks *= 2) {
        struct sim_plan plan;
        double us;

        scale.call.ranks = (int)ranks;
        plan = sim_plan(&scale.platform, &scale.call);
        plan.way = scale.is_hierarchical ? "hierarchical" : plan.way;
        us = sim_time(&scale.platform, plan.amounts);
        if ((scale.network != NULL || scale.is_hierarchical) &&
            simulate(&scale, &plan, &us) != 0) {
            return 1;
        }
        scale.points[scale.count++] = (struct sim_point){(double)ranks, us};
        if (sim_options.json) {
            print_json(&json, &scale, &plan, us);
        } else {
            print_table(&scale, &plan, us);
        }
    }
    if (sim_options.json) {
        iris_i_json_end(&json);
    }
    return sim_options.picture != NULL ? write_picture(&scale) : 0;
}
