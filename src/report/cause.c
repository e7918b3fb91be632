/* SPDX-License-Identifier: MIT
 *
 * The likely cause of an incident, in one sentence.
 *
 * Everything here reads a report's snapshot and writes its text; nothing waits,
 * and nothing is kept between two reports. The verdict chooses among the
 * explanations. If no rank can go on, the cause is the root of the chain of
 * waits, or their cycle. Records may be torn or hostile: an index in them is
 * checked before it is used.
 */
#include "config.h"

#include "report/internal.h"

#include "base/base.h"

#include <string.h>

/* ---------------------------------------------------------------------------
 * Why a word does not have the value that a kernel waits for. The records do
 * not name the writer. The text states their facts, and marks each conclusion
 * as a guess.
 */

/* A signal on a stream, by any rank, and its sender. */
struct sent {
    const struct iris_record_call *call; /* NULL: none */
    int by;
};

/* ---- Words for which ranks are known to have waited ---- */

static int waited_for(const struct iris_report_rank *rank, uint64_t offset)
{
    for (int i = 0; i < IRIS_REPORT_SIGNALS; i++) {
        if (rank->stream_waits[i].id != 0 &&
            rank->stream_waits[i].offset == offset) {
            return 1;
        }
    }
    for (int i = 0; i < rank->num_waits; i++) {
        if (iris_i_wait_is_in_kernel(&rank->waits[i]) &&
            rank->waits[i].offset == offset) {
            return 1;
        }
    }
    return 0;
}

static int has_run(const struct iris_report_rank *rank, const char *kernel)
{
    for (int i = 0; i < rank->num_kernels; i++) {
        if (strcmp(rank->kernels[i], kernel) == 0) {
            return 1;
        }
    }
    return 0;
}

/* ---- Signals in the records ---- */

enum which {
    HERE,      /* to this word of this rank */
    OTHERWISE, /* to the same word of a rank that has not waited for it */
    BESIDE,    /* to another word of this rank, in the same allocation, for
                * which it has not waited */
};

static int is_that(const struct iris_report *report, int rank,
                   const struct iris_record_wait *wait,
                   const struct iris_record_call *call, enum which which)
{
    int to = call->target_rank;

    if (call->id == 0 || to < 0 || to >= report->num_ranks) {
        return 0;
    }
    if (which == HERE) {
        return to == rank && call->offset == wait->offset;
    }
    if (waited_for(&report->ranks[to], call->offset) ||
        !iris_i_record_holds(wait, (int64_t)call->value)) {
        return 0;
    }
    return which == OTHERWISE
               ? to != rank && call->offset == wait->offset
               : to == rank && call->offset != wait->offset &&
                     call->offset - wait->alloc < wait->alloc_bytes;
}

/* The newest. */
static struct sent find_sent(const struct iris_report *report, int rank,
                             const struct iris_record_wait *wait,
                             enum which which)
{
    struct sent found = {.call = NULL, .by = -1};

    for (int i = 0; i < report->num_ranks; i++) {
        for (int s = 0; s < IRIS_REPORT_SIGNALS; s++) {
            const struct iris_record_call *call = &report->ranks[i].signals[s];

            if (is_that(report, rank, wait, call, which) &&
                (found.call == NULL ||
                 call->begin_ns >= found.call->begin_ns)) {
                found.call = call;
                found.by = i;
            }
        }
    }
    return found;
}

/* Whether some work of the sender's streams is not done: the signal may be
 * queued behind it. */
static int may_be_behind(const struct iris_report_rank *rank)
{
    for (int i = 0; i < rank->num_waits; i++) {
        if (iris_i_wait_counts(rank, i) &&
            iris_i_wait_is_in_kernel(&rank->waits[i])) {
            return 1;
        }
    }
    for (int i = 0; i < rank->num_streams; i++) {
        if (rank->streams[i].begun != rank->streams[i].done) {
            return 1;
        }
    }
    return 0;
}

static void explain_sent(struct iris_report *report,
                         const struct iris_record_wait *wait, struct sent sent)
{
    if (!iris_i_record_holds(wait, (int64_t)sent.call->value)) {
        iris_i_say(report,
                   "; rank %d sent it %lld; likely: a wrong value or too few",
                   sent.by, (long long)sent.call->value);
    } else if (may_be_behind(&report->ranks[sent.by])) {
        iris_i_say(
            report,
            "; rank %d has enqueued that signal; likely: behind what waits, "
            "and it has not run",
            sent.by);
    } else {
        iris_i_say(
            report,
            "; rank %d sent it that; likely: an earlier wait has used it, or "
            "it was overwritten",
            sent.by);
    }
}

/* ---- The same word on other ranks ---- */

/* Marks the holders that are not known to have waited for it. Holders that
 * probably have, because they ran the kernel too, are marked only if there are
 * no others. Returns whether there are others. */
static int mark_holders(const struct iris_report *report,
                        const struct iris_record_wait *wait, char *marked)
{
    int strangers = 0;

    for (int pass = 0; pass < 2 && strangers == 0; pass++) {
        for (int i = 0; i < report->num_ranks; i++) {
            marked[i] =
                (char)(i < 64 && (wait->held >> i & 1) &&
                       !waited_for(&report->ranks[i], wait->offset) &&
                       (pass == 1 || !has_run(&report->ranks[i], wait->name)));
            strangers += pass == 0 && marked[i];
        }
    }
    return strangers;
}

