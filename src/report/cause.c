/* SPDX-License-Identifier: MIT
 *
 * The likely cause, in one sentence: the root of who waits for whom, or its
 * circle. The surest signs come first.
 */
#include "config.h"

#include "report/report.h"

#include "base/hooks.h"

#include <string.h>

#define DOING 400

#define say(report, ...) \
    iris_i_report_append((report)->cause, sizeof(report)->cause, __VA_ARGS__)

/* "ranks 0, 2" of those that are marked. */
static void say_ranks(struct iris_report *report, const char *marked)
{
    int count = 0, said = 0;

    for (int i = 0; i < report->num_ranks; i++) {
        count += marked[i] != 0;
    }
    say(report, "rank%s", count == 1 ? "" : "s");
    for (int i = 0; i < report->num_ranks && said < 8; i++) {
        if (marked[i]) {
            say(report, "%s%d", said++ == 0 ? " " : ", ", i);
        }
    }
    if (count > said) {
        say(report, " and %d more", count - said);
    }
}

/* The first wait of a rank that counts and is of that sort; NULL: none. */
static const struct iris_record_wait *
find_wait(const struct iris_report *report, int rank,
          int (*sort)(const struct iris_record_wait *wait))
{
    const struct iris_report_rank *r = &report->ranks[rank];

    for (int i = 0; i < r->num_waits; i++) {
        if (iris_i_wait_counts(r, i) && sort(&r->waits[i])) {
            return &r->waits[i];
        }
    }
    return NULL;
}

static int is_any(const struct iris_record_wait *wait)
{
    return wait->kind != IRIS_WAIT_SPIN;
}

static int is_spin(const struct iris_record_wait *wait)
{
    return wait->kind == IRIS_WAIT_SPIN;
}

/* For a word that anybody may write. */
static int is_signal(const struct iris_record_wait *wait)
{
    return wait->kind == IRIS_WAIT_KERNEL && !iris_i_wait_is_collective(wait);
}

static int is_known(const struct iris_record_wait *wait)
{
    return wait->num_expected > 0;
}

static int mark_waiting(const struct iris_report *report, char *marked)
{
    int count = 0;

    for (int i = 0; i < report->num_ranks; i++) {
        marked[i] = !iris_i_report_is_lost(&report->ranks[i]) &&
                    find_wait(report, i, is_any) != NULL;
        count += marked[i];
    }
    return count;
}

/* ---- Ranks that are no more ---- */

static void explain_lost(struct iris_report *report)
{
    char waiting[report->num_ranks];
    int lost = -1, left = -1;

    for (int i = report->num_ranks - 1; i >= 0; i--) {
        if (report->ranks[i].state == IRIS_RANK_LEFT) {
            left = i;
        } else if (iris_i_report_is_lost(&report->ranks[i])) {
            lost = i;
        }
    }
    report->root = lost >= 0 ? lost : left;
    if (lost >= 0) {
        say(report, "rank %d (pid %d) died", lost, report->ranks[lost].pid);
    } else {
        say(report, "rank %d (pid %d) left the job after an error", left,
            report->ranks[left].pid);
    }
    if (report->ranks[report->root].calls > 0) {
        say(report, " after its %s, collective call %llu",
            report->ranks[report->root].call,
            (unsigned long long)report->ranks[report->root].calls);
    }
    if (mark_waiting(report, waiting) > 0) {
        say(report, "; ");
        say_ranks(report, waiting);
        say(report, " cannot go on without it");
    }
}

/* The first stopped rank becomes the root; how many there are. */
static int mark_stopped(struct iris_report *report, char *marked)
{
    int count = 0;

    for (int i = report->num_ranks - 1; i >= 0; i--) {
        const struct iris_report_rank *rank = &report->ranks[i];

        marked[i] = (char)(iris_i_report_is_stopped(rank) &&
                           !iris_i_report_has_ended(rank));
        count += marked[i];
        report->root = marked[i] ? i : report->root;
    }
    return count;
}

static int count_live(const struct iris_report *report)
{
    int count = 0;

    for (int i = 0; i < report->num_ranks; i++) {
        count += !iris_i_report_has_ended(&report->ranks[i]);
    }
    return count;
}

static void explain_stopped(struct iris_report *report)
{
    char waiting[report->num_ranks], stopped[report->num_ranks];
    int count = mark_stopped(report, stopped);

    if (count == count_live(report)) {
        say_ranks(report, stopped);
        say(report,
            " %s stopped, by SIGSTOP or a debugger%s; kill -CONT lets "
            "%s go on",
            count == 1 ? "is" : "are",
            count == 1 ? "" : ": all ranks that have not ended",
            count == 1 ? "it" : "them");
        return;
    }
    (void)mark_waiting(report, waiting);
    for (int i = 0; i < report->num_ranks; i++) {
        waiting[i] = (char)(waiting[i] && !stopped[i]);
    }
    say(report, "rank %d (pid %d) is stopped, by SIGSTOP or a debugger; ",
        report->root, report->ranks[report->root].pid);
    say_ranks(report, waiting);
    say(report, " can go on no sooner than it; kill -CONT lets it");
}

