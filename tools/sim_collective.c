/* SPDX-License-Identifier: MIT
 *
 * iris sim collective: predicts the time of a collective by the number of ranks,
 * with the algorithm of the library: all ranks act at the same time, and every
 * link is in use at once.
 *
 * A plan is the call as amounts of a platform's costs; the sum of their products
 * is its time. With a network between nodes, or for the hierarchical all_reduce,
 * the call becomes a schedule of every message of every rank. All ranks have the
 * same steps there, so that the partner of a send is found by arithmetic. A
 * phase is an exchange among the members of a group, and the computation that
 * follows it: sends, receives, calc.
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

#define MB 1e6
#define MOST_PHASES 48
#define MOST_STEPS ((size_t)1 << 23)

/* An exchange among `count` ranks, `stride` apart. */
struct phase {
    int count, stride;
    double bytes;   /* to each other member */
    double calc_us; /* after it */
    size_t first;   /* step of a rank */
};

struct lowering {
    const struct sim_platform *platform;
    struct sim_schedule schedule;
    struct phase phases[MOST_PHASES];
    int num_phases;
    double start_us;  /* before the first phase */
    size_t num_steps; /* of a rank */
    int root; /* the only rank that has data to send; -1: all ranks have data */
};

static void add_phase(struct lowering *lowering, int count, int stride,
                      double bytes, double calc_us)
{
    struct phase *phase = &lowering->phases[lowering->num_phases];

    if (count > 1 && lowering->num_phases < MOST_PHASES) {
        *phase =
            (struct phase){count, stride, bytes, calc_us, lowering->num_steps};
        lowering->num_steps += 2 * (size_t)(count - 1) + 1;
        lowering->num_phases++;
    }
}

/* ---- Phases ---- */

/* The costs of a plan without its messages. */
static double find_start(const struct sim_platform *platform,
                         const struct sim_plan *plan)
{
    double amounts[SIM_COSTS] = {0};

    for (int i = 0; i < SIM_COSTS; i++) {
        if (i != SIM_FLAG && i != SIM_HOP && i != SIM_LINK &&
            i != SIM_NETWORK && i != SIM_REDUCE && i != SIM_LOCAL) {
            amounts[i] = plan->amounts[i];
        }
    }
    return sim_time(platform, amounts);
}

static void add_direct(struct lowering *lowering, const struct sim_call *call,
                       const struct sim_plan *plan)
{
    const double *costs = lowering->platform->costs;
    double calc_us = plan->amounts[SIM_REDUCE] * costs[SIM_REDUCE] +
                     plan->amounts[SIM_LOCAL] * costs[SIM_LOCAL];
    double each = plan->sent / (call->ranks - 1);

    lowering->start_us = find_start(lowering->platform, plan);
    lowering->root = call->op == IRIS_CCL_BROADCAST ? 0 : -1;
    if (plan->shots == 2) {
        add_phase(lowering, call->ranks, 1, each / 2, calc_us);
        add_phase(lowering, call->ranks, 1, each / 2, 0);
    } else {
        add_phase(lowering, call->ranks, 1, each, calc_us);
    }
}

static void add_hierarchical(struct lowering *lowering,
                             const struct sim_call *call)
{
    const struct sim_platform *platform = lowering->platform;
    int near = platform->node_ranks, nodes = call->ranks / near;
    double part = (double)call->bytes / near;
    double each_us =
        platform->costs[SIM_REDUCE] / MB; /* per byte of an operand */
    double peers = near - 1 + 2 * log2(nodes);

    lowering->start_us =
        platform->costs[SIM_LAUNCH] + platform->costs[SIM_MEET] +
        platform->costs[SIM_COMBINE] + (peers - 1) * platform->costs[SIM_PEER];

    add_phase(lowering, near, 1, part, part * near * each_us);
    for (int apart = nodes / 2; apart >= 1; apart /= 2) {
        part /= 2;
        add_phase(lowering, 2, near * apart, part, part * 2 * each_us);
    }
    for (int apart = 1; apart < nodes; apart *= 2) {
        add_phase(lowering, 2, near * apart, part, 0);
        part *= 2;
    }
    add_phase(lowering, near, 1, part, 0);
}

