/* SPDX-License-Identifier: MIT
 *
 * iris trace: reads traces that iris_trace_export() or upstream Iris wrote.
 */
#include "config.h"

#include "iris.h"
#include "trace_parts.h"
#include "trace/trace.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct trace_options trace_options = {.rank = -1};

FILE *trace_open(void)
{
    FILE *file = trace_options.output == NULL
                     ? stdout
                     : fopen(trace_options.output, "we");

    if (file == NULL) {
        fprintf(stderr, "iris trace: %s: %s\n", trace_options.output,
                strerror(errno));
    }
    return file;
}

int trace_close(FILE *file)
{
    int failed = ferror(file) != 0;

    failed |= (file == stdout ? fflush(file) : fclose(file)) != 0;
    if (failed) {
        fprintf(stderr, "iris trace: cannot write %s: %s\n",
                trace_options.output == NULL ? "stdout" : trace_options.output,
                strerror(errno));
    }
    return failed;
}

int trace_merge(void)
{
    struct iris_merge_report report;

    if (trace_options.output == NULL) {
        fprintf(stderr, "iris trace merge: -o OUT is missing\n");
        return 2;
    }
    if (iris_i_merge(trace_options.files, trace_options.num_files,
                     trace_options.output, &report) != 0) {
        fprintf(stderr, "iris trace: %s\n", report.error);
        return 1;
    }
    printf("%s: %llu events; of %llu waits %llu are joined with their signal",
           trace_options.output, (unsigned long long)report.events,
           (unsigned long long)report.waits, (unsigned long long)report.joined);
    if (report.early != 0) {
        printf(", %llu of which seem to end before it, by %lld ns at most",
               (unsigned long long)report.early,
               (long long)report.worst_early_ns);
    }
    if (report.early != 0 && report.clock_error_ns >= 0 &&
        report.device_error_ns >= 0) {
        printf(" (clocks are exact to %lld ns)",
               (long long)(report.clock_error_ns + 2 * report.device_error_ns));
    }
    printf("\n");
    return trace_close(stdout);
}

static error_t parse_trace(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case 'b':
        trace_options.bases = arg;
        return 0;
    case 'o':
        trace_options.output = arg;
        return 0;
    case 'q':
        trace_options.quiet = 1;
        return 0;
    case 'r':
        trace_options.rank = (int)tool_number(state, "rank", arg, 0, INT_MAX);
        return 0;
    case ARGP_KEY_ARG:
        trace_options.files[trace_options.num_files++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_trace(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"bases", 'b', "PREFIX", 0,
         "Read PREFIX_rank_0_heap_bases.json and, if there is one, "
         "PREFIX_rank_0_allocations.json (default: of report, the trace's name "
         "without its ending; of resolve, iris, the default of "
         "IRIS_HEAP_BASES_PREFIX)",
         0},
        {"output", 'o', "FILE", 0, "Write to FILE", 0},
        {"quiet", 'q', NULL, 0, "Show no progress on long files", 0},
        {"rank", 'r', "RANK", 0, "Addresses are in this rank's address space",
         0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_trace,
        .args_doc = "summary TRACE...\nresolve [FILE]\nmerge -o OUT TRACE...\n"
                    "diff TRACE TRACE\nreport -o OUT.html TRACE",
        .doc =
            "Reads traces of Iris programs, also compressed ones.\n\n"
            "summary: operations, bytes, times, kernels, bytes from rank to "
            "rank.\n"
            "resolve: the rank, heap offset and allocation of each address "
            "in a trace (*.json, *.json.gz), or on each line of another file "
            "or stdin.\n"
            "merge: one trace of all ranks' files, with arrows from signals "
            "to waits.\n"
            "diff: operations that take longer in the second trace.\n"
            "report: a page with a timeline, arrows from launches and "
            "signals, the matrix and the longest waits.\v"
            "Exit status: 0; 1 if a file cannot be read or written; 2 for a "
            "wrong command line.",
    };
    static const struct tool_part parts[] = {
        {"summary", trace_summary, 1, 4096}, {"resolve", trace_resolve, 0, 1},
        {"merge", trace_merge, 1, 4096},     {"diff", trace_diff, 2, 2},
        {"report", trace_report, 1, 1},      {0},
    };
    char **words = calloc((size_t)argc, sizeof *words);
    int status;

    if (words == NULL) {
        perror("iris trace");
        return TOOL_FAILED;
    }
    trace_options.files = words;
    tool_parse(&argp, argc, argv, NULL);
    trace_options.files++;
    trace_options.num_files--;
    status = tool_run_part(argv[0], parts, words, trace_options.num_files + 1);
    free(words);
    return status;
}
