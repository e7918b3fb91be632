/* SPDX-License-Identifier: MIT
 *
 * The likely cause in one sentence, chosen by the verdict.
 */
#include "config.h"

#include "report/internal.h"

#include "base/base.h"

/* ---- Lost ranks ---- */

static void explain_lost(struct iris_report *report)
{
    char waiting[report->num_ranks];
    int lost = -1, left = -1;

    for (int i = report->num_ranks - 1; i >= 0; i--) {
        if (report->ranks[i].state == IRIS_RANK_LEFT) {
            left = i;
        } else if (iris_i_rank_is_lost(&report->ranks[i])) {
            lost = i;
        }
    }
    report->root = lost >= 0 ? lost : left;
    if (lost >= 0) {
        iris_i_say(report, "rank %d (pid %d) died", lost,
                   report->ranks[lost].pid);
    } else {
        iris_i_say(report, "rank %d (pid %d) left the job%s", left,
                   report->ranks[left].pid,
                   report->ranks[left].reason[0] == '\0' ? " after an error"
                                                         : "");
    }
    if (report->ranks[report->root].calls > 0) {
        iris_i_say(report, " after its %s, collective call %llu",
                   report->ranks[report->root].call,
                   (unsigned long long)report->ranks[report->root].calls);
    }
    if (lost < 0 && report->ranks[left].reason[0] != '\0') {
        iris_i_say(report, ": %s", report->ranks[left].reason);
    }
    if (iris_i_mark_waiting(report, waiting) > 0) {
        iris_i_say(report, "; ");
        iris_i_say_ranks(report, waiting);
        iris_i_say(report, " cannot go on without it");
    }
}

/* ---- Stopped ranks ---- */

/* Makes the first stopped rank the root; returns the number of stopped
 * ranks. */
static int mark_stopped(struct iris_report *report, char *marked)
{
    int count = 0;

    for (int i = report->num_ranks - 1; i >= 0; i--) {
        const struct iris_report_rank *rank = &report->ranks[i];

        marked[i] = (char)(iris_i_rank_is_stopped(rank) &&
                           !iris_i_rank_has_ended(rank));
        count += marked[i];
        report->root = marked[i] ? i : report->root;
    }
    return count;
}

static int count_live(const struct iris_report *report)
{
    int count = 0;

    for (int i = 0; i < report->num_ranks; i++) {
        count += !iris_i_rank_has_ended(&report->ranks[i]);
    }
    return count;
}

static void explain_stopped(struct iris_report *report)
{
    char waiting[report->num_ranks], stopped[report->num_ranks];
    int count = mark_stopped(report, stopped);

    if (count == count_live(report)) {
        iris_i_say_ranks(report, stopped);
        iris_i_say(report,
                   " %s stopped, by SIGSTOP or a debugger%s; kill -CONT lets "
                   "%s go on",
                   count == 1 ? "is" : "are",
                   count == 1 ? "" : ": all ranks that have not ended",
                   count == 1 ? "it" : "them");
        return;
    }
    (void)iris_i_mark_waiting(report, waiting);
    for (int i = 0; i < report->num_ranks; i++) {
        waiting[i] = (char)(waiting[i] && !stopped[i]);
    }
    iris_i_say(report,
               "rank %d (pid %d) is stopped, by SIGSTOP or a debugger; ",
               report->root, report->ranks[report->root].pid);
    iris_i_say_ranks(report, waiting);
    iris_i_say(report, " can go on no sooner than it; kill -CONT lets it");
}

static void explain_running(struct iris_report *report)
{
    char stopped[report->num_ranks];

    iris_i_say(report, "no rank has waited for long");
    if (mark_stopped(report, stopped) > 0) {
        iris_i_say(report, "; stopped, by SIGSTOP or a debugger: ");
        iris_i_say_ranks(report, stopped);
    }
}

/* ---- Some rank may still go on ---- */

/* Adds the known facts about kernels that may go on. */
static void say_gpu(struct iris_report *report)
{
    char text[400];

    for (int i = 0; i < report->num_ranks; i++) {
        const struct iris_record_wait *wait =
            iris_i_find_wait(report, i, iris_i_wait_is_of_gpu);

        if (wait != NULL && !iris_i_rank_is_lost(&report->ranks[i])) {
            iris_i_describe_wait(wait, text, sizeof text);
            iris_i_say(report,
                       "; rank %d: %s (of its GPU's workgroups, only this one "
                       "is known)",
                       i, text);
            return;
        }
    }
}

static void explain_late(struct iris_report *report)
{
    char waiting[report->num_ranks];
    int late = -1;

    if (iris_i_explain_spin(report, 0)) {
        return;
    }
    (void)iris_i_mark_waiting(report, waiting);
    for (int i = 0; i < report->num_ranks && late < 0; i++) {
        late = report->ranks[i].is_free && !waiting[i] ? i : -1;
    }
    for (int i = 0; i < report->num_ranks && late < 0; i++) {
        late = report->ranks[i].is_free ? i : -1;
    }
    iris_i_say_ranks(report, waiting);
    iris_i_say(report, " wait%s for an event that may still happen",
               iris_i_mark_waiting(report, waiting) == 1 ? "s" : "");
    if (late >= 0) {
        report->root = late;
    }
    if (late >= 0 &&
        iris_i_find_wait(report, late, iris_i_wait_is_of_gpu) == NULL) {
        iris_i_say(report, ": ");
        iris_i_say_doing(report, late);
    }
    say_gpu(report);
}

void iris_i_explain(struct iris_report *report, const char *hung)
{
    switch (report->verdict) {
    case IRIS_VERDICT_LOST:
        explain_lost(report);
        break;
    case IRIS_VERDICT_STOPPED:
        explain_stopped(report);
        break;
    case IRIS_VERDICT_HUNG:
        iris_i_explain_hung(report, hung);
        break;
    case IRIS_VERDICT_MISMATCH: /* the rank that met it has it in its message */
        break;
    case IRIS_VERDICT_LATE:
        explain_late(report);
        break;
    case IRIS_VERDICT_RUNNING:
        explain_running(report);
        break;
    }
}
