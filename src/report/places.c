/* SPDX-License-Identifier: MIT
 *
 * The source lines of waits, on this host: a line is printed only if the file
 * is the one that the process runs.
 */
#include "config.h"

#include "report/internal.h"

#include "base/base.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A process's start is known to 10 ms, and its file may be that new. */
#define SLACK_NS (50 * IRIS_NS_PER_MS)

static int64_t to_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * IRIS_NS_PER_S + time.tv_nsec;
}

/* Whether the file has not changed since the rank's process began. */
static int is_same_file(const struct iris_report_rank *rank, const char *path)
{
    long ticks = sysconf(_SC_CLK_TCK);
    struct timespec now, since_boot;
    int64_t begin_ns;
    struct stat stats;

    if (ticks <= 0 || stat(path, &stats) != 0 ||
        clock_gettime(CLOCK_REALTIME, &now) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) {
        return 0;
    }
    begin_ns = to_ns(now) - to_ns(since_boot) +
               (int64_t)(rank->start_ticks * (uint64_t)IRIS_NS_PER_S /
                         (uint64_t)ticks);
    return to_ns(stats.st_ctim) < begin_ns + SLACK_NS;
}

/* No tool reads files that another user names. */
static void find_place(const struct iris_report *report,
                       const struct iris_report_rank *rank, int64_t until_ns,
                       struct iris_record_wait *wait)
{
    const struct iris_source *source = &rank->sites[wait->site - 1];
    int64_t left_ms = (until_ns - iris_i_now_ns()) / IRIS_NS_PER_MS;

    if (left_ms > 0 && report->is_own && is_same_file(rank, source->file)) {
        iris_i_source_line(source, (int)left_ms, wait->place,
                           sizeof wait->place);
    } else {
        iris_i_source_place(source, wait->place, sizeof wait->place);
    }
    iris_i_clean(wait->place, sizeof wait->place);
}

static int is_in(const struct iris_record_wait *wait,
                 const struct iris_record_call *call)
{
    return call->id != 0 && iris_i_host_op_waits(call->op) &&
           call->begin_ns <= wait->begin_ns &&
           (call->end_ns == 0 || wait->begin_ns <= call->end_ns);
}

/* A wait for a stream is named by its call, unless calls of several threads may
 * be the one. */
static void place_call(struct iris_report_rank *rank,
                       const struct iris_record_wait *wait)
{
    struct iris_record_call *found =
        is_in(wait, &rank->finished) ? &rank->finished : NULL;
    int count = found != NULL;

    for (int i = 0; i < rank->num_open; i++) {
        if (is_in(wait, &rank->open[i])) {
            found = &rank->open[i];
            count++;
        }
    }
    if (count == 1) {
        memcpy(found->place, wait->place, sizeof found->place);
    }
}

void iris_i_report_find_places(struct iris_report *report)
{
    int64_t until_ns = iris_i_now_ns() + IRIS_LINES_MS * IRIS_NS_PER_MS;

    for (int i = 0; i < report->num_ranks; i++) {
        struct iris_report_rank *rank = &report->ranks[i];

        for (int w = 0; w < rank->num_waits; w++) {
            if (rank->waits[w].site != 0 &&
                (rank->waits_live[w] || rank->waits[w].ended)) {
                find_place(report, rank, until_ns, &rank->waits[w]);
            }
        }
        for (int w = 0; w < rank->num_host_waits; w++) {
            find_place(report, rank, until_ns, &rank->host_waits[w]);
            place_call(rank, &rank->host_waits[w]);
        }
    }
}
