/* SPDX-License-Identifier: MIT
 *
 * The command line.
 */
#include "config.h"

#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "iris-bench"

/* Time for a point. Targets get more, since they are compared. */
#define SECONDS_DEFAULT 0.1
#define SECONDS_TARGETS 0.3

/* The largest side of a matrix. */
#define MAX_SIDE (1 << 20)

enum {
    SECONDS = 256,
    ITERATIONS,
    LIVE,
    INIT_RANKS,
    INIT_HEAP,
    OUTPUT,
    DTYPES,
    SHAPES,
    VARIANTS,
    CALLS,
    PEER,
    TUNE,
    TUNE_SECONDS,
    SPREAD,
    TARGETS,
    NO_GRAPH,
    NO_PROGRESS
};

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, 'n'},
    {"workgroups", required_argument, NULL, 'g'},
    {"block", required_argument, NULL, 'b'},
    {"sizes", required_argument, NULL, 's'},
    {"ops", required_argument, NULL, 'o'},
    {"type", required_argument, NULL, 't'},
    {"pairs", required_argument, NULL, 'p'},
    {"seconds", required_argument, NULL, SECONDS},
    {"iterations", required_argument, NULL, ITERATIONS},
    {"live", required_argument, NULL, LIVE},
    {"init-ranks", required_argument, NULL, INIT_RANKS},
    {"init-heap", required_argument, NULL, INIT_HEAP},
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, OUTPUT},
    {"dtypes", required_argument, NULL, DTYPES},
    {"shapes", required_argument, NULL, SHAPES},
    {"variants", required_argument, NULL, VARIANTS},
    {"calls", required_argument, NULL, CALLS},
    {"peer", no_argument, NULL, PEER},
    {"tune", required_argument, NULL, TUNE},
    {"tune-seconds", required_argument, NULL, TUNE_SECONDS},
    {"spread", required_argument, NULL, SPREAD},
    {"targets", no_argument, NULL, TARGETS},
    {"no-graph", no_argument, NULL, NO_GRAPH},
    {"no-progress", no_argument, NULL, NO_PROGRESS},
    {"list", no_argument, NULL, 'l'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool complain(const char *option, const char *value, const char *wants)
{
    fprintf(stderr, "%s: --%s \"%s\": wants %s; see %s --help\n", PROGRAM,
            option, value, wants, PROGRAM);
    return false;
}

/* A whole number from `least` to `most`, with K, M or G if `is_bytes`. */
static bool parse_number(const char *text, bool is_bytes, int64_t least,
                         int64_t most, int64_t *number_p)
{
    static const char units[] = "KMG";
    const char *unit;
    int64_t number;
    char *end;
    int shift = 0;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (is_bytes && end != text && *end != '\0' &&
        (unit = strchr(units, *end)) != NULL) {
        shift = 10 * (int)(unit - units + 1);
        end++;
    }
    if (end == text || *end != '\0' || errno != 0 || number < 0 ||
        number > most >> shift || number << shift < least) {
        return false;
    }
    *number_p = number << shift;
    return true;
}

static bool number(const char *option, const char *value, int64_t least,
                   int64_t *number_p)
{
    char wants[64];

    if (parse_number(value, false, least, INT32_MAX, number_p)) {
        return true;
    }
    snprintf(wants, sizeof wants, "a whole number from %lld", (long long)least);
    return complain(option, value, wants);
}

static bool is_power(int64_t bytes)
{
    return (bytes & (bytes - 1)) == 0;
}

static bool parse_sizes(const char *value, struct bench_options *options)
{
    char text[64];
    char *rest = text;
    int64_t parts[3] = {1, 1, 2}; /* least, most, factor */
    size_t count = 0;
    bool ok = true;

    snprintf(text, sizeof text, "%s", value);
    for (; rest != NULL && ok; count++) {
        ok = count < 3 &&
             parse_number(strsep(&rest, ":"), true, 1, INT64_C(1) << 40,
                          &parts[count]) &&
             is_power(parts[count]);
    }
    parts[1] = count == 1 ? parts[0] : parts[1];
    if (!ok || parts[0] > parts[1] || parts[2] == 1) {
        return complain("sizes", value,
                        "MIN:MAX, MIN:MAX:FACTOR or one size, in bytes, powers "
                        "of two, with K, M or G");
    }
    options->min_bytes = (size_t)parts[0];
    options->max_bytes = (size_t)parts[1];
    options->size_shift = __builtin_ctzll((unsigned long long)parts[2]);
    return true;
}

/* Index of `name` in a list that ends with NULL; -1 if it is absent. */
static int find(const char *const *names, const char *name)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static bool parse_types(const char *value, struct bench_options *options)
{
    char text[64];
    char *rest = text, *name;
    bool all = strcmp(value, "all") == 0;

    for (int i = 0; i < BENCH_NUM_TYPES; i++) {
        options->types[i] = all;
    }
    snprintf(text, sizeof text, "%s", all ? "" : value);
    while ((name = strsep(&rest, ",")) != NULL && !all) {
        int type = find(bench_type_names, name);

        if (type < 0) {
            return complain("type", value, "u32, u64, f32, several, or all");
        }
        options->types[type] = true;
    }
    return true;
}

/* Small and large shapes, whose rows the ranks can or cannot share evenly. */
#define SHAPES_DEFAULT                                        \
    "1x1024x1024,7x256x256,64x64x64,128x512x256,257x512x384," \
    "1024x1024x1024"

/* Parses one shape of the list, up to a comma or the end. */
static bool parse_shape(const char **at, struct bench_shape *shape_p)
{
    int64_t *const sizes[] = {&shape_p->m, &shape_p->n, &shape_p->k};

    for (size_t i = 0; i < 3; i++) {
        char *end;

        errno = 0;
        *sizes[i] = strtoll(*at, &end, 10);
        if (end == *at || errno != 0 || *sizes[i] < 1 || *sizes[i] > MAX_SIDE ||
            (i < 2 && *end != 'x')) {
            return false;
        }
        *at = i < 2 ? end + 1 : end;
    }
    snprintf(shape_p->text, sizeof shape_p->text, "%lldx%lldx%lld",
             (long long)shape_p->m, (long long)shape_p->n,
             (long long)shape_p->k);
    return **at == ',' || **at == '\0';
}

static bool parse_shapes(const char *value, struct bench_options *options)
{
    char wants[128];
    const char *at = value;
    bool ok = true;

    for (options->num_shapes = 0; ok; at++) {
        ok = options->num_shapes < BENCH_MAX_SHAPES &&
             parse_shape(&at, &options->shapes[options->num_shapes++]);
        if (ok && *at == '\0') {
            return true;
        }
    }
    snprintf(wants, sizeof wants,
             "at most %d of MxNxK, comma-separated, each from 1 to %d",
             BENCH_MAX_SHAPES, MAX_SIDE);
    return complain("shapes", value, wants);
}

/* Sets the bits of the names in the list. "all" sets those in `all`. */
static bool parse_bits(const char *option, const char *value,
                       const char *const *names, unsigned all, unsigned *bits_p)
{
    char text[256], wants[256] = "several of all";
    char *rest = text, *name;
    unsigned bits = 0;
    bool ok = true;

    snprintf(text, sizeof text, "%s", value);
    while (ok && (name = strsep(&rest, ",")) != NULL) {
        int bit = find(names, name);

        ok = strcmp(name, "all") == 0 || (bit >= 0 && (all >> bit & 1) != 0);
        bits |= bit >= 0 ? 1u << bit : all;
    }
    if (ok) {
        *bits_p = bits;
        return true;
    }
    for (int i = 0; names[i] != NULL; i++) {
        size_t length = strlen(wants);

        if ((all >> i & 1) != 0) {
            snprintf(wants + length, sizeof wants - length, ", %s", names[i]);
        }
    }
    return complain(option, value, wants);
}

/* The dtypes of numbers, which can be added. */
#define DTYPES_ALL                                                   \
    ((((1u << IRIS_DTYPE_COMPLEX64) - 1) | 1u << IRIS_DTYPE_F8E4M3 | \
      1u << IRIS_DTYPE_F8E5M2) &                                     \
     ~(1u << IRIS_DTYPE_BOOL))
#define CALLS_ALL (BENCH_GRAPH | BENCH_EAGER | BENCH_WAITED)

static unsigned all_variants(void)
{
    unsigned all = 0;

    for (int i = 0; bench_variant_names[i] != NULL; i++) {
        all |= 1u << i;
    }
    return all;
}

/* Sets an option that only collectives use. */
static bool set_of_collectives(int key, const char *option, const char *value,
                               struct bench_options *options)
{
    switch (key) {
    case DTYPES:
        return parse_bits(option, value, bench_dtype_names, DTYPES_ALL,
                          &options->dtypes);
    case VARIANTS:
        return parse_bits(option, value, bench_variant_names, all_variants(),
                          &options->variants);
    default:
        return parse_bits(option, value, bench_calls_names, CALLS_ALL,
                          &options->calls);
    }
}

static bool parse_ops(const char *value, struct bench_options *options)
{
    const char *item = value;

    for (;;) {
        size_t length = strcspn(item, ",");

        if (!bench_is_known(item, length)) {
            return complain("ops", value,
                            "operations or groups that --list names");
        }
        if (item[length] == '\0') {
            break;
        }
        item += length + 1;
    }
    options->ops = value;
    return true;
}

static bool parse_seconds(const char *option, const char *value,
                          double *seconds_p)
{
    char *end;
    double seconds = strtod(value, &end);

    if (end == value || *end != '\0' || !(seconds > 0 && seconds < 1e6)) {
        return complain(option, value, "a number above 0");
    }
    *seconds_p = seconds;
    return true;
}

static bool parse_choice(const char *option, const char *value,
                         const char *const *choices, int *choice_p)
{
    char wants[64] = "";

    *choice_p = find(choices, value);
    for (int i = 0; choices[i] != NULL && *choice_p < 0; i++) {
        strcat(strcat(wants, i == 0 ? "" : " or "), choices[i]);
    }
    return *choice_p >= 0 ? true : complain(option, value, wants);
}

/* Sets one option that takes a value. */
static bool set(int key, const char *option, const char *value,
                struct bench_options *options)
{
    static const char *const formats[] = {"table", "csv", "json", NULL};
    int64_t n = 0;
    int choice = 0;
    bool ok;

    switch (key) {
    case 's':
        return parse_sizes(value, options);
    case 'o':
        return parse_ops(value, options);
    case 't':
        return parse_types(value, options);
    case SHAPES:
        return parse_shapes(value, options);
    case SECONDS:
        return parse_seconds(option, value, &options->seconds);
    case TUNE_SECONDS:
        return parse_seconds(option, value, &options->tune_seconds);
    case OUTPUT:
        options->output = value;
        return true;
    case TUNE:
        options->tune = value;
        return true;
    case DTYPES:
    case VARIANTS:
    case CALLS:
        return set_of_collectives(key, option, value, options);
    case 'p':
        ok = parse_choice(option, value, bench_pairs_names, &choice);
        options->pairs = (enum bench_pairs)choice;
        return ok;
    case 'f':
        ok = parse_choice(option, value, formats, &choice);
        options->format = (enum bench_format)choice;
        return ok;
    case INIT_HEAP:
        ok = parse_number(value, true, 1, INT64_C(1) << 46, &n);
        options->init_heap_bytes = (size_t)n;
        return ok ? true : complain(option, value, "bytes, with K, M or G");
    default:
        break;
    }
    ok = number(option, value, key != 'g' && key != SPREAD, &n);
    options->spread = key == SPREAD ? (double)n / 100 : options->spread;
    options->num_ranks = key == 'n' ? (int)n : options->num_ranks;
    options->workgroups = key == 'g' ? (unsigned)n : options->workgroups;
    options->block = key == 'b' ? (unsigned)n : options->block;
    options->iterations = key == ITERATIONS ? n : options->iterations;
    options->live = key == LIVE ? (size_t)n : options->live;
    options->init_ranks = key == INIT_RANKS ? (int)n : options->init_ranks;
    return ok;
}

static const char *name_of(int key)
{
    for (const struct option *o = long_options; o->name != NULL; o++) {
        if (o->val == key) {
            return o->name;
        }
    }
    return "";
}

/* Whether --tune has a collective to measure. */
static bool check_tune(const struct bench_options *options)
{
    bool any = options->tune == NULL;

    for (size_t op = 0; bench_collectives.ops[op] != NULL; op++) {
        any |= bench_selected(options->ops, &bench_collectives,
                              bench_collectives.ops[op]);
    }
    if (!any) {
        fprintf(stderr,
                "%s: --tune measures collectives, and --ops selects none\n",
                PROGRAM);
    }
    return any;
}

bool bench_options_parse(int argc, char **argv, struct bench_options *options_p,
                         int *code_p)
{
    int key;

    *options_p = (struct bench_options){.workgroups = 1,
                                        .block = 256,
                                        .min_bytes = 8,
                                        .max_bytes = 16 << 20,
                                        .live = 100000,
                                        .init_ranks = 8,
                                        .init_heap_bytes = (size_t)1 << 30,
                                        .ops = "all",
                                        .types = {[BENCH_U64] = true},
                                        .dtypes = 1u << IRIS_DTYPE_F32,
                                        .variants = 1u << IRIS_CCL_AUTO,
                                        .calls = BENCH_GRAPH,
                                        .size_shift = 1,
                                        .spread = 0.3,
                                        .tune_seconds = 60,
                                        .graph = true,
                                        .progress = true};
    (void)parse_shapes(SHAPES_DEFAULT, options_p);
    while ((key = getopt_long(argc, argv, "n:g:b:s:o:t:p:f:lh", long_options,
                              NULL)) != -1) {
        if (key == 'h' || key == 'l') {
            (key == 'h' ? bench_print_help : bench_print_list)();
            *code_p = 0;
            return false;
        } else if (key == TARGETS) {
            options_p->targets = true;
        } else if (key == PEER) {
            options_p->peer = true;
        } else if (key == NO_GRAPH) {
            options_p->graph = false;
        } else if (key == NO_PROGRESS) {
            options_p->progress = false;
        } else if (key == '?') {
            /* getopt has printed the option. */
            fprintf(stderr, "%s: see %s --help\n", PROGRAM, PROGRAM);
            *code_p = 2;
            return false;
        } else if (!set(key, name_of(key), optarg, options_p)) {
            *code_p = 2;
            return false;
        }
    }
    if (options_p->seconds == 0) {
        options_p->seconds =
            options_p->targets ? SECONDS_TARGETS : SECONDS_DEFAULT;
    }
    if (optind < argc) {
        fprintf(stderr, "%s: \"%s\" is no option; see %s --help\n", PROGRAM,
                argv[optind], PROGRAM);
        *code_p = 2;
        return false;
    }
    *code_p = check_tune(options_p) ? 0 : 2;
    return *code_p == 0;
}
