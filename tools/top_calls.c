/* SPDX-License-Identifier: MIT
 *
 * The host calls that each rank's record has, of dead ranks, too.
 */
#include "config.h"

#include "top.h"

#include <iris/iris.h>

#include "report/words.h"

#include <stdlib.h>

static void print_call(const struct iris_report *report, int rank,
                       const struct iris_record_call *call)
{
    char text[400], took[32] = "under way";

    if (call->end_ns == call->begin_ns) {
        snprintf(took, sizeof took, "-");
    } else if (call->end_ns != 0) {
        snprintf(took, sizeof took, "%.3f",
                 (double)(call->end_ns - call->begin_ns) / 1e6);
    }
    iris_i_describe_call(call, text, sizeof text);
    printf("%4d %10llu %12.6f %10s  %s\n", rank, (unsigned long long)call->id,
           (double)(call->begin_ns - report->start_ns) / 1e9, took, text);
}

int top_calls(int fd)
{
    struct iris_record_call *calls = malloc(IRIS_RECORD_CALLS * sizeof *calls);
    struct iris_report *report;

    if (calls == NULL || iris_i_report_read(fd, &report) != IRIS_OK) {
        fprintf(stderr, "iris-top: %s\n",
                calls == NULL ? "no memory" : iris_last_error());
        free(calls);
        return 1;
    }
    printf("%4s %10s %12s %10s  %s\n", "RANK", "CALL", "SECONDS", "TOOK ms",
           "WHAT");
    for (int rank = 0; rank < report->num_ranks; rank++) {
        int count = iris_i_report_calls(fd, rank, calls);

        for (int i = 0; i < count; i++) {
            print_call(report, rank, &calls[i]);
        }
    }
    free(report);
    free(calls);
    return fflush(stdout) == 0 ? 0 : 1;
}