/* ---- Steps ---- */

static struct sim_step *find_step_of(struct lowering *lowering, int rank,
                                     size_t i)
{
    return &lowering->schedule.steps[(size_t)rank * lowering->num_steps + i];
}

static void add_step_arrow(struct lowering *lowering, int rank, size_t before,
                           size_t after)
{
    struct sim_schedule *schedule = &lowering->schedule;
    size_t first = (size_t)rank * lowering->num_steps;

    schedule->arrows[schedule->num_arrows++] =
        (struct sim_arrow){first + before, first + after};
    schedule->steps[first + after].num_before++;
}

static void set_calc(struct lowering *lowering, int rank, size_t i, double us)
{
    *find_step_of(lowering, rank, i) =
        (struct sim_step){.kind = SIM_CALC,
                          .rank = rank,
                          .label = i,
                          .amount = (uint64_t)llround(1000 * us),
                          .partner = SIM_NO_STEP};
}

/* The member that gets message k of a member. For each k every member gets one
 * message. In a group of several nodes this holds separately for the messages
 * within nodes and for those between them, which do not wait for each other. */
static int find_receiver(const struct phase *phase, int own, int k, int near)
{
    int count = phase->count, nodes = count / near;

    k++;
    if (phase->stride != 1 || nodes * near != count) {
        return (own + k) % count;
    }
    return (own / near + k / near) % nodes * near + (own + k) % near;
}

/* Sets message k of a member as message k of the member that gets it. */
static void set_messages(struct lowering *lowering, int rank,
                         const struct phase *phase)
{
    int count = phase->count, own = rank / phase->stride % count;
    int base = rank - own * phase->stride;
    int near = lowering->platform->node_ranks;
    int sends = lowering->root < 0 || lowering->root == rank;

    for (int k = 0; k < count - 1; k++) {
        int to = base + find_receiver(phase, own, k, near) * phase->stride;
        size_t send = phase->first + (size_t)k;
        size_t receive = send + (size_t)(count - 1);
        size_t partner = (size_t)to * lowering->num_steps + receive;

        *find_step_of(lowering, rank, send) = (struct sim_step){
            .kind = SIM_SEND,
            .rank = rank,
            .peer = to,
            .label = send,
            .amount = sends ? (uint64_t)llround(phase->bytes) : 0,
            .tag = phase->first + (size_t)k,
            .partner = partner};
    }
}

/* Sets the receives, from the sends that are their partners. */
static void set_receives(struct lowering *lowering)
{
    struct sim_schedule *schedule = &lowering->schedule;

    for (size_t i = 0; i < schedule->num_steps; i++) {
        const struct sim_step *send = &schedule->steps[i];

        if (send->kind == SIM_SEND) {
            struct sim_step *receive = &schedule->steps[send->partner];

            *receive = *send;
            receive->kind = SIM_RECV;
            receive->rank = send->peer;
            receive->peer = send->rank;
            receive->label = send->partner % lowering->num_steps;
            receive->partner = i;
        }
    }
}

/* Sets the arrows, in the order of the step at which they begin. */
static void set_arrows(struct lowering *lowering, int rank)
{
    size_t last = 0;

    for (int p = 0; p < lowering->num_phases; p++) {
        const struct phase *phase = &lowering->phases[p];
        size_t messages = (size_t)(phase->count - 1);
        size_t calc = phase->first + 2 * messages;

        for (size_t i = phase->first; i < calc; i++) {
            add_step_arrow(lowering, rank, last, i);
        }
        for (size_t i = phase->first; i < calc; i++) {
            add_step_arrow(lowering, rank, i, calc);
        }
        last = calc;
    }
}

