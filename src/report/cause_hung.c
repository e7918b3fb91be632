/* SPDX-License-Identifier: MIT
 *
 * The likely cause if no rank can go on: the root of the chain of waits, or
 * their circle. The surest signs come first.
 */
#include "config.h"

#include "report/internal.h"

#include "base/base.h"

#include <string.h>

static int is_spin(const struct iris_record_wait *wait)
{
    return wait->kind == IRIS_WAIT_SPIN;
}

/* Whether it waits for a word that any rank may write. */
static int is_signal(const struct iris_record_wait *wait)
{
    return wait->kind == IRIS_WAIT_KERNEL && !iris_i_wait_is_collective(wait);
}

/* Every wait except those that repeat atomic operations. */
static int is_any(const struct iris_record_wait *wait)
{
    return !is_spin(wait);
}

static int is_known(const struct iris_record_wait *wait)
{
    return wait->num_expected > 0;
}

/* All workgroups that have begun wait, and the others never begin. */
static int explain_residency(struct iris_report *report, int rank)
{
    const struct iris_report_rank *r = &report->ranks[rank];

    for (int i = 0; i < r->num_waits; i++) {
        const struct iris_record_wait *wait = &r->waits[i];

        if (!iris_i_wait_counts(r, i) || !iris_i_wait_is_in_kernel(wait) ||
            wait->begun == 0 || wait->begun >= wait->grid) {
            continue;
        }
        report->root = rank;
        iris_i_say(
            report,
            "%u of %u workgroups of kernel %s on rank %d never started, and "
            "those that did wait: workgroups that wait for each other must "
            "all run at once, and this device runs %d",
            wait->grid - wait->begun, wait->grid, wait->name, rank, r->num_cus);
        return 1;
    }
    return 0;
}

/* Whether the rank is in the group of that wait, as far as known. */
static int is_member(const struct iris_record_wait *wait, int rank)
{
    if (wait->group < 0 || wait->num_members > IRIS_RECORD_EXPECTED) {
        return 1;
    }
    for (uint32_t i = 0; i < wait->num_members; i++) {
        if (wait->members[i] == rank) {
            return 1;
        }
    }
    return 0;
}

static void say_call(struct iris_report *report,
                     const struct iris_record_wait *wait)
{
    iris_i_say(report, "%s", wait->name);
    iris_i_describe_group(wait, report->cause, sizeof report->cause);
}

/* "rank 0 is in iris_barrier of group 1 (ranks 0, 1) while rank 1 is in ..." */
static void say_both(struct iris_report *report, int rank,
                     const struct iris_record_wait *wait, int other,
                     const struct iris_record_wait *others)
{
    report->root = rank;
    iris_i_say(report, "rank %d is in ", rank);
    say_call(report, wait);
    iris_i_say(report, " while rank %d is in ", other);
    say_call(report, others);
    if (wait->group != others->group &&
        (wait->group == 0 || others->group == 0)) {
        iris_i_say(report, " (rank %d's is of all ranks)",
                   wait->group == 0 ? rank : other);
    }
}

/* Two members of a group are in different collectives of the library. */
static int explain_mismatch(struct iris_report *report)
{
    const struct iris_record_wait *first = NULL;
    int of = -1;

    for (int i = 0; i < report->num_ranks; i++) {
        const struct iris_record_wait *wait =
            iris_i_find_wait(report, i, iris_i_wait_is_collective);

        if (wait != NULL && first == NULL) {
            first = wait;
            of = i;
        } else if (wait != NULL && strcmp(wait->name, first->name) != 0 &&
                   is_member(first, i) && is_member(wait, of)) {
            say_both(report, of, first, i, wait);
            iris_i_say(report,
                       ": all members make the same collective calls in the "
                       "same order");
            return 1;
        }
    }
    return 0;
}

static int knows_group(const struct iris_record_wait *wait)
{
    return wait->group >= 0;
}

/* Two ranks that belong to both of two groups wait in calls of different
 * groups. */
static int explain_groups(struct iris_report *report)
{
    for (int i = 0; i < report->num_ranks; i++) {
        const struct iris_record_wait *wait =
            iris_i_find_wait(report, i, knows_group);

        for (int j = i + 1; wait != NULL && j < report->num_ranks; j++) {
            const struct iris_record_wait *other =
                iris_i_find_wait(report, j, knows_group);

            if (other == NULL || other->group == wait->group ||
                strcmp(other->name, wait->name) != 0 || !is_member(wait, j) ||
                !is_member(other, i)) {
                continue;
            }
            say_both(report, i, wait, j, other);
            iris_i_say(report,
                       ": both are members of both groups, and call in "
                       "different orders; likely: one of them passes the "
                       "wrong group");
            return 1;
        }
    }
    return 0;
}

