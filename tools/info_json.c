/* SPDX-License-Identifier: MIT
 *
 * iris-info as JSON for programs: all that the text has.
 */
#include "config.h"

#include "info.h"
#include "json.h"

#include <stdio.h>
#include <string.h>

/* A member of an object, its last or not. */
static void member(const char *name, const char *text, const char *behind)
{
    printf("\"%s\": ", name);
    if (text == NULL) {
        printf("null");
    } else {
        json_string(stdout, text);
    }
    printf("%s", behind);
}

static const char *truth(int value)
{
    return value ? "true" : "false";
}

static const char *comma(size_t i)
{
    return i == 0 ? "" : ",";
}

static void print_build(void)
{
    printf(" \"build\": {");
    member("configure", IRIS_CONFIGURE_ARGS, ",\n  ");
    member("backends", IRIS_BUILD_BACKENDS, ", ");
    printf("\"hip\": %s, \"mpi\": %s,\n  ", truth(HAVE_HIP), truth(HAVE_MPI));
    member("compiler", IRIS_BUILD_COMPILER, ",\n  ");
    member("modules", IRIS_MODULE_DIR, "},\n");
}

/* The numbers of the bits that are set. */
static void print_bits(const char *name, uint32_t bits)
{
    const char *between = "";

    printf(", \"%s\": [", name);
    for (int i = 0; i < 32; i++) {
        if (bits >> i & 1) {
            printf("%s%d", between, i);
            between = ", ";
        }
    }
    printf("]");
}

static void print_survey(const struct iris_survey *survey)
{
    int count = survey->num_devices < IRIS_SURVEY_DEVICES ? survey->num_devices
                                                          : IRIS_SURVEY_DEVICES;

    printf(",\n   ");
    member("runtime", survey->runtime, ", ");
    printf("\"num_devices\": %d, \"devices\": [", survey->num_devices);
    for (int i = 0; i < count; i++) {
        printf("%s\n    {\"id\": %d, ", comma((size_t)i), i);
        member("name", survey->devices[i].name, ", ");
        member("pci",
               survey->devices[i].pci[0] == '\0' ? NULL
                                                 : survey->devices[i].pci,
               ", ");
        printf("\"memory_bytes\": %zu", survey->devices[i].memory_bytes);
        print_bits("access", survey->devices[i].access);
        print_bits("atomics", survey->devices[i].atomics);
        printf("}");
    }
    printf("]");
}

static void print_backends(const struct info *info)
{
    printf(" \"backends\": [");
    for (size_t i = 0; i < info->num_backends; i++) {
        const struct info_backend *one = &info->backends[i];

        printf("%s\n  {", comma(i));
        member("name", one->name, ", ");
        printf("\"runs\": %s, \"in_use\": %s, ", truth(one->runs),
               truth(one->in_use));
        member("reason", one->runs ? NULL : one->reason, "");
        if (one->has_survey) {
            print_survey(&one->survey);
        }
        printf("}");
    }
    printf("],\n");
}

static void print_device(const struct info *info)
{
    const struct iris_device_info *about = &info->device.about;

    printf(" \"device\": ");
    if (!info->device.exists) {
        printf("null,\n");
        return;
    }
    printf("{\"id\": %d, ", about->device_id);
    member("name", about->name, ", ");
    printf("\"gpu\": %s, \"compute_units\": %d, \"wavefront\": %d, "
           "\"xccs\": %d, \"clock_khz\": %lld},\n",
           truth(info->device.is_gpu), about->num_cus, about->wavefront,
           about->num_xccs, (long long)about->clock_khz);
}

static void print_memory(const struct info *info)
{
    printf(" \"processors\": %ld,\n \"shared_memory\": ", info->processors);
    if (info->has_shm) {
        printf("{\"path\": \"" INFO_SHM "\", \"bytes\": %llu, "
               "\"free_bytes\": %llu},\n",
               info->shm_bytes, info->shm_free_bytes);
    } else {
        printf("null,\n");
    }
}

static void print_settings(const struct info *info)
{
    printf(" \"settings\": [");
    for (size_t i = 0; i < INFO_SETTINGS; i++) {
        const struct info_setting *one = &info->rows[i];

        printf("%s\n  {", comma(i));
        member("name", one->row.env, ", ");
        member("value", one->value, ", ");
        member("default", one->row.value, ", ");
        member("origin",
               one->is_bad ? "environment"
                           : iris_i_origin_string(one->row.setting->origin),
               ", ");
        printf("\"bad\": %s, ", truth(one->is_bad));
        member("meaning", one->row.help, "}");
    }
    printf("],\n \"unknown\": [");
    for (size_t i = 0; i < info->num_unknown; i++) {
        char name[IRIS_SETTING_BYTES];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(info->unknown[i], "="),
                 info->unknown[i]);
        printf("%s", comma(i));
        json_string(stdout, name);
    }
    printf("],\n");
}

void info_print_json(const struct info *info)
{
    printf("{");
    member("version", iris_version(), ",\n");
    print_build();
    print_backends(info);
    print_device(info);
    print_memory(info);
    print_settings(info);
    printf(" \"problems\": [");
    for (size_t i = 0; i < info->num_problems; i++) {
        printf("%s\n  ", comma(i));
        json_string(stdout, info->problems[i]);
    }
    printf("]}\n");
}