/* ---- Nobody can go on ---- */

/* All workgroups that have begun wait, and others never begin. */
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
        say(report,
            "%u of %u workgroups of kernel %s on rank %d never started, and "
            "those that did wait: workgroups that wait for each other must "
            "all run at once, and this device runs %d",
            wait->grid - wait->begun, wait->grid, wait->name, rank, r->num_cus);
        return 1;
    }
    return 0;
}

/* Two ranks in different collectives of the library. */
static int explain_mismatch(struct iris_report *report)
{
    const struct iris_record_wait *first = NULL;
    int of = -1;

    for (int i = 0; i < report->num_ranks; i++) {
        const struct iris_record_wait *wait =
            find_wait(report, i, iris_i_wait_is_collective);

        if (wait != NULL && first == NULL) {
            first = wait;
            of = i;
        } else if (wait != NULL && strcmp(wait->name, first->name) != 0) {
            report->root = of;
            say(report,
                "rank %d is in %s while rank %d is in %s: all members make "
                "the same collective calls in the same order",
                of, first->name, i, wait->name);
            return 1;
        }
    }
    return 0;
}

/* Members of the library's kernels wait, and other ranks do something else that
 * waits, too. */
static int explain_missing(struct iris_report *report)
{
    char in[report->num_ranks], doing[DOING];
    const struct iris_record_wait *wait = NULL;
    int other = -1;

    for (int i = report->num_ranks - 1; i >= 0; i--) {
        const struct iris_record_wait *w =
            find_wait(report, i, iris_i_wait_is_collective);

        in[i] = w != NULL;
        wait = w != NULL ? w : wait;
        if (w == NULL && report->ranks[i].state != IRIS_RANK_FINALIZED) {
            other = i;
        }
    }
    if (wait != NULL && wait->num_expected > 0) {
        other = in[wait->expected[0]] ? other : wait->expected[0];
    }
    if (wait == NULL || other < 0 ||
        find_wait(report, other, is_signal) != NULL) {
        return 0;
    }
    report->root = other;
    iris_i_describe_doing(report, other, doing, sizeof doing);
    say(report, "rank %d has not come to %s, unlike ", other, wait->name);
    say_ranks(report, in);
    say(report, ": rank %d %s", other, doing);
    return 1;
}

/* A signal on a stream, of any rank, to that word; its newest to `to`, or if
 * that is -1 to any other rank than `not_to`. */
static const struct iris_record_call *
find_sent(const struct iris_report *report, uint64_t offset, int to, int not_to)
{
    const struct iris_record_call *found = NULL;

    for (int i = 0; i < report->num_ranks; i++) {
        for (int s = 0; s < IRIS_REPORT_SIGNALS; s++) {
            const struct iris_record_call *call = &report->ranks[i].signals[s];

            if (call->id == 0 || call->offset != offset ||
                (to >= 0 ? call->target_rank != to
                         : call->target_rank == not_to)) {
                continue;
            }
            if (found == NULL || call->begin_ns >= found->begin_ns) {
                found = call;
            }
        }
    }
    return found;
}

static int sender_of(const struct iris_report *report,
                     const struct iris_record_call *call)
{
    for (int i = 0; i < report->num_ranks; i++) {
        const struct iris_record_call *first = report->ranks[i].signals;

        if (call >= first && call < first + IRIS_REPORT_SIGNALS) {
            return i;
        }
    }
    return -1;
}

/* What is known of the word that is waited for. */
static void say_why_not(struct iris_report *report, int rank,
                        const struct iris_record_wait *wait)
{
    const struct iris_record_call *sent =
        find_sent(report, wait->offset, rank, -1);
    const struct iris_record_call *astray =
        find_sent(report, wait->offset, -1, rank);

    if (sent != NULL &&
        iris_i_record_holds(wait->cmp, (int64_t)sent->value, wait->value)) {
        say(report,
            "; rank %d has enqueued that signal, behind what waits: it has "
            "not run",
            sender_of(report, sent));
    } else if (sent != NULL) {
        say(report, "; rank %d sent it %lld: a wrong value or too few",
            sender_of(report, sent), (long long)sent->value);
    } else if (astray != NULL) {
        say(report, "; rank %d sent it to rank %d instead: the wrong rank",
            sender_of(report, astray), astray->target_rank);
    } else if (wait->held_on >= 0) {
        say(report,
            "; the same word of rank %d does hold it: was it sent to the "
            "wrong rank?",
            wait->held_on);
    } else if (wait->seen != 0) {
        say(report, "; it was written, with a wrong value or too few times");
    } else {
        say(report, "; nobody has written it: the signal is missing");
    }
}

