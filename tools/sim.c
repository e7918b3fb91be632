/* SPDX-License-Identifier: MIT
 *
 * iris sim: predicts the time of a program or a collective on another machine,
 * by a model of it. This file has the options and the platform files.
 */
#include "config.h"

#include "iris.h"
#include "sim.h"
#include "trace.h"
#include "base/base.h"
#include "trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int is_rate;
} cost_rows[] = {
#define ROW(NAME, name, is_rate) {name, is_rate},
    SIM_COST_ROWS(ROW)
#undef ROW
};

const char *sim_cost_name(enum sim_cost cost)
{
    return cost_rows[cost].name;
}

int sim_cost_is_rate(enum sim_cost cost)
{
    return cost_rows[cost].is_rate;
}

/* GB/s to microseconds per MB, and back; 0 stays 0: no time. */
static double invert_rate(double value)
{
    return value > 0 ? 1000 / value : 0;
}

/* A member of the file; one of another name is passed over. */
static void take_member(struct sim_platform *platform, const char *key,
                        const struct iris_json *json)
{
    double number = strtod(json->text, NULL);

    if (strcmp(key, "name") == 0) {
        snprintf(platform->name, sizeof platform->name, "%.63s", json->text);
    } else if (strcmp(key, "source") == 0) {
        snprintf(platform->source, sizeof platform->source, "%.255s",
                 json->text);
    } else if (strcmp(key, "gpu") == 0) {
        platform->gpu = strcmp(json->text, "true") == 0;
    } else if (strcmp(key, "node_ranks") == 0) {
        platform->node_ranks = (int)number;
    } else if (strcmp(key, "links") == 0) {
        platform->links = (int)number;
    } else if (strcmp(key, "shared_memory") == 0) {
        platform->is_shared = strcmp(json->text, "true") == 0;
    } else if (strcmp(key, "cache_mb") == 0) {
        platform->cache_mb = number;
    }
    for (int i = 0; i < SIM_COSTS; i++) {
        if (strcmp(key, cost_rows[i].name) == 0) {
            platform->costs[i] = cost_rows[i].is_rate && number >= 0
                                     ? invert_rate(number)
                                     : number;
        }
    }
}

static const char *find_wrong_member(const struct sim_platform *platform)
{
    for (int i = 0; i < SIM_COSTS; i++) {
        if (!(platform->costs[i] >= 0 && platform->costs[i] < 1e12)) {
            return cost_rows[i].name;
        }
    }
    return !(platform->cache_mb >= 0) ? "cache_mb"
           : platform->node_ranks < 1 ? "node_ranks"
           : platform->links < 1      ? "links"
                                      : NULL;
}

int read_platform(struct sim_platform *platform_p, const char *path)
{
    struct sim_platform platform = {.node_ranks = 8, .links = 1};
    struct iris_json json;
    enum iris_json_token token = IRIS_JSON_ERROR;
    const char *what = "is no platform file";
    char key[64];
    int opened = iris_i_json_open(&json, path) == 0;

    if (opened && iris_i_json_next(&json) == IRIS_JSON_OBJECT) {
        while ((token = iris_i_json_next(&json)) == IRIS_JSON_KEY) {
            snprintf(key, sizeof key, "%.63s", json.text);
            token = iris_i_json_next(&json);
            take_member(&platform, key, &json);
            if (iris_i_json_skip(&json, token) == IRIS_JSON_ERROR) {
                break;
            }
        }
    }
    if (opened) {
        iris_i_json_close(&json);
    }
    if (token == IRIS_JSON_OBJECT_END) {
        what = find_wrong_member(&platform);
        if (what == NULL) {
            *platform_p = platform;
            return 0;
        }
    }
    if (json.error[0] != '\0') {
        fprintf(stderr, "iris sim: %s\n", json.error);
        return -1;
    }
    fprintf(stderr, "iris sim: %s: %s\n", path, what);
    return -1;
}

void sim_platform_write(const struct sim_platform *platform, FILE *file)
{
    struct iris_json_writer json = iris_i_json_writer(file);

    iris_i_json_begin(&json, NULL, '{');
    iris_i_json_text(&json, "name", platform->name);
    iris_i_json_text(&json, "source", platform->source);
    iris_i_json_bool(&json, "gpu", platform->gpu);
    iris_i_json_int(&json, "node_ranks", platform->node_ranks);
    iris_i_json_int(&json, "links", platform->links);
    iris_i_json_bool(&json, "shared_memory", platform->is_shared);
    iris_i_json_real(&json, "cache_mb", platform->cache_mb);
    for (int i = 0; i < SIM_COSTS; i++) {
        iris_i_json_real(&json, cost_rows[i].name,
                         cost_rows[i].is_rate ? invert_rate(platform->costs[i])
                                              : platform->costs[i]);
    }
    iris_i_json_end(&json);
}

int change_platform(struct sim_platform *platform, const char *text)
{
    size_t length = strcspn(text, "=");
    char *end = NULL;
    double factor = text[length] == '=' ? strtod(text + length + 1, &end) : 0;

    for (int i = 0; i < SIM_COSTS; i++) {
        if (factor > 0 && strcmp(end, "x") == 0 &&
            strncmp(cost_rows[i].name, text, length) == 0 &&
            cost_rows[i].name[length] == '_') {
            platform->costs[i] *= cost_rows[i].is_rate ? 1 / factor : factor;
            return 0;
        }
    }
    fprintf(stderr,
            "iris sim: --what-if=%s: pass a cost's name, without its unit, and "
            "a factor, such as link=2x\n",
            text);
    return -1;
}

/* ---- The command line ---- */

struct sim_options sim_options = {.compute = 1};

int sim_platform_given(struct sim_platform *platform_p)
{
    int ret = -1;

    if (sim_options.platform == NULL) {
        fprintf(stderr, "iris sim: --platform is missing\n");
        return -1;
    }
    ret = read_platform(platform_p, sim_options.platform);
    for (int i = 0; ret == 0 && i < sim_options.num_changes; i++) {
        ret = change_platform(platform_p, sim_options.changes[i]);
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
                 {'o', &sim_options.output},   {'P', &sim_options.platform},
                 {'t', &sim_options.perfetto}, {'v', &sim_options.variant}};

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
    case 'w':
        if (sim_options.num_changes == most) {
            argp_error(state, "--what-if: at most %d changes", most);
        }
        sim_options.changes[sim_options.num_changes++] = arg;
        return 0;
    case 'c':
        sim_options.compute = parse_factor(state, arg);
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
    {"platform", 'P', "FILE", 0, "The machine", 0},
    {"perfetto", 't', "FILE", 0, "Of run: a trace of the predicted run", 0},
    {"variant", 'v', "NAME", 0,
     "Of collective: another than the library's choice", 0},
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

    trace_options.quiet = 1;
    return tool_run_part(&argp, argc, argv, parts);
}