/* Members wait in the library's kernels, and other ranks wait elsewhere. */
static int explain_missing(struct iris_report *report)
{
    char in[report->num_ranks];
    const struct iris_record_wait *wait = NULL;
    int other = -1;

    for (int i = report->num_ranks - 1; i >= 0; i--) {
        const struct iris_record_wait *w =
            iris_i_find_wait(report, i, iris_i_wait_is_collective);

        in[i] = w != NULL;
        wait = w != NULL ? w : wait;
    }
    for (int i = report->num_ranks - 1; i >= 0 && wait != NULL; i--) {
        if (!in[i] && is_member(wait, i) &&
            report->ranks[i].state != IRIS_RANK_FINALIZED) {
            other = i;
        }
    }
    if (wait != NULL && wait->num_expected > 0 && wait->expected[0] >= 0 &&
        wait->expected[0] < report->num_ranks && !in[wait->expected[0]]) {
        other = wait->expected[0];
    }
    if (wait == NULL || other < 0 ||
        iris_i_find_wait(report, other, is_signal) != NULL) {
        return 0;
    }
    report->root = other;
    iris_i_say(report, "rank %d has not come to ", other);
    say_call(report, wait);
    iris_i_say(report, ", unlike ");
    iris_i_say_ranks(report, in);
    iris_i_say(report, ": ");
    iris_i_say_doing(report, other);
    return 1;
}

static void say_signal(struct iris_report *report, int rank,
                       const struct iris_record_wait *wait)
{
    char text[400];

    report->root = rank;
    iris_i_describe_wait(wait, text, sizeof text);
    iris_i_say(report, "rank %d: %s", rank, text);
}

/* Follows waits whose ranks are known, from `rank` to the last one. Returns -1
 * if they form a circle, and marks it. */
static int follow(const struct iris_report *report, int rank, char *marked)
{
    memset(marked, 0, (size_t)report->num_ranks);
    while (!marked[rank]) {
        const struct iris_record_wait *wait =
            iris_i_find_wait(report, rank, is_known);

        if (wait == NULL || iris_i_find_wait(report, rank, is_signal) != NULL ||
            wait->expected[0] < 0 || wait->expected[0] >= report->num_ranks) {
            return rank;
        }
        marked[rank] = 1;
        rank = wait->expected[0];
    }
    return -1;
}

/* Kernels wait for signals, and no rank remains that could send them. */
static int explain_signals(struct iris_report *report, const char *hung)
{
    char waiting[report->num_ranks];
    int count = 0, present = 0, first = -1;

    for (int i = report->num_ranks - 1; i >= 0; i--) {
        present += report->ranks[i].state != IRIS_RANK_FINALIZED;
        waiting[i] = hung[i] && iris_i_find_wait(report, i, is_signal) != NULL;
        count += waiting[i];
        first = waiting[i] ? i : first;
    }
    if (count == 0) {
        return 0;
    }
    if (count > 1) {
        iris_i_say_ranks(report, waiting);
        iris_i_say(
            report,
            " wait for signals, and no other rank is left to send them%s. ",
            count == present ? "; likely: each other's" : "");
    }
    say_signal(report, first, iris_i_find_wait(report, first, is_signal));
    iris_i_explain_word(report, first,
                        iris_i_find_wait(report, first, is_signal));
    return 1;
}

static void explain_circle(struct iris_report *report, const char *hung)
{
    char marked[report->num_ranks];
    int first = 0, root;

    while (first < report->num_ranks - 1 &&
           !(hung[first] && iris_i_find_wait(report, first, is_any) != NULL)) {
        first++;
    }
    root = follow(report, first, marked);
    if (root < 0) {
        iris_i_say(report, "a circle: ");
        iris_i_say_ranks(report, marked);
        iris_i_say(report, " wait for each other; ");
        iris_i_say_doing(report, first);
        report->root = first;
        return;
    }
    iris_i_say_doing(report, root);
    if (root != first) {
        iris_i_say(report, ", and rank %d waits for it", first);
    }
    report->root = root;
}

/* Workgroups repeat atomic operations. */
int iris_i_explain_spin(struct iris_report *report, int ended)
{
    for (int i = 0; i < report->num_ranks; i++) {
        const struct iris_report_rank *rank = &report->ranks[i];

        for (int w = 0; w < rank->num_waits; w++) {
            const struct iris_record_wait *wait = &rank->waits[w];

            if (!is_spin(wait) || (ended && !wait->ended) ||
                (!ended && wait->update_ns - wait->begin_ns < report->old_ns)) {
                continue;
            }
            say_signal(report, i, wait);
            iris_i_say(report,
                       "; likely: a lock that is not released (its word does "
                       "not tell the owner), or a flag that no rank sets");
            return 1;
        }
    }
    return 0;
}

static void explain_waits(struct iris_report *report, const char *hung)
{
    for (int i = 0; i < report->num_ranks; i++) {
        if (hung[i] && explain_residency(report, i)) {
            return;
        }
    }
    if (!explain_groups(report) && !explain_mismatch(report) &&
        !iris_i_explain_spin(report, 1) && !explain_missing(report) &&
        !explain_signals(report, hung)) {
        explain_circle(report, hung);
    }
}

/* No rank that Iris knows can go on. Iris knows nothing about other threads. */
void iris_i_explain_hung(struct iris_report *report, const char *hung)
{
    explain_waits(report, hung);
    for (int i = 0; i < report->num_ranks; i++) {
        if (iris_i_find_wait(report, i, iris_i_wait_is_of_gpu) != NULL) {
            iris_i_say(report,
                       "; not certain: of the workgroups on rank %d's GPU only "
                       "one that waits is known",
                       i);
            return;
        }
    }
    for (int i = 0; i < report->num_ranks; i++) {
        int helpers = report->ranks[i].helpers;

        if (helpers > 0 && !iris_i_rank_has_ended(&report->ranks[i])) {
            iris_i_say(
                report,
                "; not certain: the process of rank %d has %d other thread%s, "
                "which may still send",
                i, helpers, helpers == 1 ? "" : "s");
            return;
        }
    }
}
