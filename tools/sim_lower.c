/* SPDX-License-Identifier: MIT
 *
 * All ranks have the same steps, so that the partner of a send is found by
 * arithmetic. A phase is an exchange among the members of a group, and the
 * computation that follows it:
 *
 *   sends, receives, calc
 */
#include "config.h"

#include "sim_lower.h"

#include <math.h>
#include <stdlib.h>

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
static double start_of(const struct sim_platform *platform,
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

    lowering->start_us = start_of(lowering->platform, plan);
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

static struct sim_step *step_of(struct lowering *lowering, int rank, size_t i)
{
    return &lowering->schedule.steps[(size_t)rank * lowering->num_steps + i];
}

static void add_arrow(struct lowering *lowering, int rank, size_t before,
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
    *step_of(lowering, rank, i) =
        (struct sim_step){.kind = SIM_CALC,
                          .rank = rank,
                          .label = i,
                          .amount = (uint64_t)llround(1000 * us),
                          .partner = SIM_NO_STEP};
}

/* The member that gets message k of a member. For each k every member gets one
 * message. In a group of several nodes this holds separately for the messages
 * within nodes and for those between them, which do not wait for each other. */
static int receiver_of(const struct phase *phase, int own, int k, int near)
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
        int to = base + receiver_of(phase, own, k, near) * phase->stride;
        size_t send = phase->first + (size_t)k;
        size_t receive = send + (size_t)(count - 1);
        size_t partner = (size_t)to * lowering->num_steps + receive;

        *step_of(lowering, rank, send) = (struct sim_step){
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
            add_arrow(lowering, rank, last, i);
        }
        for (size_t i = phase->first; i < calc; i++) {
            add_arrow(lowering, rank, i, calc);
        }
        last = calc;
    }
}

static void fill(struct lowering *lowering)
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

static int complain(const char *what)
{
    fprintf(stderr, "iris sim collective: %s\n", what);
    return -1;
}

int sim_lower(const struct sim_platform *platform, const struct sim_call *call,
              const struct sim_plan *plan, int hierarchical,
              struct sim_schedule *schedule_p)
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
        return complain(
            "hierarchical is for an all_reduce of full nodes, 2, 4, "
            "8 or a higher power of 2 of them");
    } else {
        add_hierarchical(&lowering, call);
    }
    schedule->num_ranks = call->ranks;
    schedule->num_steps = (size_t)call->ranks * lowering.num_steps;
    if (schedule->num_steps > MOST_STEPS) {
        return complain(
            "this takes more than 8,388,608 steps: use fewer ranks, "
            "--variant=hierarchical, or no --topology");
    }
    schedule->steps = calloc(schedule->num_steps, sizeof *schedule->steps);
    schedule->arrows =
        calloc(2 * schedule->num_steps, sizeof *schedule->arrows);
    if (schedule->steps == NULL || schedule->arrows == NULL) {
        sim_schedule_free(schedule);
        return complain("no memory");
    }
    fill(&lowering);
    *schedule_p = *schedule;
    return 0;
}
