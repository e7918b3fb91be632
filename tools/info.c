/* SPDX-License-Identifier: MIT
 *
 * iris info: the features of this build on this machine, and the settings of a
 * program that is started now. It gathers settings, backends, devices and shared
 * memory, finds the reasons for which a program would fail, and prints all of it
 * as text or as JSON.
 *
 * Gathering removes variables that do not parse from the environment, last of
 * all, to find the next one that does not.
 */
#include "config.h"

#include "iris.h"
#include "backend/backend.h"
#include "backend/calls.h"
#include "base/base.h"
#include "context/context.h"
#include "control/control.h"

#include <iris/iris.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

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
    struct iris_layout_sizes heap; /* of a rank */
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
static int is_bad_row(const struct iris_setting_row *row)
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
        one->is_bad = is_bad_row(&one->row);
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

    if (find_rank(&info->settings, &bootstrap) != IRIS_OK ||
        iris_i_bootstrap_check(bootstrap.num_ranks) != IRIS_OK ||
        iris_i_layout_check(&info->settings, NULL, bootstrap.num_ranks) !=
            IRIS_OK) {
        add_problem(info, "%s", iris_last_error());
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

static void describe_nothing(void *core, const void *word, char *text,
                             size_t bytes)
{
    (void)core, (void)word, (void)bytes;
    text[0] = '\0';
}

static void note_nothing(void *core, struct iris_wait_note *note)
{
    (void)core, (void)note;
}

static int locate_nothing(void *core, const void *address,
                          struct iris_location *location_p)
{
    (void)core, (void)address, (void)location_p;
    return 0;
}

/* Opens the backend for one rank to ask for its device. */
static void gather_device(struct info *info,
                          const struct iris_placement *placement)
{
    static const struct iris_core_ops core_ops = {
        describe_nothing, note_nothing, note_nothing, locate_nothing};
    static const struct iris_waiter waiter = {.log = NULL};
    const struct iris_layout_sizes sizes =
        iris_i_layout_sizes(&info->settings, 2);
    int grows = sizes.reserve_bytes > sizes.heap_bytes;
    int is_default = info->settings.allocator.origin == IRIS_ORIGIN_DEFAULT;
    struct iris_backend_params params = {
        .num_ranks = 2, /* they share their heaps */
        .device = placement->device,
        .ranks_on_device = 1,
        .num_cus = (int)info->settings.sim_cus.number,
        .vmem = info->settings.allocator.number == IRIS_CHOICE_ALLOCATOR_VMEM ||
                (is_default && placement->type->is_gpu && grows),
        .vmem_if_needed = is_default,
        .memory = info->settings.hip_memory.text,
        .heap_bytes = (size_t)info->settings.heap_bytes.number,
        .reserve_bytes = sizes.reserve_bytes,
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
    info->heap = sizes;
    if (grows && !info->device.about.heaps_grow) {
        add_problem(info,
                    "IRIS_HEAP_RESERVE is set, but heaps on %s do not "
                    "grow; set IRIS_ALLOCATOR=vmem",
                    info->device.about.name);
    }
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

/* Gathers the data. Removes variables that do not parse from the environment. */
static void gather_info(struct info *info)
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

/* ---- Text ---- */

#define COLUMN 14 /* width of a setting's value, and of its origin */

/* Prints any text, and returns the number of columns that it took. */
static int print_safely(const char *text)
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
    int at = start + print_safely(text);

    if (at >= end) {
        printf("\n");
        at = 0;
    }
    printf("%*s", end - at, "");
}

static void print_fact(const char *name, const char *text)
{
    printf("  %-12s", name);
    print_safely(text);
    printf("\n");
}

static void print_build(void)
{
    printf("\nBuild\n");
    print_fact("configure", IRIS_CONFIGURE_ARGS);
    print_fact("backends", IRIS_BUILD_BACKENDS);
    print_fact("UCX",
               HAVE_UCX ? "built in: IRIS_TRANSPORT=ucx between nodes"
                        : "not built in (configure found no <ucp/api/ucp.h>)");
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
        print_safely(one->reason);
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
static void print_links(const struct iris_survey *survey, int count)
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
        print_safely(survey->devices[i].name);
        printf("%s%s, %.1f GiB\n",
               survey->devices[i].pci[0] == '\0' ? "" : ", ",
               survey->devices[i].pci,
               (double)survey->devices[i].memory_bytes / (1 << 30));
    }
    if (survey->num_devices > count) {
        printf("  and %d more\n", survey->num_devices - count);
    }
    if (count > 1) {
        print_links(survey, count);
    }
}

static void print_device(const struct info *info)
{
    const struct iris_device_info *about = &info->device.about;

    printf("\nDevice in use\n  %d  ", about->device_id);
    print_safely(about->name);
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
    if (about->heap[0] != '\0') {
        printf("     heap of %s\n", about->heap);
    }
}

/* Addresses of heaps that grow take no memory before they are allocated. */
static void print_heap(const struct info *info)
{
    printf("\nHeap of a rank\n  %.1f MiB",
           (double)info->heap.heap_bytes / (1 << 20));
    if (info->heap.reserve_bytes > info->heap.heap_bytes) {
        printf(", which may grow to %.1f MiB",
               (double)info->heap.reserve_bytes / (1 << 20));
    }
    printf("; %s\n", info->device.about.heaps_grow
                         ? "allocations back it with memory"
                         : "all of it is backed by memory");
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

static void print_text(const struct info *info)
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
        print_heap(info);
    }
    print_shm(info);
    print_settings(info);
    if (info->num_problems > 0) {
        printf("\nProblems\n");
    }
    for (size_t i = 0; i < info->num_problems; i++) {
        printf("  ! ");
        print_safely(info->problems[i]);
        printf("\n");
    }
}

