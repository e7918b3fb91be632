/* SPDX-License-Identifier: MIT
 *
 * iris-info: what this build can do here, and the settings a program started
 * now would have.
 */
#include "config.h"

#include <iris/device.h>
#include <iris/iris.h>

#include "backend/calls.h"
#include "backend/registry.h"
#include "context/placement.h"
#include "base/settings.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the values of a kind may be; a CHOICE has its own list. */
#define TAKES_STRING "any text"
#define TAKES_CHOICE ""
#define TAKES_BYTES "a size such as 64M, 1G or 1048576"
#define TAKES_MS "milliseconds, 0 for none"
#define TAKES_COUNT "an integer from 1"
#define TAKES_RANK "an integer from 0"
#define TAKES_FLAG "1, true, yes, 0, false or no"

static const char *const takes[] = {
#define TAKES(field, kind, env, value, choices, help) TAKES_##kind,
    IRIS_CONFIG_ROWS(TAKES)
#undef TAKES
};

/* ---- Settings ---- */

/* Prints the words of a list with commas between them. */
static void print_choices(const char *choices)
{
    for (const char *c = choices; *c != '\0'; c++) {
        printf("%s%c", *c == ' ' ? "," : "", *c);
    }
}

/* Markdown would take <name> for a tag. */
static void print_markdown(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        printf("%s%c", *c == '<' || *c == '|' ? "\\" : "", *c);
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
            printf("%s", takes[i]);
        }
        printf(" | ");
        print_markdown(row.help);
        printf(" |\n");
    }
    return 0;
}

/* A variable that is set but has not become the setting does not parse. */
static int is_bad(const struct iris_setting_row *row)
{
    const char *text = getenv(row->env);

    return text != NULL && text[0] != '\0' &&
           row->setting->origin == IRIS_ORIGIN_DEFAULT;
}

/* Tells of variables that look like settings: misspelt, perhaps. */
static void print_unknown(void)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        size_t length = strcspn(*variable, "=");
        struct iris_setting_row row;
        int known = strncmp(*variable, "IRIS_", 5) != 0;

        for (size_t i = 0; !known && iris_i_settings_row(NULL, i, &row); i++) {
            known = strlen(row.env) == length &&
                    strncmp(row.env, *variable, length) == 0;
        }
        if (!known) {
            printf("  note: %.*s is set, but there is no such setting\n",
                   (int)length, *variable);
        }
    }
}

/* Tells of each value that does not parse. The library names the first; take it
 * away to be told of the next. Returns how many there are. */
static int print_bad(struct iris_settings *settings, iris_status_t status)
{
    struct iris_setting_row row;
    int bad = 0;

    for (size_t i = 0; status != IRIS_OK; bad++) {
        printf("  ! %s\n", iris_last_error());
        while (iris_i_settings_row(settings, i, &row) && !is_bad(&row)) {
            i++;
        }
        if (!iris_i_settings_row(settings, i, &row)) {
            return bad + 1; /* each parses, but they contradict each other */
        }
        unsetenv(row.env);
        status = iris_i_settings_load(NULL, settings);
    }
    return bad;
}

/* The settings of a program started now. Returns the number of bad ones. */
static int print_settings(void)
{
    struct iris_settings settings;
    iris_status_t status = iris_i_settings_load(NULL, &settings);
    struct iris_setting_row row;

    printf("\nSettings\n  %-24s%-14s%-13s%s\n", "variable", "value", "origin",
           "meaning");
    for (size_t i = 0; iris_i_settings_row(&settings, i, &row); i++) {
        const char *value = row.setting->text;
        const char *origin = iris_i_origin_string(row.setting->origin);
        int bad = is_bad(&row);

        printf("%c %-24s%-14s%-13s%s\n", bad ? '!' : ' ', row.env,
               bad                ? getenv(row.env)
               : value[0] == '\0' ? "-"
                                  : value,
               bad ? "BAD" : origin, row.help);
    }
    print_unknown();
    return print_bad(&settings, status);
}

/* ---- Backends and devices ---- */

/* Prints why not, from this thread's last error. */
static void print_reason(const char *what)
{
    printf("  ! %s: %s\n", what, iris_last_error());
}

static void print_backends(const struct iris_settings *settings,
                           const struct iris_backend_type *selected)
{
    const struct iris_backend_type *type;
    const char *name;
    int num_devices;

    printf("Backends\n");
    for (size_t i = 0; (name = iris_i_registry_at(i, settings->module_dir.text,
                                                  &type)) != NULL;
         i++) {
        int runs = type != NULL && type->probe(&num_devices) == IRIS_OK;

        printf("  %-8s%s%s%s\n", name,
               runs ? "can run" : "cannot run: ", runs ? "" : iris_last_error(),
               runs && type == selected ? "; in use" : "");
    }
    if (!HAVE_HIP) {
        printf("  %-8snot in this build\n", "hip");
    }
}

static void print_gpu(const struct iris_device_info *info)
{
    printf("     %d compute units, %d lanes in lockstep, clock of kernels "
           "%.0f MHz\n",
           info->num_cus, info->wavefront, (double)info->clock_khz / 1000);
    if (info->num_xccs > 0) {
        printf("     %d XCCs\n", info->num_xccs);
    }
}

static iris_status_t keep_waiting(void *core)
{
    (void)core;
    return IRIS_OK;
}

static void describe_late(void *core, const void *word, char *text,
                          size_t bytes)
{
    (void)core, (void)word, (void)bytes;
    text[0] = '\0';
}

