/* SPDX-License-Identifier: MIT
 *
 * iris info gathers settings, backends, devices and shared memory, and finds
 * the reasons for which a program would fail.
 */
#include "config.h"

#include "info.h"
#include "base/settings_table.h"
#include "backend/calls.h"
#include "backend/backend.h"
#include "base/base.h"
#include "context/context.h"
#include "control/control.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void
add_problem(struct info *info, const char *format, ...)
{
    va_list args;

    if (info->num_problems < INFO_PROBLEMS) {
        va_start(args, format);
        vsnprintf(info->problems[info->num_problems++], IRIS_MESSAGE_BYTES,
                  format, args);
        va_end(args);
    }
}

/* ---- Settings ---- */

/* Whether a variable is set, but does not parse and so is not the setting. */
static int is_bad(const struct iris_setting_row *row)
{
    const char *text = getenv(row->env);

    return text != NULL && text[0] != '\0' &&
           row->setting->origin == IRIS_ORIGIN_DEFAULT;
}

static void gather_rows(struct info *info)
{
    for (size_t i = 0; i < INFO_SETTINGS; i++) {
        struct info_setting *one = &info->rows[i];

        iris_i_settings_row(&info->settings, i, &one->row);
        one->is_bad = is_bad(&one->row);
        /* unsetenv() leaves the text where it is. */
        one->value =
            one->is_bad ? getenv(one->row.env) : one->row.setting->text;
        if (iris_i_setting_is_secret(&one->row) && one->value[0] != '\0') {
            one->value = "(set)";
        }
    }
}

/* Lists each value that does not parse. The library names the first; without
 * that one, it names the next. */
static void gather_bad(struct info *info, iris_status_t status)
{
    struct iris_settings settings;

    for (size_t i = 0; status != IRIS_OK; i++) {
        add_problem(info, "%s", iris_last_error());
        while (i < INFO_SETTINGS && !info->rows[i].is_bad) {
            i++;
        }
        if (i >= INFO_SETTINGS) {
            return; /* each parses, but they contradict each other */
        }
        unsetenv(info->rows[i].row.env);
        status = iris_i_settings_load(NULL, &settings);
    }
}

/* Lists variables that look like settings and may be misspelt. */
static void gather_unknown(struct info *info)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        if (iris_i_environment_is_unknown(*variable) &&
            info->num_unknown < INFO_UNKNOWN) {
            info->unknown[info->num_unknown++] = *variable;
        }
    }
}

/* The rank of a program that is started now. Does not ask MPI, which would wait
 * for every rank of the job. */
static iris_status_t find_rank(const struct iris_settings *settings,
                               struct iris_bootstrap *bootstrap)
{
    const char *how = settings->bootstrap.text;

    if (strcmp(how, "mpi") == 0) {
        return HAVE_MPI ? IRIS_OK : iris_i_bootstrap_mpi(settings, bootstrap);
    }
    return strcmp(how, "env") == 0 || iris_i_bootstrap_env_applies(settings)
               ? iris_i_bootstrap_env(settings, bootstrap)
               : IRIS_OK;
}

static void check_ranks(struct info *info)
{
    struct iris_bootstrap bootstrap = {
        .num_ranks = (int)info->settings.num_ranks.number};
    size_t least, bytes = (size_t)info->settings.heap_bytes.number;

    if (find_rank(&info->settings, &bootstrap) != IRIS_OK ||
        iris_i_bootstrap_check(bootstrap.num_ranks) != IRIS_OK) {
        add_problem(info, "%s", iris_last_error());
        return;
    }
    least = iris_i_layout_least(&info->settings, bootstrap.num_ranks);
    if (bytes < least) {
        add_problem(info,
                    "a heap of %zu bytes (IRIS_HEAP_SIZE) is too small: with "
                    "%d rank%s it takes at least %zu; raise it",
                    bytes, bootstrap.num_ranks,
                    bootstrap.num_ranks == 1 ? "" : "s", least);
    }
}

/* ---- Backends and devices ---- */