static void fill_schedule(struct lowering *lowering)
{
    struct sim_schedule *schedule = &lowering->schedule;
    size_t at = 0;

    for (int rank = 0; rank < schedule->num_ranks; rank++) {
        set_calc(lowering, rank, 0, lowering->start_us);
        for (int p = 0; p < lowering->num_phases; p++) {
            const struct phase *phase = &lowering->phases[p];

            set_messages(lowering, rank, phase);
            set_calc(lowering, rank,
                     phase->first + 2 * (size_t)(phase->count - 1),
                     phase->calc_us);
        }
    }
    set_receives(lowering);
    for (int rank = 0; rank < schedule->num_ranks; rank++) {
        set_arrows(lowering, rank);
    }
    for (size_t i = 0; i < schedule->num_steps; i++) {
        schedule->steps[i].first_after = at;
        while (at < schedule->num_arrows && schedule->arrows[at].before == i) {
            at++;
        }
    }
}

static int complain_of_call(const char *what)
{
    fprintf(stderr, "iris sim collective: %s\n", what);
    return -1;
}

/* Makes the steps of `plan`, which is sim_plan() of the call: a direct
 * exchange, or two of them. `hierarchical` is an all_reduce that the library
 * does not have. Each node reduces and scatters its data. Ranks with the same
 * place in their nodes combine theirs by recursive halving and doubling
 * (Thakur, Rabenseifner and Gropp, IJHPCA 2005). Last, each node gathers. The
 * number of nodes must then be a power of 2. Returns 0, or -1 after printing a
 * message. The caller frees the schedule. */
static int lower_call(const struct sim_platform *platform,
                      const struct sim_call *call, const struct sim_plan *plan,
                      int hierarchical, struct sim_schedule *schedule_p)
{
    struct lowering lowering = {
        .platform = platform, .num_steps = 1, .root = -1};
    struct sim_schedule *schedule = &lowering.schedule;
    int nodes = call->ranks / platform->node_ranks;

    if (!hierarchical) {
        add_direct(&lowering, call, plan);
    } else if (call->op != IRIS_CCL_ALL_REDUCE ||
               nodes * platform->node_ranks != call->ranks ||
               (nodes & (nodes - 1)) != 0) {
        return complain_of_call(
            "hierarchical is for an all_reduce of full nodes, 2, 4, "
            "8 or a higher power of 2 of them");
    } else {
        add_hierarchical(&lowering, call);
    }
    schedule->num_ranks = call->ranks;
    schedule->num_steps = (size_t)call->ranks * lowering.num_steps;
    if (schedule->num_steps > MOST_STEPS) {
        return complain_of_call(
            "this takes more than 8,388,608 steps: use fewer ranks, "
            "--variant=hierarchical, or no --topology");
    }
    schedule->steps = calloc(schedule->num_steps, sizeof *schedule->steps);
    schedule->arrows =
        calloc(2 * schedule->num_steps, sizeof *schedule->arrows);
    if (schedule->steps == NULL || schedule->arrows == NULL) {
        sim_schedule_free(schedule);
        return complain_of_call("no memory");
    }
    fill_schedule(&lowering);
    *schedule_p = *schedule;
    return 0;
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

struct scale {
    struct sim_platform platform;
    struct sim_call call;
    const char *name;
    int least, most;
    int is_hierarchical;
    struct sim_network *network; /* NULL: the sum of costs is the time */
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

/* Simulates the call message by message. Returns 0, or -1 after printing a
 * message. */
static int simulate_call(const struct scale *scale, struct sim_plan *plan,
                         double *us_p)
{
    struct sim_schedule schedule;
    struct sim_run run;
    int ret;

    if (lower_call(&scale->platform, &scale->call, plan, scale->is_hierarchical,
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
            simulate_call(&scale, &plan, &us) != 0) {
            return 1;
        }
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