/* Opens the backend for one rank to ask for its device. */
static int print_device(const struct iris_placement *placement,
                        const struct iris_settings *settings)
{
    static const struct iris_core_ops core_ops = {keep_waiting, describe_late};
    struct iris_backend_params params = {
        .num_ranks = 1,
        .device = placement->device,
        .ranks_on_device = 1,
        .num_cus = (int)settings->sim_cus.number,
        .heap_bytes = (size_t)settings->heap_bytes.number,
        .core_ops = &core_ops,
    };
    struct iris_device_info info;
    struct iris_backend *backend;

    printf("\nDevices\n");
    if (iris_i_device_open(placement->type, &params, &backend) != IRIS_OK) {
        print_reason("no device");
        return 1;
    }
    iris_i_device_info(backend, &info);
    printf("  %d  %s\n", info.device_id, info.name);
    if (placement->type->is_gpu) {
        print_gpu(&info);
    } else {
        printf("     %d workgroups of a kernel at once (IRIS_SIM_CUS), 1 lane "
               "in lockstep\n"
               "     %ld processors, shared by all ranks\n",
               info.num_cus, sysconf(_SC_NPROCESSORS_ONLN));
    }
    iris_i_device_close(backend);
    return 0;
}

/* Returns 1 if no backend can be used. */
static int print_hardware(const struct iris_settings *settings)
{
    const struct iris_bootstrap bootstrap = {.how = "info", .num_ranks = 1};
    struct iris_placement placement;
    char reason[1024];

    if (iris_i_place(settings, &bootstrap, &placement) == IRIS_OK) {
        print_backends(settings, placement.type);
        return print_device(&placement, settings);
    }
    /* Copied, since print_backends() may change the message. */
    snprintf(reason, sizeof reason, "%s", iris_last_error());
    print_backends(settings, NULL);
    printf("  ! none in use: %s\n", reason);
    return 1;
}

/* Everything. The exit status says whether a program could run. */
static int print_all(void)
{
    struct iris_settings settings;
    int bad;

    printf("iris %s\n\n", iris_version());
    /* What does not parse is told below, and has its default here. */
    (void)iris_i_settings_load(NULL, &settings);
    bad = print_hardware(&settings);
    printf("\nMPI\n  %s\n",
           HAVE_MPI ? "built in: mpirun -n 4 ./program"
                    : "not in this build (configure --with-mpi); ranks are "
                      "threads, or meet by IRIS_RANK");
    bad += print_settings();
    return bad != 0;
}

/* ---- Smoke test ---- */

struct check_args {
    const int64_t *context;
    int32_t *inbox;
    uint64_t *signal;
};

/* Each rank stores a number at the other and waits for the other's. */
IRIS_KERNEL(check, struct check_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int other = 1 - dev.rank;

    if (iris_wg_leader(wg)) {
        iris_store(dev, args->inbox, 100 + dev.rank, other);
        iris_signal_set(dev, args->signal, 1, other);
        (void)iris_wait_until(dev, args->signal, IRIS_CMP_EQ, 1);
    }
}

static int check_rank(iris_t *iris, void *arg)
{
    struct check_args args = {.context = iris_device_context(iris)};
    char *prefix = arg, file[128];
    void *inbox, *signal;
    int32_t seen = 0;
    int ret;

    snprintf(file, sizeof file, "%s_rank_%d_heap_bases.json", prefix,
             iris_rank(iris));
    unlink(file);
    if ((ret = iris_calloc(iris, 1, sizeof *args.inbox, &inbox)) != 0 ||
        (ret = iris_calloc(iris, 1, sizeof *args.signal, &signal)) != 0) {
        return ret;
    }
    args.inbox = inbox;
    args.signal = signal;
    if ((ret = iris_launch(iris, check, 1, 1, &args, sizeof args, NULL)) != 0 ||
        (ret = iris_memcpy(iris, &seen, inbox, sizeof seen, NULL)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0) {
        return ret;
    }
    if (seen != 101 - iris_rank(iris)) {
        fprintf(stderr, "rank %d received %d, expected %d\n", iris_rank(iris),
                (int)seen, 101 - iris_rank(iris));
        return 1;
    }
    if (iris_rank(iris) == 0) {
        printf("check: 2 ranks on %s wrote into each other's heaps: ok\n",
               iris_backend_name(iris));
    }
    return 0;
}

static int smoke_test(void)
{
    struct iris_config config;
    char prefix[64];
    iris_status_t status;

    snprintf(prefix, sizeof prefix, "/tmp/iris-info-%ld", (long)getpid());
    iris_config_init(&config);
    config.heap_bytes = 16 << 20;
    config.heap_bases_prefix = prefix;
    status = iris_spawn(&config, 2, check_rank, prefix);
    if (status != IRIS_OK) {
        printf("check: FAILED: %s: %s\n", iris_status_string(status),
               iris_last_error());
    }
    return status != IRIS_OK;
}

/* ---- Options ---- */

static void usage(FILE *file)
{
    fprintf(
        file,
        "usage: iris-info [option]\n"
        "Shows version, settings, backends, devices and MPI. Exits with 1\n"
        "if a setting does not parse or no backend can run; --check tries.\n\n"
        "  -c, --check     run 2 ranks that write into each other's heaps\n"
        "  --env-markdown  the settings as a table in Markdown\n"
        "  -V, --version   the version\n"
        "  -h, --help      this text\n");
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"check", no_argument, NULL, 'c'},
        {"env-markdown", no_argument, NULL, 'm'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option = getopt_long(argc, argv, "cVh", options, NULL);

    if (optind < argc) {
        usage(stderr);
        return 2;
    }
    switch (option) {
    case 'c':
        return smoke_test();
    case 'm':
        return env_markdown();
    case 'V':
        printf("iris-info %s\n", iris_version());
        return 0;
    case 'h':
        usage(stdout);
        return 0;
    case -1:
        return print_all();
    default:
        usage(stderr);
        return 2;
    }
}
