/* SPDX-License-Identifier: MIT
 *
 * iris-trace: reads traces that iris_trace_export() or upstream Iris wrote.
 */
#include "config.h"

#include "trace_parts.h"
#include "trace/trace.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct trace_options trace_options = {.rank = -1};

static const char usage[] =
    "usage: iris-trace summary TRACE...\n"
    "       iris-trace resolve [-b PREFIX] [-r RANK] [FILE]\n"
    "       iris-trace merge -o OUT TRACE...\n"
    "       iris-trace diff TRACE TRACE\n"
    "       iris-trace report -o OUT.html TRACE\n"
    "Reads traces of Iris programs, also compressed ones.\n"
    "\n"
    "summary: operations, bytes, times, kernels, bytes from rank to rank.\n"
    "resolve: the rank, heap offset and allocation of each address in a trace\n"
    "(*.json, *.json.gz), or on each line of another file or stdin.\n"
    "merge: one trace of all ranks' files, with arrows from signals to waits.\n"
    "diff: operations that take longer in the second trace.\n"
    "report: a page with a timeline, arrows from launches and signals, the\n"
    "matrix and the longest waits.\n"
    "\n"
    "  -b, --bases=PREFIX  read PREFIX_rank_0_heap_bases.json and, if there "
    "is\n"
    "                      one, PREFIX_rank_0_allocations.json (default: of\n"
    "                      report, the trace's name without its ending; of\n"
    "                      resolve, iris, the default of "
    "IRIS_HEAP_BASES_PREFIX)\n"
    "  -o, --output=FILE   write to it\n"
    "  -q, --quiet         no progress on long files\n"
    "  -r, --rank=RANK     addresses are in this rank's address space\n"
    "  -h, --help          this text\n"
    "\n"
    "Exit status: 0; 1 if a file cannot be read or written; 2 if the command\n"
    "line is wrong.\n";

static const struct {
    const char *name;
    int (*run)(void);
    int least, most; /* files */
} parts[] = {
    {"summary", trace_summary, 1, 4096}, {"resolve", trace_resolve, 0, 1},
    {"merge", trace_merge, 1, 4096},     {"diff", trace_diff, 2, 2},
    {"report", trace_report, 1, 1},
};

FILE *trace_open(void)
{
    FILE *file = trace_options.output == NULL
                     ? stdout
                     : fopen(trace_options.output, "we");

    if (file == NULL) {
        fprintf(stderr, "iris-trace: %s: %s\n", trace_options.output,
                strerror(errno));
    }
    return file;
}

int trace_close(FILE *file)
{
    int failed = ferror(file) != 0;

    failed |= (file == stdout ? fflush(file) : fclose(file)) != 0;
    if (failed) {
        fprintf(stderr, "iris-trace: cannot write %s: %s\n",
                trace_options.output == NULL ? "stdout" : trace_options.output,
                strerror(errno));
    }
    return failed;
}

int trace_merge(void)
{
    struct iris_merge_report report;

    if (trace_options.output == NULL) {
        fprintf(stderr, "iris-trace merge: -o OUT is missing\n");
        return 2;
    }
    if (iris_i_merge(trace_options.files, trace_options.num_files,
                     trace_options.output, &report) != 0) {
        fprintf(stderr, "iris-trace: %s\n", report.error);
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

/* Returns 0, or the exit status plus 256. */
static int parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"bases", required_argument, NULL, 'b'},
        {"output", required_argument, NULL, 'o'},
        {"quiet", no_argument, NULL, 'q'},
        {"rank", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    char *end;
    int c;

    while ((c = getopt_long(argc, argv, "b:o:qr:h", options, NULL)) != -1) {
        switch (c) {
        case 'b':
            trace_options.bases = optarg;
            break;
        case 'o':
            trace_options.output = optarg;
            break;
        case 'q':
            trace_options.quiet = 1;
            break;
        case 'r':
            trace_options.rank = (int)strtol(optarg, &end, 10);
            if (*end != '\0' || end == optarg || trace_options.rank < 0) {
                fprintf(stderr, "iris-trace: --rank=%s is no rank\n", optarg);
                return 256 + 2;
            }
            break;
        case 'h':
            fputs(usage, stdout);
            return 256;
        default:
            fprintf(stderr, "iris-trace --help says more\n");
            return 256 + 2;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    int ret = parse(argc, argv);

    if (ret != 0) {
        return ret - 256;
    }
    if (optind == argc) {
        fputs(usage, stderr);
        return 2;
    }
    trace_options.files = argv + optind + 1;
    trace_options.num_files = argc - optind - 1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(parts[i].name, argv[optind]) != 0) {
            continue;
        }
        if (trace_options.num_files < parts[i].least ||
            trace_options.num_files > parts[i].most) {
            fprintf(stderr,
                    "iris-trace %s: %d files; iris-trace --help says "
                    "how many it takes\n",
                    parts[i].name, trace_options.num_files);
            return 2;
        }
        return parts[i].run();
    }
    fprintf(stderr,
            "iris-trace: %s is nothing it does; iris-trace --help says "
            "more\n",
            argv[optind]);
    return 2;
}
