/* SPDX-License-Identifier: MIT
 *
 * iris top: shows from outside how the ranks of a job are doing. It lists jobs,
 * prints the report of one, or updates a table. It only reads, and uses no
 * debugger.
 */
#include "config.h"

#include <iris/iris.h>

#include "iris.h"
#include "top.h"
#include "report/report.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time between the readings of a report: long compared with notes, which are
 * written every 5 or 10 ms. */
#define APART_MS 300

static int is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits < 10 && text[digits] == '\0';
}

static int fail_process(int pid)
{
    if (errno == ENOENT) {
        fprintf(
            stderr,
            "iris top: process %d has no Iris job and has not started one; "
            "pass the process of a rank, between iris_init and iris_finalize\n",
            pid);
    } else {
        fprintf(stderr, "iris top: process %d: %s%s\n", pid, strerror(errno),
                errno == ESRCH ? "; for a rank that ended pass another one's"
                : errno == EACCES
                    ? "; it is another user's, or may not be looked at"
                    : "");
    }
    return -1;
}

/* Opens the segment that the argument names. Returns -1 after printing a
 * message. */
static int open_job(const char *name)
{
    int fd;

    if (is_number(name)) {
        int why;

        fd = iris_i_report_open(atoi(name), 0);
        why = errno;
        fd = fd < 0 && why != ESRCH ? top_find_below(atoi(name)) : fd;
        if (fd >= 0) {
            return fd;
        }
        if (why != ESRCH) {
            errno = why;
            return fail_process(atoi(name));
        }
    }
    fd = top_find_job(name);
    if (fd < 0 && is_number(name)) {
        errno = ESRCH;
        return fail_process(atoi(name));
    }
    if (fd < 0) {
        fprintf(stderr,
                "iris top: no job %s of this user; iris top alone lists them\n",
                name);
    }
    return fd;
}

static int print_report(int fd, int json)
{
    struct iris_report *report;
    int status;

    if (iris_i_report_make(fd, APART_MS, &report) != IRIS_OK) {
        fprintf(stderr, "iris top: %s\n", iris_last_error());
        return 1;
    }
    if (json) {
        iris_i_report_json(report, stdout);
    } else {
        iris_i_report_text(report, stdout);
    }
    status = report->verdict >= IRIS_VERDICT_STOPPED ? 3 : 0;
    free(report);
    return fflush(stdout) == 0 ? status : 1;
}

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

static int print_calls(int fd)
{
    struct iris_record_call *calls = malloc(IRIS_RECORD_CALLS * sizeof *calls);
    struct iris_report *report;

    if (calls == NULL || iris_i_report_read(fd, &report) != IRIS_OK) {
        fprintf(stderr, "iris top: %s\n",
                calls == NULL ? "no memory" : iris_last_error());
        free(calls);
        return 1;
    }
    printf("%4s %10s %12s %10s  %s\n", "RANK", "CALL", "SECONDS", "TOOK ms",
           "WHAT");
    for (int rank = 0; rank < report->num_ranks; rank++) {
        const struct iris_report_rank *r = &report->ranks[rank];
        int is_old = r->is_elsewhere && !r->known;
        int count = is_old ? 0 : iris_i_report_calls(fd, rank, calls);

        for (int i = 0; i < count; i++) {
            print_call(report, rank, &calls[i]);
        }
    }
    free(report);
    free(calls);
    return fflush(stdout) == 0 ? 0 : 1;
}

struct top_options {
    int mode; /* 'j', 'c', 'l', or 0 */
    const char *job;
};

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
    struct top_options *options = state->input;

    switch (key) {
    case 'j':
    case 'c':
    case 'l':
        if (options->mode != 0 && options->mode != key) {
            argp_error(state, "pass one of --json, --calls and --live");
        }
        options->mode = key;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            return ARGP_ERR_UNKNOWN;
        }
        options->job = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->job == NULL && options->mode != 0) {
            argp_error(state, "pass a job or a process");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_top(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"json", 'j', NULL, 0, "Print the report as JSON", 0},
        {"calls", 'c', NULL, 0,
         "Print the last 1,024 host calls of each rank, dead or not; of ranks "
         "of other hosts the last 64",
         0},
        {"live", 'l', NULL, 0,
         "Print a table that follows the job, until it ends", 0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_top,
        .args_doc = "[JOB|PID]",
        .doc =
            "Shows what the ranks of a job do and wait for, and the likely "
            "cause if it hangs. PID is the process of any rank that has not "
            "ended, or one that started it, such as mpirun; JOB its "
            "IRIS_JOB_ID, or PID.N for the Nth job of process PID. Without "
            "either: the jobs of this user. Works on stopped ranks, and "
            "shows killed ones as the others have them. Changes nothing.\v"
            "Exit status: 0; 1 if there is no such process or job, or it may "
            "not be read; 2 for a wrong command line; 3 if the job is hung "
            "or lost, or stopped.",
    };
    struct top_options options = {0};
    int fd, status;

    tool_parse(&argp, argc, argv, &options);
    if (options.job == NULL) {
        return top_list();
    }
    fd = open_job(options.job);
    if (fd < 0) {
        return 1;
    }
    status = options.mode == 'l'   ? top_live(fd)
             : options.mode == 'c' ? print_calls(fd)
                                   : print_report(fd, options.mode == 'j');
    close(fd);
    return status;
}
