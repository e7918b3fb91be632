/* SPDX-License-Identifier: MIT
 *
 * iris info as JSON for programs. It has all the data of the text.
 */
#include "config.h"

#include "info.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

typedef struct iris_json_writer json_t;

static void print_build(json_t *json)
{
    iris_i_json_begin(json, "build", '{');
    iris_i_json_text(json, "configure", IRIS_CONFIGURE_ARGS);
    iris_i_json_text(json, "backends", IRIS_BUILD_BACKENDS);
    iris_i_json_bool(json, "hip", HAVE_HIP);
    iris_i_json_bool(json, "mpi", HAVE_MPI);
    iris_i_json_text(json, "compiler", IRIS_BUILD_COMPILER);
    iris_i_json_text(json, "modules", IRIS_MODULE_DIR);
    iris_i_json_end(json);
}

/* The numbers of the bits that are set. */
static void print_bits(json_t *json, const char *name, uint32_t bits)
{
    iris_i_json_begin(json, name, '[');
    for (int i = 0; i < 32; i++) {
        if (bits >> i & 1) {
            iris_i_json_int(json, NULL, i);
        }
    }
    iris_i_json_end(json);
}

static void print_survey(json_t *json, const struct iris_survey *survey)
{
    int count = survey->num_devices < IRIS_SURVEY_DEVICES ? survey->num_devices
                                                          : IRIS_SURVEY_DEVICES;

    iris_i_json_text(json, "runtime", survey->runtime);
    iris_i_json_int(json, "num_devices", survey->num_devices);
    iris_i_json_begin(json, "devices", '[');
    for (int i = 0; i < count; i++) {
        const char *pci = survey->devices[i].pci;

        iris_i_json_begin(json, NULL, '{');
        iris_i_json_int(json, "id", i);
        iris_i_json_text(json, "name", survey->devices[i].name);
        iris_i_json_text(json, "pci", pci[0] == '\0' ? NULL : pci);
        iris_i_json_uint(json, "memory_bytes", survey->devices[i].memory_bytes);
        print_bits(json, "access", survey->devices[i].access);
        print_bits(json, "atomics", survey->devices[i].atomics);
        iris_i_json_end(json);
    }
    iris_i_json_end(json);
}

static void print_backends(json_t *json, const struct info *info)
{
    iris_i_json_begin(json, "backends", '[');
    for (size_t i = 0; i < info->num_backends; i++) {
        const struct info_backend *one = &info->backends[i];

        iris_i_json_begin(json, NULL, '{');
        iris_i_json_text(json, "name", one->name);
        iris_i_json_bool(json, "runs", one->runs);
        iris_i_json_bool(json, "in_use", one->in_use);
        iris_i_json_text(json, "reason", one->runs ? NULL : one->reason);
        if (one->has_survey) {
            print_survey(json, &one->survey);
        }
        iris_i_json_end(json);
    }
    iris_i_json_end(json);
}

static void print_device(json_t *json, const struct info *info)
{
    const struct iris_device_info *about = &info->device.about;

    if (!info->device.exists) {
        iris_i_json_text(json, "device", NULL);
        return;
    }
    iris_i_json_begin(json, "device", '{');
    iris_i_json_int(json, "id", about->device_id);
    iris_i_json_text(json, "name", about->name);
    iris_i_json_bool(json, "gpu", info->device.is_gpu);
    iris_i_json_int(json, "compute_units", about->num_cus);
    iris_i_json_int(json, "wavefront", about->wavefront);
    iris_i_json_int(json, "xccs", about->num_xccs);
    iris_i_json_int(json, "clock_khz", about->clock_khz);
    iris_i_json_end(json);
}

static void print_memory(json_t *json, const struct info *info)
{
    iris_i_json_int(json, "processors", info->processors);
    if (!info->has_shm) {
        iris_i_json_text(json, "shared_memory", NULL);
        return;
    }
    iris_i_json_begin(json, "shared_memory", '{');
    iris_i_json_text(json, "path", INFO_SHM);
    iris_i_json_uint(json, "bytes", info->shm_bytes);
    iris_i_json_uint(json, "free_bytes", info->shm_free_bytes);
    iris_i_json_end(json);
}

static void print_settings(json_t *json, const struct info *info)
{
    iris_i_json_begin(json, "settings", '[');
    for (size_t i = 0; i < INFO_SETTINGS; i++) {
        const struct info_setting *one = &info->rows[i];

        iris_i_json_begin(json, NULL, '{');
        iris_i_json_text(json, "name", one->row.env);
        iris_i_json_text(json, "value", one->value);
        iris_i_json_text(json, "default", one->row.value);
        iris_i_json_text(json, "origin",
                         one->is_bad
                             ? "environment"
                             : iris_i_origin_string(one->row.setting->origin));
        iris_i_json_bool(json, "bad", one->is_bad);
        iris_i_json_text(json, "meaning", one->row.help);
        iris_i_json_end(json);
    }
    iris_i_json_end(json);
    iris_i_json_begin(json, "unknown", '[');
    for (size_t i = 0; i < info->num_unknown; i++) {
        char name[IRIS_SETTING_BYTES];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(info->unknown[i], "="),
                 info->unknown[i]);
        iris_i_json_text(json, NULL, name);
    }
    iris_i_json_end(json);
}

void info_print_json(const struct info *info)
{
    json_t json = iris_i_json_writer(stdout);

    iris_i_json_begin(&json, NULL, '{');
    iris_i_json_text(&json, "version", iris_version());
    print_build(&json);
    print_backends(&json, info);
    print_device(&json, info);
    print_memory(&json, info);
    print_settings(&json, info);
    iris_i_json_begin(&json, "problems", '[');
    for (size_t i = 0; i < info->num_problems; i++) {
        iris_i_json_text(&json, NULL, info->problems[i]);
    }
    iris_i_json_end(&json);
    iris_i_json_end(&json);
}
