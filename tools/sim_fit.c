/* SPDX-License-Identifier: MIT
 *
 * iris sim fit: computes a platform's costs from measurements of iris bench.
 * Costs are not negative, and minimise the sum of the squares of the rows'
 * relative errors.
 */
#include "config.h"

#include "iris.h"
#include "sim.h"
#include "base/base.h"
#include "ccl/ccl.h"
#include "trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS 1000
#define LEAST_CACHE_MB 1
#define MOST_CACHE_MB 256
#define MB 1e6

/* A row of a report, and its costs. */
struct row {
    char op[32], variant[32], calls[16];
    uint64_t bytes;
    double us;
    int ranks;
    double amounts[SIM_COSTS];
};

struct table {
    struct row *rows;
    size_t count;
    size_t unknown; /* rows that the model does not have */
};

/* ---- Reading ---- */

static void set_real(const struct iris_json *json, void *to, size_t bytes)
{
    (void)bytes;
    *(double *)to = strtod(json->text, NULL);
}

static const struct iris_json_field row_fields[] = {
    IRIS_JSON_FIELD(struct row, op, iris_i_json_set_text),
    IRIS_JSON_FIELD(struct row, variant, iris_i_json_set_text),
    IRIS_JSON_FIELD(struct row, calls, iris_i_json_set_text),
    IRIS_JSON_FIELD(struct row, bytes, iris_i_json_set_number),
    IRIS_JSON_FIELD_OF(struct row, "median_us", us, set_real),
    {NULL, NULL, 0, 0}};

/* Whether the model has the row. Sets its amounts, on a platform with that
 * cache. */
static int find_amounts(const struct sim_platform *platform, struct row *row)
{
    struct sim_call call = {.bytes = row->bytes, .ranks = row->ranks};
    int op = iris_i_ccl_find_op(row->op);

    memset(row->amounts, 0, sizeof row->amounts);
    if (strcmp(row->op, "flag") == 0) {
        row->amounts[SIM_FLAG] = 1;
        return 1;
    }
    if (strcmp(row->op, "memcpy_to_peer") == 0) {
        row->amounts[SIM_COPY] = 1;
        row->amounts[SIM_LINK] = (double)row->bytes / MB;
        return 1;
    }
    if (op < 0 || row->ranks < 2 || strcmp(row->calls, "waited") == 0) {
        return 0;
    }
    call.op = (enum iris_ccl_op)op;
    if (row->variant[0] != '\0' && strcmp(row->variant, "auto") != 0) {
        call.variant = iris_i_ccl_find_variant(call.op, row->variant);
        if (call.variant == IRIS_CCL_AUTO) {
            return 0;
        }
    }
    memcpy(row->amounts, sim_plan(platform, &call).amounts,
           sizeof row->amounts);
    return 1;
}

static int add_row(const struct sim_platform *platform, struct table *table,
                   struct row *row)
{
    struct row *one;

    if (!(row->us > 0) || !find_amounts(platform, row)) {
        table->unknown++;
        return 0;
    }
    one = iris_i_grow(&table->rows, &table->count, sizeof *one);
    if (one == NULL) {
        return -1;
    }
    *one = *row;
    return 0;
}

/* Reads the list of results. A row may have its own number of ranks. */
static int read_rows(struct iris_json *json,
                     const struct sim_platform *platform, struct table *table,
                     int ranks)
{
    struct row row;

    if (iris_i_json_next(json) != IRIS_JSON_ARRAY) {
        return -1;
    }
    while (iris_i_json_next(json) == IRIS_JSON_OBJECT) {
        memset(&row, 0, sizeof row);
        row.ranks = ranks;
        if (iris_i_json_members(json, row_fields, &row) != 0 ||
            add_row(platform, table, &row) != 0) {
            return -1;
        }
    }
    return 0;
}

/* The number of ranks, and whether they have GPUs. */
static int read_metadata(struct iris_json *json, struct sim_platform *platform,
                         int *ranks_p)
{
    enum iris_json_token token = iris_i_json_next(json);
    char key[16];

    if (token != IRIS_JSON_OBJECT) {
        return -1;
    }
    while ((token = iris_i_json_next(json)) == IRIS_JSON_KEY) {
        snprintf(key, sizeof key, "%.15s", json->text);
        token = iris_i_json_next(json);
        if (strcmp(key, "ranks") == 0) {
            *ranks_p = atoi(json->text);
        } else if (strcmp(key, "gpu") == 0) {
            platform->gpu = strcmp(json->text, "true") == 0;
        }
        if (iris_i_json_skip(json, token) == IRIS_JSON_ERROR) {
            return -1;
        }
    }
    return token == IRIS_JSON_OBJECT_END ? 0 : -1;
}

static int read_report(const char *path, struct sim_platform *platform,
                       struct table *table)
{
    struct iris_json json;
    int ranks = 0, ret = iris_i_json_open(&json, path), opened = ret == 0;
    enum iris_json_token token = IRIS_JSON_END;

    if (opened && iris_i_json_next(&json) != IRIS_JSON_OBJECT) {
        ret = -1;
    }
    while (ret == 0 && (token = iris_i_json_next(&json)) == IRIS_JSON_KEY) {
        if (strcmp(json.text, "metadata") == 0) {
            ret = read_metadata(&json, platform, &ranks);
        } else if (strcmp(json.text, "results") == 0) {
            ret = read_rows(&json, platform, table, ranks);
        } else if (iris_i_json_skip(&json, iris_i_json_next(&json)) ==
                   IRIS_JSON_ERROR) {
            ret = -1;
        }
    }
    if (opened) {
        iris_i_json_close(&json);
    }
    if (ret != 0 || token != IRIS_JSON_OBJECT_END) {
        fprintf(stderr, "iris sim: %s\n",
                json.error[0] != '\0' ? json.error : path);
        return -1;
    }
    return 0;
}

