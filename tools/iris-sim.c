/* SPDX-License-Identifier: MIT
 *
 * iris-sim: predicts the time of a program or a collective on another machine,
 * by a model of it.
 */
#include "config.h"

#include "sim_parts.h"
#include "trace_parts.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SCALE 4096 /* ranks of a collective in a trace */

struct sim_options sim_options = {.compute = 1};
struct trace_options trace_options = {.rank = -1, .quiet = 1};

static const char usage[] =
    "usage: iris-sim run -P PLATFORM [-c FACTOR] TRACE\n"
    "       iris-sim collective -P PLATFORM -b BYTES -n RANKS OPERATION\n"
    "       iris-sim fit [-P PLATFORM] [-o PLATFORM] REPORT...\n"
    "Predicts times on a machine from a model of it (docs/timing.md).\n"
    "\n"
    "run: replays a merged trace, or a schedule of iris-trace export.\n"
    "collective: all_reduce, all_gather, reduce_scatter, all_to_all, "
    "broadcast.\n"
    "fit: costs of a platform from reports of iris-bench --format json.\n"
    "\n"
    "  -b, --bytes=SIZE     of the larger buffer, such as 64M\n"
    "  -c, --compute=FACTOR of the times between operations of a trace "
    "(default: 1)\n"
    "  -j, --json           JSON instead of a table\n"
    "  -n, --ranks=RANKS    a number, or 2:4096 for its powers\n"
    "  -o, --output=FILE    of fit: the platform\n"
    "  -p, --picture=FILE   of collective: times by ranks as SVG\n"
    "  -P, --platform=FILE  the machine\n"
    "  -r, --ring           with --scale: messages go to ranks as far away as "
    "in "
    "the trace,\n"
    "                       not to the rank in the same copy\n"
    "  -s, --scale=RANKS    of run: as if RANKS had run, a multiple of the "
    "trace's\n"
    "  -t, --perfetto=FILE  of run: a trace of the predicted run\n"
    "  -T, --topology=NAME  simulates the network between nodes by SimGrid: "
    "fat_tree\n"
    "                       or rail\n"
    "  -v, --variant=NAME   of collective: another than the library's choice,\n"
    "                       or hierarchical\n"
    "  -w, --what-if=COST=FACTORx\n"
    "                       changes a cost of the platform: link=2x\n"
    "  -h, --help           this text\n"
    "\n"
    "Exit status: 0; 1 if a file cannot be read or written, or a schedule\n"
    "deadlocks; 2 if the command line is wrong.\n";

static const struct {
    const char *name;
    int (*run)(void);
    int least, most; /* words */
} parts[] = {
    {"run", sim_run_part, 1, 1},
    {"collective", sim_collective_part, 1, 1},
    {"fit", sim_fit_part, 1, 64},
};

FILE *sim_open(const char *path)
{
    FILE *file = fopen(path, "we");

    if (file == NULL) {
        fprintf(stderr, "iris-sim: %s: %s\n", path, strerror(errno));
    }
    return file;
}

int sim_close(FILE *file, const char *path)
{
    int failed = ferror(file) != 0;

    failed |= fclose(file) != 0;
    if (failed) {
        fprintf(stderr, "iris-sim: cannot write %s\n", path);
    }
    return failed;
}

int sim_platform_given(struct sim_platform *platform_p)
{
    int ret = -1;

    if (sim_options.platform == NULL) {
        fprintf(stderr, "iris-sim: --platform is missing\n");
        return -1;
    }
    ret = sim_platform_read(platform_p, sim_options.platform);
    for (int i = 0; ret == 0 && i < sim_options.num_changes; i++) {
        ret = sim_platform_change(platform_p, sim_options.changes[i]);
    }
    return ret;
}

static int add_change(const char *text)
{
    size_t most = sizeof sim_options.changes / sizeof sim_options.changes[0];

    if ((size_t)sim_options.num_changes == most) {
        fprintf(stderr, "iris-sim: more than %zu changes\n", most);
        return -1;
    }
    sim_options.changes[sim_options.num_changes++] = text;
    return 0;
}

/* Handles one option. Returns 0, or -1 for a wrong value or after printing
 * help. */
static int take(int c)
{
    static const struct {
        char letter;
        const char **text;
    } texts[] = {{'b', &sim_options.bytes},    {'n', &sim_options.ranks},
                 {'o', &sim_options.output},   {'p', &sim_options.picture},
                 {'P', &sim_options.platform}, {'t', &sim_options.perfetto},
                 {'T', &sim_options.topology}, {'v', &sim_options.variant}};
    char *end;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (c == texts[i].letter) {
            *texts[i].text = optarg;
            return 0;
        }
    }
    if (c == 'j') {
        sim_options.json = 1;
        return 0;
    }
    if (c == 'r') {
        sim_options.is_ring = 1;
        return 0;
    }
    if (c == 'w') {
        return add_change(optarg);
    }
    if (c == 's') {
        sim_options.scale = (int)strtol(optarg, &end, 10);
        if (*end == '\0' && sim_options.scale >= 1 &&
            sim_options.scale <= MOST_SCALE) {
            return 0;
        }
    }
    if (c == 'c') {
        sim_options.compute = strtod(optarg, &end);
        if (end != optarg && *end == '\0' && sim_options.compute >= 0) {
            return 0;
        }
    }
    fprintf(stderr, "iris-sim --help says more\n");
    return -1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"bytes", required_argument, NULL, 'b'},
        {"compute", required_argument, NULL, 'c'},
        {"json", no_argument, NULL, 'j'},
        {"ranks", required_argument, NULL, 'n'},
        {"output", required_argument, NULL, 'o'},
        {"picture", required_argument, NULL, 'p'},
        {"platform", required_argument, NULL, 'P'},
        {"ring", no_argument, NULL, 'r'},
        {"scale", required_argument, NULL, 's'},
        {"perfetto", required_argument, NULL, 't'},
        {"topology", required_argument, NULL, 'T'},
        {"variant", required_argument, NULL, 'v'},
        {"what-if", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "b:c:jn:o:p:P:rs:t:T:v:w:h", options,
                            NULL)) != -1) {
        if (c == 'h') {
            fputs(usage, stdout);
            return 0;
        }
        if (take(c) != 0) {
            return 2;
        }
    }
    for (size_t i = 0; optind < argc && i < sizeof parts / sizeof parts[0];
         i++) {
        sim_options.words = argv + optind + 1;
        sim_options.num_words = argc - optind - 1;
        if (strcmp(parts[i].name, argv[optind]) == 0 &&
            sim_options.num_words >= parts[i].least &&
            sim_options.num_words <= parts[i].most) {
            return parts[i].run();
        }
    }
    fputs(usage, stderr);
    return 2;
}
