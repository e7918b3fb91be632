/* SPDX-License-Identifier: MIT
 *
 * The data of iris info, gathered once and printed as text or as JSON.
 */
#ifndef IRIS_TOOLS_INFO_H
#define IRIS_TOOLS_INFO_H

#include "backend/backend.h"
#include "base/base.h"

#define INFO_BACKENDS 8
#define INFO_SHM "/dev/shm" /* where heaps on the CPU are */

enum {
#define ONE(field, kind, env, value, choices, help) +1
    INFO_SETTINGS = 0 IRIS_CONFIG_ROWS(ONE),
#undef ONE
    /* Each setting, the backend, its device, the ranks, the heap. */
    INFO_PROBLEMS = INFO_SETTINGS + 4,
    INFO_UNKNOWN = 32,
};

struct info_backend {
    const char *name;
    int runs;
    int in_use;
    int has_survey;
    char reason[IRIS_MESSAGE_BYTES]; /* why it does not run */
    struct iris_survey survey;
};

struct info_setting {
    struct iris_setting_row row; /* row.value is the default */
    const char *value; /* the value; if it is bad, the text that was given */
    int is_bad;
};

/* The device that a program started now would have. */
struct info_device {
    int exists;
    int is_gpu;
    const char *backend;
    struct iris_device_info about;
};

struct info {
    struct iris_settings settings;
    struct info_setting rows[INFO_SETTINGS];
    struct info_backend backends[INFO_BACKENDS];
    size_t num_backends;
    struct info_device device;
    long processors;
    int has_shm;
    unsigned long long shm_bytes;
    unsigned long long shm_free_bytes;
    const char *unknown[INFO_UNKNOWN]; /* variables: "NAME=value" */
    size_t num_unknown;
    /* Why a program started now would fail. */
    char problems[INFO_PROBLEMS][IRIS_MESSAGE_BYTES];
    size_t num_problems;
};

/* Gathers the data. Removes variables that do not parse from the environment. */
void info_gather(struct info *info_p);

void info_print_text(const struct info *info);
void info_print_json(const struct info *info);

#endif /* IRIS_TOOLS_INFO_H */
