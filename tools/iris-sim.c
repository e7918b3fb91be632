/* SPDX-License-Identifier: MIT
 *
 * iris sim: predicts the time of a program or a collective on another machine,
 * by a model of it.
 */
#include "config.h"

#include "iris.h"
#include "sim_parts.h"
#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SCALE 4096 /* ranks of a collective in a trace */

struct sim_options sim_options = {.compute = 1};

FILE *sim_open(const char *path)
{
    FILE *file = fopen(path, "we");

    if (file == NULL) {
        fprintf(stderr, "iris sim: %s: %s\n", path, strerror(errno));
    }
    return file;
}

int sim_close(FILE *file, const char *path)
{
    int failed = ferror(file) != 0;

    failed |= fclose(file) != 0;
    if (failed) {
        fprintf(stderr, "iris sim: cannot write %s\n", path);
    }
    return failed;
}

int sim_platform_given(struct sim_platform *platform_p)
{
    int ret = -1;

    if (sim_options.platform == NULL) {
        fprintf(stderr, "iris sim: --platform is missing\n");
        return -1;
    }
    ret = sim_platform_read(platform_p, sim_options.platform);
    for (int i = 0; ret == 0 && i < sim_options.num_changes; i++) {
        ret = sim_platform_change(platform_p, sim_options.changes[i]);
    }
    return ret;
}

static double parse_factor(struct argp_state *state, const char *text)
{
    char *end;
    double factor = strtod(text, &end);

    if (end == text || *end != '\0' || !(factor >= 0)) {
        argp_error(state, "--compute=%s: pass a number from 0", text);
    }
    return factor;
}

/* Where the text of an option goes; NULL if the option has another value. */
static const char **find_text(int key)
{
    static const struct {
        int key;
        const char **text;
    } texts[] = {{'b', &sim_options.bytes},    {'n', &sim_options.ranks},
                 {'o', &sim_options.output},   {'p', &sim_options.picture},
                 {'P', &sim_options.platform}, {'t', &sim_options.perfetto},
                 {'T', &sim_options.topology}, {'v', &sim_options.variant}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (key == texts[i].key) {
            return texts[i].text;
        }
    }
    return NULL;
}

static error_t parse_sim(int key, char *arg, struct argp_state *state)
{
    const char **text = find_text(key);
    const int most = sizeof sim_options.changes / sizeof sim_options.changes[0];

    if (text != NULL) {
        *text = arg;
        return 0;
    }
    switch (key) {
    case 'j':
        sim_options.json = 1;
        return 0;
    case 'r':
        sim_options.is_ring = 1;
        return 0;
    case 'w':
        if (sim_options.num_changes == most) {
            argp_error(state, "--what-if: at most %d changes", most);
        }
        sim_options.changes[sim_options.num_changes++] = arg;
        return 0;
    case 's':
        sim_options.scale =
            (int)tool_number(state, "scale", arg, 1, MOST_SCALE);
        return 0;
    case 'c':
        sim_options.compute = parse_factor(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        sim_options.words[sim_options.num_words++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option sim_rows[] = {
    {"bytes", 'b', "SIZE", 0, "Of the larger buffer, such as 64M", 0},
    {"compute", 'c', "FACTOR", 0,
     "Of the times between operations of a trace (default: 1)", 0},
    {"json", 'j', NULL, 0, "Print JSON instead of a table", 0},
    {"ranks", 'n', "RANKS", 0, "A number, or 2:4096 for its powers", 0},
    {"output", 'o', "FILE", 0, "Of fit: the platform", 0},
    {"picture", 'p', "FILE", 0, "Of collective: times by ranks as SVG", 0},
    {"platform", 'P', "FILE", 0, "The machine", 0},
    {"ring", 'r', NULL, 0,
     "With --scale: messages go to ranks as far away as in the trace, not to "
     "the rank in the same copy",
     0},
    {"scale", 's', "RANKS", 0,
     "Of run: as if RANKS had run, a multiple of the trace's", 0},
    {"perfetto", 't', "FILE", 0, "Of run: a trace of the predicted run", 0},
    {"topology", 'T', "NAME", 0,
     "Simulate the network between nodes by SimGrid: fat_tree or rail", 0},
    {"variant", 'v', "NAME", 0,
     "Of collective: another than the library's choice, or hierarchical", 0},
    {"what-if", 'w', "COST=FACTORx", 0,
     "Change a cost of the platform: link=2x", 0},
    {0},
};

int tool_sim(int argc, char **argv)
{
    static const struct argp argp = {
        .options = sim_rows,
        .parser = parse_sim,
        .args_doc = "run -P PLATFORM [-c FACTOR] TRACE\n"
                    "collective -P PLATFORM -b BYTES -n RANKS OPERATION\n"
                    "fit [-P PLATFORM] [-o PLATFORM] REPORT...",
        .doc = "Predicts times on a machine from a model of it "
               "(docs/timing.md).\n\n"
               "run: replays a merged trace.\n"
               "collective: all_reduce, all_gather, reduce_scatter, "
               "all_to_all, broadcast.\n"
               "fit: costs of a platform from reports of iris bench --format "
               "json.\v"
               "Exit status: 0; 1 if a file cannot be read or written, or a "
               "schedule deadlocks; 2 for a wrong command line.",
    };
    static const struct tool_part parts[] = {
        {"run", sim_run_part, 1, 1},
        {"collective", sim_collective_part, 1, 1},
        {"fit", sim_fit_part, 1, 64},
        {0},
    };
    char **words = calloc((size_t)argc, sizeof *words);
    int status;

    if (words == NULL) {
        perror("iris sim");
        return TOOL_FAILED;
    }
    trace_options.quiet = 1;
    sim_options.words = words;
    tool_parse(&argp, argc, argv, NULL);
    sim_options.words++;
    sim_options.num_words--;
    status = tool_run_part(argv[0], parts, words, sim_options.num_words + 1);
    free(words);
    return status;
}
