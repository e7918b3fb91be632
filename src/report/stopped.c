/* SPDX-License-Identifier: MIT
 *
 * What is said of stopped ranks: whom they keep, or that they are all.
 */
#include "config.h"

#include "report/report.h"

#include <string.h>

#define say(report, ...) \
    iris_i_report_append((report)->cause, sizeof(report)->cause, __VA_ARGS__)

static void say_ranks(struct iris_report *report, const char *marked)
{
    iris_i_describe_ranks(report, marked, report->cause, sizeof report->cause);
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

void iris_i_report_explain_stopped(struct iris_report *report)
{
    char waiting[report->num_ranks], stopped[report->num_ranks];
    int count;

    memset(stopped, 0, sizeof stopped);
    count = mark_stopped(report, stopped);
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
    (void)iris_i_report_mark_waiting(report, waiting);
    for (int i = 0; i < report->num_ranks; i++) {
        waiting[i] = (char)(waiting[i] && !stopped[i]);
    }
    say(report, "rank %d (pid %d) is stopped, by SIGSTOP or a debugger; ",
        report->root, report->ranks[report->root].pid);
    say_ranks(report, waiting);
    say(report, " can go on no sooner than it; kill -CONT lets it");
}

void iris_i_report_explain_running(struct iris_report *report)
{
    char stopped[report->num_ranks];

    memset(stopped, 0, sizeof stopped);
    say(report, "no rank has waited for long");
    if (mark_stopped(report, stopped) > 0) {
        say(report, "; stopped, by SIGSTOP or a debugger: ");
        say_ranks(report, stopped);
    }
}
