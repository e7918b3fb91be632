/* SPDX-License-Identifier: MIT
 *
 * iris info as text for people.
 */
#include "config.h"

#include "info.h"

#include <stdio.h>
#include <string.h>

#define COLUMN 14 /* width of a setting's value, and of its origin */

/* Prints any text, and returns the number of columns that it took. */
static int put(const char *text)
{
    int columns = 0;

    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;

        columns += byte < 0x20 || byte == 0x7f ? printf("\\x%02x", byte)
                                               : printf("%c", byte);
    }
    return columns;
}

/* Prints a text in the column from `start` to `end`. If the text reaches the
 * end, it gets its own line, and the next column begins on a new line. */
static void put_column(const char *text, int start, int end)
{
    int at = start + put(text);

    if (at >= end) {
        printf("\n");
        at = 0;
    }
    printf("%*s", end - at, "");
}

static void print_fact(const char *name, const char *text)
{
    printf("  %-12s", name);
    put(text);
    printf("\n");
}

static void print_build(void)
{
    printf("\nBuild\n");
    print_fact("configure", IRIS_CONFIGURE_ARGS);
    print_fact("backends", IRIS_BUILD_BACKENDS);
    print_fact("MPI", HAVE_MPI
                          ? "built in: mpirun -n 4 ./program"
                          : "not in this build (configure --with-mpi); ranks "
                            "are threads, or meet by IRIS_RANK");
    print_fact("compiler", IRIS_BUILD_COMPILER);
    print_fact("modules", IRIS_MODULE_DIR);
}

static void print_backends(const struct info *info)
{
    printf("\nBackends\n");
    for (size_t i = 0; i < info->num_backends; i++) {
        const struct info_backend *one = &info->backends[i];

        printf("  %-8s%s%s", one->name, one->runs ? "can run" : "cannot run: ",
               one->in_use ? "; in use" : "");
        put(one->reason);
        printf("\n");
        if (one->has_survey) {
            printf("          %s\n", one->survey.runtime);
        }
    }
    if (!HAVE_HIP) {
        printf("  %-8snot in this build\n", "hip");
    }
}

/* Prints a row for each device, with a letter for each device whose memory it
 * can map. */
static void print_matrix(const struct iris_survey *survey, int count)
{
    printf("  Row maps memory of column: A and its atomics work there, m they "
           "do not, - no\n      ");
    for (int j = 0; j < count; j++) {
        printf("%3d", j);
    }
    for (int i = 0; i < count; i++) {
        printf("\n  %3d ", i);
        for (int j = 0; j < count; j++) {
            printf("%3c", !(survey->devices[i].access >> j & 1) ? '-'
                          : survey->devices[i].atomics >> j & 1 ? 'A'
                                                                : 'm');
        }
    }
    printf("\n");
}

static void print_devices(const struct info_backend *backend)
{
    const struct iris_survey *survey = &backend->survey;
    int count = survey->num_devices < IRIS_SURVEY_DEVICES ? survey->num_devices
                                                          : IRIS_SURVEY_DEVICES;

    printf("\nDevices of %s\n", backend->name);
    for (int i = 0; i < count; i++) {
        printf("  %d  ", i);
        put(survey->devices[i].name);
        printf("%s%s, %.1f GiB\n",
               survey->devices[i].pci[0] == '\0' ? "" : ", ",
               survey->devices[i].pci,
               (double)survey->devices[i].memory_bytes / (1 << 30));
    }
    if (survey->num_devices > count) {
        printf("  and %d more\n", survey->num_devices - count);
    }
    if (count > 1) {
        print_matrix(survey, count);
    }
}

static void print_device(const struct info *info)
{
    const struct iris_device_info *about = &info->device.about;

    printf("\nDevice in use\n  %d  ", about->device_id);
    put(about->name);
    if (!info->device.is_gpu) {
        printf(
            "\n     %d workgroups of a kernel at once (IRIS_SIM_CUS), 1 lane "
            "in lockstep\n     %ld processors, shared by all ranks\n",
            about->num_cus, info->processors);
        return;
    }
    printf("\n     %d compute units, %d lanes in lockstep, clock of kernels "
           "%.0f MHz\n",
           about->num_cus, about->wavefront, (double)about->clock_khz / 1000);
    if (about->num_xccs > 0) {
        printf("     %d XCCs\n", about->num_xccs);
    }
}

static void print_shm(const struct info *info)
{
    printf("\nShared memory\n  " INFO_SHM "    ");
    if (info->has_shm) {
        printf("%.1f of %.1f MiB free\n",
               (double)info->shm_free_bytes / (1 << 20),
               (double)info->shm_bytes / (1 << 20));
    } else {
        printf("there is none\n");
    }
}

static void print_settings(const struct info *info)
{
    int names = 0;

    for (size_t i = 0; i < INFO_SETTINGS; i++) {
        int length = (int)strlen(info->rows[i].row.env);

        names = length > names ? length : names;
    }
    names += 2;
    printf("\nSettings\n  %-*s%-*s%-*s%s\n", names, "variable", COLUMN, "value",
           COLUMN, "origin", "meaning");
    for (size_t i = 0; i < INFO_SETTINGS; i++) {
        const struct info_setting *one = &info->rows[i];

        printf("%c %-*s", one->is_bad ? '!' : ' ', names, one->row.env);
        put_column(one->value[0] == '\0' ? "-" : one->value, 2 + names,
                   2 + names + COLUMN);
        printf("%-*s%s\n", COLUMN,
               one->is_bad ? "BAD"
                           : iris_i_origin_string(one->row.setting->origin),
               one->row.help);
    }
    for (size_t i = 0; i < info->num_unknown; i++) {
        printf("  note: %.*s is set, but no such setting exists\n",
               (int)strcspn(info->unknown[i], "="), info->unknown[i]);
    }
}

void info_print_text(const struct info *info)
{
    printf("iris %s\n", iris_version());
    print_build();
    print_backends(info);
    for (size_t i = 0; i < info->num_backends; i++) {
        if (info->backends[i].has_survey) {
            print_devices(&info->backends[i]);
        }
    }
    if (info->device.exists) {
        print_device(info);
    }
    print_shm(info);
    print_settings(info);
    if (info->num_problems > 0) {
        printf("\nProblems\n");
    }
    for (size_t i = 0; i < info->num_problems; i++) {
        printf("  ! ");
        put(info->problems[i]);
        printf("\n");
    }
}