/* ---- JSON ---- */

typedef struct iris_json_writer json_t;

static void write_build(json_t *json)
{
    iris_i_json_begin(json, "build", '{');
    iris_i_json_text(json, "configure", IRIS_CONFIGURE_ARGS);
    iris_i_json_text(json, "backends", IRIS_BUILD_BACKENDS);
    iris_i_json_bool(json, "hip", HAVE_HIP);
    iris_i_json_bool(json, "mpi", HAVE_MPI);
    iris_i_json_bool(json, "ucx", HAVE_UCX);
    iris_i_json_text(json, "compiler", IRIS_BUILD_COMPILER);
    iris_i_json_text(json, "modules", IRIS_MODULE_DIR);
    iris_i_json_end(json);
}

/* The numbers of the bits that are set. */
static void write_bits(json_t *json, const char *name, uint32_t bits)
{
    iris_i_json_begin(json, name, '[');
    for (int i = 0; i < 32; i++) {
        if (bits >> i & 1) {
            iris_i_json_int(json, NULL, i);
        }
    }
    iris_i_json_end(json);
}

static void write_survey(json_t *json, const struct iris_survey *survey)
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
        write_bits(json, "access", survey->devices[i].access);
        write_bits(json, "atomics", survey->devices[i].atomics);
        iris_i_json_end(json);
    }
    iris_i_json_end(json);
}

static void write_backends(json_t *json, const struct info *info)
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
            write_survey(json, &one->survey);
        }
        iris_i_json_end(json);
    }
    iris_i_json_end(json);
}

static void write_device(json_t *json, const struct info *info)
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
    iris_i_json_text(json, "heap", about->heap);
    iris_i_json_uint(json, "heap_bytes", info->heap.heap_bytes);
    iris_i_json_uint(json, "heap_reserved", info->heap.reserve_bytes);
    iris_i_json_bool(json, "heap_grows", about->heaps_grow);
    iris_i_json_end(json);
}

static void write_memory(json_t *json, const struct info *info)
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

static void write_settings(json_t *json, const struct info *info)
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