static void explain_unsent(struct iris_report *report,
                           const struct iris_record_wait *wait)
{
    char marked[report->num_ranks];
    int strangers = mark_holders(report, wait, marked);

    if (wait->seen != 0) {
        iris_i_say(report,
                   "; likely: it was written, with a wrong value or too few "
                   "times");
    } else if (memchr(marked, 1, (size_t)report->num_ranks) == NULL) {
        iris_i_say(report, "; likely: the signal is missing");
    } else {
        iris_i_say(report, "; the same word of ");
        iris_i_say_ranks(report, marked);
        iris_i_say(report,
                   strangers > 0
                       ? " does hold it; likely: it was sent to the wrong rank"
                       : " does hold it, which may be a signal of its own; "
                         "likely: the signal is missing, or was sent to the "
                         "wrong rank");
    }
}

/* The known facts about the word that a wait of `rank` is for, and a guess. */
static void explain_word(struct iris_report *report, int rank,
                         const struct iris_record_wait *wait)
{
    struct sent here = find_sent(report, rank, wait, HERE);
    struct sent beside = find_sent(report, rank, wait, BESIDE);
    struct sent otherwise = find_sent(report, rank, wait, OTHERWISE);

    if (here.call != NULL) {
        explain_sent(report, wait, here);
    } else if (beside.call != NULL) {
        iris_i_say(
            report,
            "; rank %d sent such a value to byte %llu of the same allocation; "
            "likely: one of them uses a wrong index",
            beside.by, (unsigned long long)(beside.call->offset - wait->alloc));
    } else if (otherwise.call != NULL) {
        iris_i_say(
            report,
            "; rank %d sent such a value to the same word of rank %d, which is "
            "not known to wait for it; likely: to the wrong rank",
            otherwise.by, otherwise.call->target_rank);
    } else {
        explain_unsent(report, wait);
    }
}

/* ---------------------------------------------------------------------------
 * The likely cause if no rank can go on: the root of the chain of waits, or
 * their cycle. The surest signs come first.
 */

/* Whether it waits for a word that any rank may write. */
static int is_signal(const struct iris_record_wait *wait)
{
    return wait->kind == IRIS_WAIT_KERNEL && !iris_i_wait_is_collective(wait);
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
 * if they form a cycle, and marks it. */
static int follow_waits(const struct iris_report *report, int rank,
                        char *marked)
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

/* Names the ranks whose waits lead to this rank's. */
static void say_followers(struct iris_report *report, int rank,
                          const char *hung)
{
    char marked[report->num_ranks], behind[report->num_ranks];
    int count = 0;

    for (int i = 0; i < report->num_ranks; i++) {
        behind[i] = (char)(hung[i] && i != rank &&
                           follow_waits(report, i, marked) == rank);
        count += behind[i];
    }
    if (count > 0) {
        iris_i_say_ranks(report, behind);
        iris_i_say(report,
                   " wait%s for rank %d, and no rank is left to send its "
                   "signal. ",
                   count == 1 ? "s" : "", rank);
    }
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
    } else {
        say_followers(report, first, hung);
    }
    say_signal(report, first, iris_i_find_wait(report, first, is_signal));
    explain_word(report, first, iris_i_find_wait(report, first, is_signal));
    return 1;
}

static void explain_cycle(struct iris_report *report, const char *hung)
{
    char marked[report->num_ranks];
    int first = 0, root;

    while (first < report->num_ranks - 1 &&
           !(hung[first] && iris_i_find_wait(report, first, NULL) != NULL)) {
        first++;
    }
    root = follow_waits(report, first, marked);
    if (root < 0) {
        iris_i_say(report, "a cycle: ");
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

/* Workgroups repeat atomic operations: until a deadline ended them if `ended`,
 * else for a long time. 0: there are no such workgroups. */
static int explain_spin(struct iris_report *report, int ended)
{
    for (int i = 0; i < report->num_ranks; i++) {
        const struct iris_report_rank *rank = &report->ranks[i];

        for (int w = 0; w < rank->num_waits; w++) {
            const struct iris_record_wait *wait = &rank->waits[w];

            if (wait->kind != IRIS_WAIT_SPIN || (ended && !wait->ended) ||
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
        !explain_spin(report, 1) && !explain_missing(report) &&
        !explain_signals(report, hung)) {
        explain_cycle(report, hung);
    }
}

/* No rank that Iris knows can go on. Iris knows nothing about other threads.
 * `hung` says for each rank whether it cannot go on. */
static void explain_hung(struct iris_report *report, const char *hung)
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

/* ---------------------------------------------------------------------------
 * The likely cause in one sentence, chosen by the verdict.
 */

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

    if (explain_spin(report, 0)) {
        return;
    }
    (void)iris_i_mark_waiting(report, waiting);
    for (int i = 0; i < report->num_ranks && late < 0; i++) {
        late = report->ranks[i].is_free && !waiting[i] ? i : -1;
    }
    for (int i = 0; i < report->num_ranks && late < 0; i++) {
        late = report->ranks[i].is_free ? i : -1;
    }
    if (late >= 0) {
        report->root = late;
    }
    if (late >= 0 && !waiting[late] &&
        iris_i_find_wait(report, late, iris_i_wait_is_of_gpu) == NULL) {
        iris_i_say_doing(report, late);
        iris_i_say(report, "; ");
    }
    iris_i_say_ranks(report, waiting);
    iris_i_say(report, " wait%s for an event that may still happen",
               iris_i_mark_waiting(report, waiting) == 1 ? "s" : "");
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
        explain_hung(report, hung);
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