static void say_signal(struct iris_report *report, int rank,
                       const struct iris_record_wait *wait)
{
    char text[DOING];

    report->root = rank;
    iris_i_describe_wait(wait, text, sizeof text);
    say(report, "rank %d: %s", rank, text);
}

/* Along waits whose ranks are known, from `rank` to the last; -1 there if it is
 * a circle, which is marked. */
static int follow(const struct iris_report *report, int rank, char *marked)
{
    memset(marked, 0, (size_t)report->num_ranks);
    while (!marked[rank]) {
        const struct iris_record_wait *wait = find_wait(report, rank, is_known);

        if (wait == NULL || find_wait(report, rank, is_signal) != NULL ||
            wait->expected[0] < 0 || wait->expected[0] >= report->num_ranks) {
            return rank;
        }
        marked[rank] = 1;
        rank = wait->expected[0];
    }
    return -1;
}

/* Whose kernels wait for signals that nobody is left to send. */
static int explain_signals(struct iris_report *report, const char *hung)
{
    char waiting[report->num_ranks];
    int count = 0, present = 0, first = -1;

    for (int i = report->num_ranks - 1; i >= 0; i--) {
        present += report->ranks[i].state != IRIS_RANK_FINALIZED;
        waiting[i] = hung[i] && find_wait(report, i, is_signal) != NULL;
        count += waiting[i];
        first = waiting[i] ? i : first;
    }
    if (count == 0) {
        return 0;
    }
    if (count > 1) {
        say(report, "%s", count == present ? "a circle: " : "");
        say_ranks(report, waiting);
        say(report, count == present
                        ? " wait for signals of each other. "
                        : " wait for signals, and nobody else is left to send "
                          "them. ");
    }
    say_signal(report, first, find_wait(report, first, is_signal));
    say_why_not(report, first, find_wait(report, first, is_signal));
    return 1;
}

static void explain_circle(struct iris_report *report, const char *hung)
{
    char marked[report->num_ranks], doing[DOING];
    int first = 0, root;

    while (first < report->num_ranks - 1 &&
           !(hung[first] && find_wait(report, first, is_any) != NULL)) {
        first++;
    }
    root = follow(report, first, marked);
    if (root < 0) {
        say(report, "a circle: ");
        say_ranks(report, marked);
        say(report, " wait for each other; rank %d ", first);
        iris_i_describe_doing(report, first, doing, sizeof doing);
        say(report, "%s", doing);
        report->root = first;
        return;
    }
    iris_i_describe_doing(report, root, doing, sizeof doing);
    say(report, "rank %d %s", root, doing);
    if (root != first) {
        say(report, ", and rank %d waits for it", first);
    }
    report->root = root;
}

/* Workgroups that repeat atomic operations. */
static int explain_spin(struct iris_report *report, int ended)
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
            say(report, ": a lock that its owner has not released, or a "
                        "flag that nobody sets?");
            return 1;
        }
    }
    return 0;
}

static void explain_hung(struct iris_report *report, const char *hung)
{
    for (int i = 0; i < report->num_ranks; i++) {
        if (hung[i] && explain_residency(report, i)) {
            return;
        }
    }
    if (!explain_mismatch(report) && !explain_spin(report, 1) &&
        !explain_missing(report) && !explain_signals(report, hung)) {
        explain_circle(report, hung);
    }
}

/* ---- Somebody may still go on ---- */

static void explain_late(struct iris_report *report)
{
    char waiting[report->num_ranks], doing[DOING];
    int late = -1;

    if (explain_spin(report, 0)) {
        return;
    }
    (void)mark_waiting(report, waiting);
    for (int i = 0; i < report->num_ranks && late < 0; i++) {
        late = report->ranks[i].is_free && !waiting[i] ? i : -1;
    }
    for (int i = 0; i < report->num_ranks && late < 0; i++) {
        late = report->ranks[i].is_free ? i : -1;
    }
    say_ranks(report, waiting);
    say(report, " wait%s for what may still come",
        mark_waiting(report, waiting) == 1 ? "s" : "");
    if (late >= 0) {
        iris_i_describe_doing(report, late, doing, sizeof doing);
        say(report, ": rank %d %s", late, doing);
        report->root = late;
    }
}

static void explain_running(struct iris_report *report)
{
    char stopped[report->num_ranks];

    say(report, "no rank has waited for long");
    if (mark_stopped(report, stopped) > 0) {
        say(report, "; stopped, by SIGSTOP or a debugger: ");
        say_ranks(report, stopped);
    }
}

void iris_i_report_explain(struct iris_report *report, const char *hung)
{
    switch (report->verdict) {
    case IRIS_VERDICT_LOST:
        explain_lost(report);
        break;
    case IRIS_VERDICT_STOPPED:
        explain_stopped(report);
        break;
    case IRIS_VERDICT_HUNG:
        explain_hung(report, hung);
        break;
    case IRIS_VERDICT_LATE:
        explain_late(report);
        break;
    case IRIS_VERDICT_RUNNING:
        explain_running(report);
        break;
    }
}