static void print_json(const struct info *info)
{
    json_t json = iris_i_json_writer(stdout);

    iris_i_json_begin(&json, NULL, '{');
    iris_i_json_text(&json, "version", iris_version());
    write_build(&json);
    write_backends(&json, info);
    write_device(&json, info);
    write_memory(&json, info);
    write_settings(&json, info);
    iris_i_json_begin(&json, "problems", '[');
    for (size_t i = 0; i < info->num_problems; i++) {
        iris_i_json_text(&json, NULL, info->problems[i]);
    }
    iris_i_json_end(&json);
    iris_i_json_end(&json);
}

/* ---- Table of settings ---- */

/* Prints the words of a list with commas between them. */
static void print_choices(const char *choices)
{
    for (const char *c = choices; *c != '\0'; c++) {
        printf("%s%c", *c == ' ' ? "," : "", *c);
    }
}

/* Prints it with a backslash before each of the characters. */
static void print_escaped(const char *text, const char *characters)
{
    for (const char *c = text; *c != '\0'; c++) {
        printf("%s%c", strchr(characters, *c) != NULL ? "\\" : "", *c);
    }
}

static int env_markdown(void)
{
    struct iris_setting_row row;

    printf("| Variable | Default | Takes | Meaning |\n"
           "| --- | --- | --- | --- |\n");
    for (size_t i = 0; iris_i_settings_row(NULL, i, &row); i++) {
        printf("| `%s` |", row.env);
        printf(row.value[0] == '\0' ? " " : " `%s`", row.value);
        printf(" | ");
        if (row.choices[0] != '\0') {
            print_choices(row.choices);
        } else {
            printf("%s", row.takes);
        }
        printf(" | ");
        print_escaped(row.help, "<|"); /* no tag, no column */
        printf(" |\n");
    }
    return 0;
}

static int env_man(void)
{
    const char *special = "-\\"; /* a minus is not its hyphen */
    struct iris_setting_row row;

    for (size_t i = 0; iris_i_settings_row(NULL, i, &row); i++) {
        printf(".TP\n.B %s\n", row.env);
        print_escaped(row.help, special);
        printf(".\nTakes ");
        if (row.choices[0] != '\0') {
            print_choices(row.choices);
        } else {
            print_escaped(row.takes, special);
        }
        printf(". Default: ");
        print_escaped(row.value[0] == '\0' ? "none" : row.value, special);
        printf(".\n");
    }
    return 0;
}

/* ---- Options ---- */

enum { KEY_MARKDOWN = 256, KEY_MAN };

static error_t parse_info(int key, char *arg, struct argp_state *state)
{
    int *mode = state->input;

    (void)arg;
    if (key != 'j' && key != KEY_MARKDOWN && key != KEY_MAN) {
        return ARGP_ERR_UNKNOWN;
    }
    *mode = key;
    return 0;
}

static int print_all(void (*print)(const struct info *info))
{
    static struct info info;

    gather_info(&info);
    print(&info);
    return info.num_problems != 0;
}

int tool_info(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"json", 'j', NULL, 0, "Print everything as JSON", 0},
        {"env-markdown", KEY_MARKDOWN, NULL, 0,
         "Print the settings as a table in Markdown", 0},
        {"env-man", KEY_MAN, NULL, 0, "Print the settings as in iris(7)", 0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_info,
        .doc = "Shows the version and how it was built, backends, their "
               "devices, the links between devices, shared memory, settings, "
               "and anything that would make a program fail. Runs nothing on "
               "a device; iris probe does.\v"
               "Exit status: 0, or 1 if a program started now would fail: a "
               "setting does not parse or contradicts another, the rank is not "
               "one of the job's, the heap is too small, no backend can run. 2 "
               "for a wrong command line.",
    };
    int mode = 0;

    tool_parse(&argp, argc, argv, &mode);
    switch (mode) {
    case KEY_MARKDOWN:
        return env_markdown();
    case KEY_MAN:
        return env_man();
    case 'j':
        return print_all(print_json);
    default:
        return print_all(print_text);
    }
}