static void gather_backend(struct info_backend *one,
                           const struct iris_backend_type *type)
{
    int num_devices;

    one->runs = type != NULL && type->probe(&num_devices) == IRIS_OK;
    if (one->runs) {
        one->has_survey = type->survey(&one->survey) == IRIS_OK;
        for (int i = 0; i < IRIS_SURVEY_DEVICES; i++) {
            /* A link may report atomics even if it is not used. */
            one->survey.devices[i].atomics &= one->survey.devices[i].access;
        }
    } else {
        snprintf(one->reason, sizeof one->reason, "%s", iris_last_error());
    }
}

static void gather_backends(struct info *info)
{
    const struct iris_backend_type *type;
    const char *name;

    for (size_t i = 0; i < INFO_BACKENDS; i++) {
        name = iris_i_registry_at(i, info->settings.module_dir.text, &type);
        if (name == NULL) {
            return;
        }
        info->backends[i].name = name;
        gather_backend(&info->backends[i], type);
        info->num_backends++;
    }
}

static void describe_late(void *core, const void *word, char *text,
                          size_t bytes)
{
    (void)core, (void)word, (void)bytes;
    text[0] = '\0';
}

static void note_wait(void *core, struct iris_wait_note *note)
{
    (void)core, (void)note;
}

static int locate(void *core, const void *address,
                  struct iris_location *location_p)
{
    (void)core, (void)address, (void)location_p;
    return 0;
}

/* Opens the backend for one rank to ask for its device. */
static void gather_device(struct info *info,
                          const struct iris_placement *placement)
{
    static const struct iris_core_ops core_ops = {describe_late, note_wait,
                                                  note_wait, locate};
    static const struct iris_waiter waiter = {.log = NULL};
    struct iris_backend_params params = {
        .num_ranks = 1,
        .device = placement->device,
        .ranks_on_device = 1,
        .num_cus = (int)info->settings.sim_cus.number,
        .heap_bytes = (size_t)info->settings.heap_bytes.number,
        .core_ops = &core_ops,
        .waiter = &waiter,
    };
    struct iris_backend *backend;

    if (iris_i_device_open(placement->type, &params, &backend) != IRIS_OK) {
        add_problem(info, "no device: %s", iris_last_error());
        return;
    }
    info->device.exists = 1;
    info->device.is_gpu = placement->type->is_gpu;
    info->device.backend = placement->name;
    iris_i_device_info(backend, &info->device.about);
    iris_i_device_close(backend);
}

static void gather_placement(struct info *info)
{
    const struct iris_bootstrap bootstrap = {.how = "info", .num_ranks = 1};
    struct iris_placement placement;

    if (iris_i_place(&info->settings, &bootstrap, &placement) != IRIS_OK) {
        add_problem(info, "no backend in use: %s", iris_last_error());
        return;
    }
    for (size_t i = 0; i < info->num_backends; i++) {
        info->backends[i].in_use =
            strcmp(info->backends[i].name, placement.name) == 0;
    }
    gather_device(info, &placement);
}

static void gather_shm(struct info *info)
{
    struct statvfs fs;

    info->has_shm = statvfs(INFO_SHM, &fs) == 0;
    if (info->has_shm) {
        info->shm_bytes = (unsigned long long)fs.f_blocks * fs.f_frsize;
        info->shm_free_bytes = (unsigned long long)fs.f_bavail * fs.f_frsize;
    }
}

void info_gather(struct info *info)
{
    iris_status_t status;

    memset(info, 0, sizeof *info);
    /* From here on, values that do not parse have their defaults. */
    (void)iris_i_settings_load(NULL, &info->settings);
    gather_rows(info);
    gather_unknown(info);
    gather_backends(info);
    gather_placement(info);
    gather_shm(info);
    info->processors = sysconf(_SC_NPROCESSORS_ONLN);
    check_ranks(info);
    /* Last, since it changes the environment. */
    status = iris_i_settings_load(NULL, &info->settings);
    gather_bad(info, status);
}
