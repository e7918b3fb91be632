/* SPDX-License-Identifier: MIT
 *
 * The table that follows a job: a line for each rank, and the verdict above.
 */
#include "config.h"

#include "top.h"

#include "base/host_wait.h"
#include "report/analyse.h"
#include "report/words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVERY_MS 1000
#define DOING 200

/* "1.5M": at most 5 letters. */
static void print_bytes(double bytes)
{
    static const char units[] = "BKMGTP";
    size_t unit = 0;

    while (bytes >= 1000 && unit + 2 < sizeof units) {
        bytes /= 1024;
        unit++;
    }
    printf(" %*.*f%c", 6, unit == 0 ? 0 : 1, bytes, units[unit]);
}

static uint64_t sent(const struct iris_report *report, int rank, int *peer_p)
{
    const struct iris_report_rank *r = &report->ranks[rank];
    uint64_t all = 0, most = 0;

    *peer_p = -1;
    for (int i = 0; i < IRIS_RECORD_PEERS; i++) {
        all += r->peer_bytes[i];
        if (r->peer_bytes[i] > most) {
            most = r->peer_bytes[i];
            *peer_p = i;
        }
    }
    return all;
}

static void print_rank(const struct iris_report *report,
                       const struct iris_report *before, int i)
{
    const struct iris_report_rank *rank = &report->ranks[i];
    double seconds = (double)(report->now_ns - before->now_ns) / 1e9;
    char doing[DOING];
    int peer, waits = 0;
    uint64_t now = sent(report, i, &peer), then = sent(before, i, &peer);

    for (int w = 0; w < rank->num_waits; w++) {
        waits += rank->waits_live[w] || rank->waits[w].ended;
    }
    iris_i_describe_doing(report, i, doing, sizeof doing);
    printf("%4d %7d %10llu %9.0f", i, rank->pid,
           (unsigned long long)rank->host_calls,
           (double)(rank->host_calls - before->ranks[i].host_calls) / seconds);
    print_bytes((double)(now - then) / seconds);
    if (peer >= 0) {
        printf(" %4d", peer);
    } else {
        printf("    -");
    }
    print_bytes((double)rank->heap_used);
    printf(" %5d  %s\n", waits, doing);
}

static void print_table(const struct iris_report *report,
                        const struct iris_report *before)
{
    if (isatty(STDOUT_FILENO)) {
        printf("\033[H\033[J");
    }
    printf("%s: %s\n", iris_i_verdict_name(report->verdict), report->cause);
    printf("%4s %7s %10s %9s %7s %4s %7s %5s  %s\n", "RANK", "PID", "CALLS",
           "CALLS/S", "BYTES/S", "TO", "HEAP", "WAITS", "DOING");
    for (int i = 0; i < report->num_ranks; i++) {
        print_rank(report, before, i);
    }
    printf("\n");
    fflush(stdout);
}

/* The segment stays readable for as long as it is open here. */
static int is_over(const struct iris_report *report)
{
    for (int i = 0; i < report->num_ranks; i++) {
        if (!iris_i_rank_has_ended(&report->ranks[i])) {
            return 0;
        }
    }
    return 1;
}

int top_live(int fd)
{
    struct iris_report *before, *report;
    int over = 0, lost = 0;

    if (iris_i_report_read(fd, &before) != IRIS_OK) {
        fprintf(stderr, "iris-top: %s\n", iris_last_error());
        return 1;
    }
    while (!over) {
        iris_i_wait_apart(EVERY_MS);
        if (iris_i_report_read(fd, &report) != IRIS_OK) {
            fprintf(stderr, "iris-top: %s\n", iris_last_error());
            free(before);
            return 1;
        }
        iris_i_report_judge(report, before);
        print_table(report, before);
        over = is_over(report) || ferror(stdout);
        lost = report->verdict >= IRIS_VERDICT_STOPPED;
        free(before);
        before = report;
    }
    free(before);
    return lost ? 3 : 0;
}
