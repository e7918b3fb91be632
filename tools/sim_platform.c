/* SPDX-License-Identifier: MIT
 *
 * Platform files: reading, writing, and changing one cost.
 */
#include "config.h"

#include "sim_platform.h"
#include "base/base.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int is_rate;
} rows[] = {
#define ROW(NAME, name, is_rate) {name, is_rate},
    SIM_COST_ROWS(ROW)
#undef ROW
};

const char *sim_cost_name(enum sim_cost cost)
{
    return rows[cost].name;
}

int sim_cost_is_rate(enum sim_cost cost)
{
    return rows[cost].is_rate;
}

/* GB/s to microseconds per MB, and back; 0 stays 0: no time. */
static double inverse(double value)
{
    return value > 0 ? 1000 / value : 0;
}

/* A member of the file; one of another name is passed over. */
static void take(struct sim_platform *platform, const char *key,
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
    } else if (strcmp(key, "leaf_ports") == 0) {
        platform->leaf_ports = (int)number;
    } else if (strcmp(key, "spines") == 0) {
        platform->spines = (int)number;
    } else if (strcmp(key, "cache_mb") == 0) {
        platform->cache_mb = number;
    }
    for (int i = 0; i < SIM_COSTS; i++) {
        if (strcmp(key, rows[i].name) == 0) {
            platform->costs[i] =
                rows[i].is_rate && number >= 0 ? inverse(number) : number;
        }
    }
}

static const char *wrong(const struct sim_platform *platform)
{
    for (int i = 0; i < SIM_COSTS; i++) {
        if (!(platform->costs[i] >= 0 && platform->costs[i] < 1e12)) {
            return rows[i].name;
        }
    }
    return !(platform->cache_mb >= 0) ? "cache_mb"
           : platform->node_ranks < 1 ? "node_ranks"
           : platform->links < 1      ? "links"
           : platform->leaf_ports < 0 ? "leaf_ports"
           : platform->spines < 0     ? "spines"
                                      : NULL;
}

int sim_platform_read(struct sim_platform *platform_p, const char *path)
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
            take(&platform, key, &json);
            if (iris_i_json_skip(&json, token) == IRIS_JSON_ERROR) {
                break;
            }
        }
    }
    if (opened) {
        iris_i_json_close(&json);
    }
    if (token == IRIS_JSON_OBJECT_END) {
        what = wrong(&platform);
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
    iris_i_json_int(&json, "leaf_ports", platform->leaf_ports);
    iris_i_json_int(&json, "spines", platform->spines);
    iris_i_json_real(&json, "cache_mb", platform->cache_mb);
    for (int i = 0; i < SIM_COSTS; i++) {
        iris_i_json_real(&json, rows[i].name,
                         rows[i].is_rate ? inverse(platform->costs[i])
                                         : platform->costs[i]);
    }
    iris_i_json_end(&json);
}

int sim_platform_change(struct sim_platform *platform, const char *text)
{
    size_t length = strcspn(text, "=");
    char *end = NULL;
    double factor = text[length] == '=' ? strtod(text + length + 1, &end) : 0;

    for (int i = 0; i < SIM_COSTS; i++) {
        if (factor > 0 && strcmp(end, "x") == 0 &&
            strncmp(rows[i].name, text, length) == 0 &&
            rows[i].name[length] == '_') {
            platform->costs[i] *= rows[i].is_rate ? 1 / factor : factor;
            return 0;
        }
    }
    fprintf(stderr,
            "iris sim: --what-if=%s: pass a cost's name, without its unit, and "
            "a factor, such as link=2x\n",
            text);
    return -1;
}