/* ---- Fitting ---- */

/* Fits the costs that occur in the rows, without row `left_out`, into
 * *platform_p. It starts from the values there, and keeps costs that occur in
 * no row. It sets one cost after the other to its best value of at least 0,
 * which ends at the smallest sum. */
static void fit_costs(const struct table *table, size_t left_out,
                      struct sim_platform *platform_p)
{
    double product[SIM_COSTS][SIM_COSTS] = {{0}}, right[SIM_COSTS] = {0};
    double *costs = platform_p->costs;

    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];

        for (int a = 0; i != left_out && a < SIM_COSTS; a++) {
            right[a] += row->amounts[a] / row->us;
            for (int b = 0; b < SIM_COSTS; b++) {
                product[a][b] +=
                    row->amounts[a] * row->amounts[b] / (row->us * row->us);
            }
        }
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (int a = 0; a < SIM_COSTS; a++) {
            double rest = right[a];

            for (int b = 0; b < SIM_COSTS; b++) {
                rest -= b == a ? 0 : product[a][b] * costs[b];
            }
            if (product[a][a] > 0) {
                costs[a] = rest > 0 ? rest / product[a][a] : 0;
            }
        }
    }
}

static double sum_of_squares(const struct table *table, size_t left_out,
                             const struct sim_platform *platform)
{
    double sum = 0;

    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        double error = sim_time(platform, row->amounts) / row->us - 1;

        sum += i == left_out ? 0 : error * error;
    }
    return sum;
}

static void describe_all(const struct sim_platform *platform,
                         struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        (void)find_amounts(platform, &table->rows[i]);
    }
}

/* Fits with the best size of the cache, and sets the rows' amounts for it. */
static void fit_platform(struct table *table, size_t left_out,
                         const struct sim_platform *first,
                         struct sim_platform *platform_p)
{
    double least = INFINITY, sum;

    for (double mb = 0; mb <= MOST_CACHE_MB;
         mb = mb == 0 ? LEAST_CACHE_MB : mb * M_SQRT2) {
        struct sim_platform platform = *first;

        platform.cache_mb = mb;
        describe_all(&platform, table);
        fit_costs(table, left_out, &platform);
        sum = sum_of_squares(table, left_out, &platform);
        if (sum < least) {
            least = mb == 0 ? 0.9 * sum : sum; /* a cache must be worth it */
            *platform_p = platform;
        }
    }
    describe_all(platform_p, table);
}

/* ---- Reporting ---- */

struct errors {
    double sum, worst;
    size_t worst_row;
};

static void add_error(struct errors *errors, double error, size_t row)
{
    errors->sum += fabs(error);
    if (fabs(error) > fabs(errors->worst)) {
        errors->worst = error;
        errors->worst_row = row;
    }
}

static void print_mean(const char *label, const struct errors *errors,
                       const struct table *table)
{
    const struct row *worst = &table->rows[errors->worst_row];

    printf("%s: mean error %.2f %%, worst %+.1f %% (%s of %llu bytes)\n", label,
           100 * errors->sum / (double)table->count, 100 * errors->worst,
           worst->op, (unsigned long long)worst->bytes);
}

static void print_report(struct table *table, const struct sim_platform *first,
                         const struct sim_platform *fitted)
{
    struct errors own = {0}, out = {0};

    printf("%-16s %12s %5s %12s %12s %8s %14s\n", "operation", "bytes", "ranks",
           "measured us", "modelled us", "error %", "left out, %");
    for (size_t i = 0; i < table->count; i++) {
        struct row *row = &table->rows[i];
        struct sim_platform without;
        double us, error, left;

        (void)find_amounts(fitted, row);
        us = sim_time(fitted, row->amounts);
        error = us / row->us - 1;
        fit_platform(table, i, first, &without);
        left = sim_time(&without, row->amounts) / row->us - 1;
        add_error(&own, error, i);
        add_error(&out, left, i);
        printf("%-16s %12llu %5d %12.3f %12.3f %+8.1f %+14.1f\n", row->op,
               (unsigned long long)row->bytes, row->ranks, row->us, us,
               100 * error, 100 * left);
    }
    print_mean("all rows", &own, table);
    print_mean("leave-one-out", &out, table);
    if (table->unknown > 0) {
        printf("%zu rows are of operations that the model does not have\n",
               table->unknown);
    }
}

static int write_platform(const struct sim_platform *platform)
{
    FILE *file = sim_options.output == NULL
                     ? NULL
                     : tool_open("iris sim", sim_options.output);

    if (sim_options.output == NULL) {
        return 0;
    }
    if (file == NULL) {
        return 1;
    }
    sim_platform_write(platform, file);
    return tool_close("iris sim", sim_options.output, file);
}

int sim_fit_part(char **words, int num_words)
{
    struct sim_platform first = {
        .name = "fitted", .gpu = 1, .node_ranks = 8, .links = 1};
    struct sim_platform fitted;
    struct table table = {0};
    int ret = 0;

    if (sim_options.platform != NULL) {
        ret = sim_platform_given(&first);
    }
    for (int i = 0; ret == 0 && i < num_words; i++) {
        ret = read_report(words[i], &first, &table);
    }
    if (ret == 0 && table.count < 2) {
        fprintf(stderr, "iris sim fit: %zu rows are too few\n", table.count);
        ret = -1;
    }
    if (ret == 0) {
        fit_platform(&table, table.count, &first, &fitted);
        print_report(&table, &first, &fitted);
        ret = write_platform(&fitted);
    }
    free(table.rows);
    return ret != 0 ? 1 : 0;
}
