/* SPDX-License-Identifier: MIT
 *
 * The command line.
 */
#include "config.h"

#include "bench.h"

#include "../tools/iris.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Ends the program. */
static bool complain_of_value(struct argp_state *state, const char *option,
                              const char *value, const char *wants)
{
    argp_error(state, "--%s \"%s\": pass %s", option, value, wants);
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

static bool is_power(int64_t bytes)
{
    return (bytes & (bytes - 1)) == 0;
}

static bool parse_sizes(struct argp_state *state, const char *value,
                        struct bench_options *options)
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
        return complain_of_value(
            state, "sizes", value,
            "MIN:MAX, MIN:MAX:FACTOR or one size, in bytes, powers "
            "of two, with K, M or G");
    }
    options->min_bytes = (size_t)parts[0];
    options->max_bytes = (size_t)parts[1];
    options->size_shift = __builtin_ctzll((unsigned long long)parts[2]);
    return true;
}

/* Index of `name` in a list that ends with NULL; -1 if it is absent. */
static int find_name(const char *const *names, const char *name)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static bool parse_types(struct argp_state *state, const char *value,
                        struct bench_options *options)
{
    char text[64];
    char *rest = text, *name;
    bool all = strcmp(value, "all") == 0;

    for (int i = 0; i < BENCH_NUM_TYPES; i++) {
        options->types[i] = all;
    }
    snprintf(text, sizeof text, "%s", all ? "" : value);
    while ((name = strsep(&rest, ",")) != NULL && !all) {
        int type = find_name(bench_type_names, name);

        if (type < 0) {
            return complain_of_value(state, "type", value,
                                     "u32, u64, f32, several, or all");
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

static bool parse_shapes(struct argp_state *state, const char *value,
                         struct bench_options *options)
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
    return complain_of_value(state, "shapes", value, wants);
}

/* Sets the bits of the names in the list. "all" sets those in `all`. */
static bool parse_bits(struct argp_state *state, const char *option,
                       const char *value, const char *const *names,
                       unsigned all, unsigned *bits_p)
{
    char text[256], wants[256] = "several of all";
    char *rest = text, *name;
    unsigned bits = 0;
    bool ok = true;

    snprintf(text, sizeof text, "%s", value);
    while (ok && (name = strsep(&rest, ",")) != NULL) {
        int bit = find_name(names, name);

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
    return complain_of_value(state, option, value, wants);
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

static bool parse_ops(struct argp_state *state, const char *value,
                      struct bench_options *options)
{
    const char *item = value;

    for (;;) {
        size_t length = strcspn(item, ",");

        if (!bench_is_known(item, length)) {
            return complain_of_value(state, "ops", value,
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

static bool parse_seconds(struct argp_state *state, const char *option,
                          const char *value, double *seconds_p)
{
    char *end;
    double seconds = strtod(value, &end);

    if (end == value || *end != '\0' || !(seconds > 0 && seconds < 1e6)) {
        return complain_of_value(state, option, value, "a number above 0");
    }
    *seconds_p = seconds;
    return true;
}

static bool parse_choice(struct argp_state *state, const char *option,
                         const char *value, const char *const *choices,
                         int *choice_p)
{
    char wants[64] = "";

    *choice_p = find_name(choices, value);
    for (int i = 0; choices[i] != NULL && *choice_p < 0; i++) {
        strcat(strcat(wants, i == 0 ? "" : " or "), choices[i]);
    }
    return *choice_p >= 0 ? true
                          : complain_of_value(state, option, value, wants);
}

static void print_list(void)
{
    for (size_t g = 0; bench_groups[g] != NULL; g++) {
        printf("%s (%s)\n   ", bench_groups[g]->name, bench_groups[g]->text);
        for (size_t op = 0; bench_groups[g]->ops[op] != NULL; op++) {
            printf(" %s", bench_groups[g]->ops[op]);
        }
        printf("\n");
    }
}

/* Options without a value. Returns false for others. */
static bool set_flag(int key, struct bench_options *options)
{
    switch (key) {
    case TARGETS:
        options->targets = true;
        return true;
    case PEER:
        options->peer = true;
        return true;
    case NO_GRAPH:
        options->graph = false;
        return true;
    case NO_PROGRESS:
        options->progress = false;
        return true;
    default:
        return false;
    }
}

/* A whole number. Returns false for other options. */
static bool set_number(struct argp_state *state, int key, const char *value,
                       struct bench_options *options)
{
    const int most = INT32_MAX;

    switch (key) {
    case 'n':
        options->num_ranks = (int)tool_number(state, "ranks", value, 1, most);
        return true;
    case 'g':
        options->workgroups =
            (unsigned)tool_number(state, "workgroups", value, 0, most);
        return true;
    case 'b':
        options->block = (unsigned)tool_number(state, "block", value, 1, most);
        return true;
    case ITERATIONS:
        options->iterations = tool_number(state, "iterations", value, 1, most);
        return true;
    case LIVE:
        options->live = (size_t)tool_number(state, "live", value, 1, most);
        return true;
    case INIT_RANKS:
        options->init_ranks =
            (int)tool_number(state, "init-ranks", value, 1, most);
        return true;
    case SPREAD:
        options->spread =
            (double)tool_number(state, "spread", value, 0, most) / 100;
        return true;
    default:
        return false;
    }
}

/* Lists and words. Returns false for other options. */
static bool set_list(struct argp_state *state, int key, const char *value,
                     struct bench_options *options)
{
    static const char *const formats[] = {"table", "csv", "json", NULL};
    int choice = 0;

    switch (key) {
    case 's':
        return parse_sizes(state, value, options);
    case 'o':
        return parse_ops(state, value, options);
    case 't':
        return parse_types(state, value, options);
    case SHAPES:
        return parse_shapes(state, value, options);
    case DTYPES:
        return parse_bits(state, "dtypes", value, bench_dtype_names, DTYPES_ALL,
                          &options->dtypes);
    case VARIANTS:
        return parse_bits(state, "variants", value, bench_variant_names,
                          all_variants(), &options->variants);
    case CALLS:
        return parse_bits(state, "calls", value, bench_calls_names, CALLS_ALL,
                          &options->calls);
    case 'p':
        (void)parse_choice(state, "pairs", value, bench_pairs_names, &choice);
        options->pairs = (enum bench_pairs)choice;
        return true;
    case 'f':
        (void)parse_choice(state, "format", value, formats, &choice);
        options->format = (enum bench_format)choice;
        return true;
    default:
        return false;
    }
}

static error_t parse_bench(int key, char *arg, struct argp_state *state)
{
    struct bench_options *options = state->input;
    int64_t bytes = 0;

    switch (key) {
    case 'l':
        print_list();
        exit(TOOL_OK);
    case SECONDS:
        (void)parse_seconds(state, "seconds", arg, &options->seconds);
        return 0;
    case TUNE_SECONDS:
        (void)parse_seconds(state, "tune-seconds", arg, &options->tune_seconds);
        return 0;
    case OUTPUT:
        options->output = arg;
        return 0;
    case TUNE:
        options->tune = arg;
        return 0;
    case INIT_HEAP:
        if (!parse_number(arg, true, 1, INT64_C(1) << 46, &bytes)) {
            (void)complain_of_value(state, "init-heap", arg,
                                    "bytes, with K, M or G");
        }
        options->init_heap_bytes = (size_t)bytes;
        return 0;
    default:
        return set_flag(key, options) || set_number(state, key, arg, options) ||
                       set_list(state, key, arg, options)
                   ? 0
                   : ARGP_ERR_UNKNOWN;
    }
}

/* clang-format off */
static const struct argp_option bench_rows[] = {
    {"ranks", 'n', "N", 0, "Ranks (default: IRIS_NUM_RANKS, else 2)", 0},
    {"workgroups", 'g', "N", 0,
     "Workgroups of a kernel (default 1; 0: one for each compute unit)", 0},
    {"block", 'b', "N", 0, "Lanes of a workgroup (default 256)", 0},
    {"sizes", 's', "MIN:MAX[:FACTOR]", 0,
     "Bytes, powers of two, with K, M or G (default 8:16M:2)", 0},
    {"ops", 'o', "LIST", 0,
     "Operations or groups, comma-separated (default all; --list names them)", 0},
    {"type", 't', "LIST", 0,
     "Types of atomics: u32, u64, f32 or all (default u64)", 0},
    {"pairs", 'p', "HOW", 0,
     "ring: each rank with the next; all: each with every other; one: rank 0 "
     "with rank 1, others idle (default ring)", 0},
    {"seconds", SECONDS, "S", 0,
     "Time for a point (default 0.1; with --targets 0.3)", 0},
    {"iterations", ITERATIONS, "N", 0,
     "Operations of a point, instead of a time", 0},
    {"live", LIVE, "N", 0, "Live allocations for malloc (default 100000)", 0},
    {"init-ranks", INIT_RANKS, "N", 0, "Ranks that init starts (default 8)", 0},
    {"init-heap", INIT_HEAP, "BYTES", 0, "Heap of each of them (default 1G)", 0},
    {"format", 'f', "FORMAT", 0, "table, csv or json (default table)", 0},
    {"output", OUTPUT, "FILE", 0, "Write to FILE instead of stdout", 0},
    {"dtypes", DTYPES, "LIST", 0,
     "Of collectives: i8 to u64, f16, bf16, f32, f64, f8e4m3, f8e5m2 or all; "
     "of fused operations those of f16, bf16 and f32 (default f32)", 0},
    {"shapes", SHAPES, "LIST", 0,
     "Of fused operations: MxNxK, comma-separated, of the whole product of "
     "(M, K) and (K, N) (default 1x1024x1024 to 1024x1024x1024)", 0},
    {"variants", VARIANTS, "LIST", 0,
     "Of collectives: auto, one_shot and so on, or all (default auto)", 0},
    {"calls", CALLS, "LIST", 0,
     "Of collectives: graph, eager (enqueued one by one), waited (and each "
     "waited for) or all (default graph, where there are graphs)", 0},
    {"peer", PEER, NULL, 0,
     "Measure NCCL or RCCL beside collectives and fused operations, on a CPU "
     "Open MPI (under mpirun), with CBLAS for products", 0},
    {"tune", TUNE, "FILE", 0,
     "Write which variants of collectives are best here: for IRIS_CCL_TUNING", 0},
    {"tune-seconds", TUNE_SECONDS, "S", 0, "That this may take (default 120)", 0},
    {"spread", SPREAD, "PERCENT", 0,
     "How far apart its repeats may be (default 30)", 0},
    {"targets", TARGETS, NULL, 0,
     "Measure operations with a target, and compare", 0},
    {"no-graph", NO_GRAPH, NULL, 0,
     "On a GPU, enqueue one by one instead of in graphs", 0},
    {"no-progress", NO_PROGRESS, NULL, 0,
     "No progress line on the terminal", 0},
    {"list", 'l', NULL, 0, "List operations and groups", 0},
    {0},
};
/* clang-format on */

/* --tune has to have a collective to measure. */
static void check_tune(const struct bench_options *options)
{
    bool any = options->tune == NULL;

    for (size_t op = 0; bench_collectives.ops[op] != NULL; op++) {
        any |= bench_selected(options->ops, &bench_collectives,
                              bench_collectives.ops[op]);
    }
    if (!any) {
        fprintf(stderr, "iris bench: --tune measures collectives, and --ops "
                        "selects none\n");
        exit(TOOL_USAGE);
    }
}

void bench_options_parse(int argc, char **argv, struct bench_options *options_p)
{
    static const struct argp argp = {
        .options = bench_rows,
        .parser = parse_bench,
        .doc = "Measures latency and bandwidth of every operation, and checks "
               "the values it moves. Runs its ranks itself, as threads "
               "(IRIS_SPAWN=processes: as processes), or is started by mpirun, "
               "torchrun or iris run.\v"
               "Exit status: 0, or 1 if a value was wrong or a call failed, or "
               "2 for a wrong command line. Timings never make it fail.",
    };

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
                                        .tune_seconds = 120,
                                        .graph = true,
                                        .progress = true};
    (void)parse_shapes(NULL, SHAPES_DEFAULT, options_p);
    tool_parse(&argp, argc, argv, options_p);
    if (options_p->seconds == 0) {
        options_p->seconds =
            options_p->targets ? SECONDS_TARGETS : SECONDS_DEFAULT;
    }
    check_tune(options_p);
}
