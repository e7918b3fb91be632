/* SPDX-License-Identifier: MIT
 *
 * Why a word does not have the value that a kernel waits for. The records do
 * not name the writer. The text states their facts, and marks each conclusion
 * as a guess.
 */
#include "config.h"

#include "report/internal.h"

#include "base/base.h"

#include <string.h>

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

static int ran(const struct iris_report_rank *rank, const char *kernel)
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
static struct sent find(const struct iris_report *report, int rank,
                        const struct iris_record_wait *wait, enum which which)
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
                       (pass == 1 || !ran(&report->ranks[i], wait->name)));
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

void iris_i_explain_word(struct iris_report *report, int rank,
                         const struct iris_record_wait *wait)
{
    struct sent here = find(report, rank, wait, HERE);
    struct sent beside = find(report, rank, wait, BESIDE);
    struct sent otherwise = find(report, rank, wait, OTHERWISE);

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
