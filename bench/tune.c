/* SPDX-License-Identifier: MIT
 *
 * --tune: measures variants and numbers of workgroups of collectives, and
 * writes the best for each operation and size into a file for IRIS_CCL_TUNING.
 * docs/collectives.md has the format.
 */
#include "config.h"

#include "report.h"
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Another way is chosen only if its time is less than this share of the best
 * one's, so that noise does not decide. */
#define MARGIN 0.97

/* Limits for the time of one measurement, and the share of the whole time that
 * is for measurements. The rest is for the work in between. */
#define MOST_SECONDS 0.1
#define LEAST_SECONDS 0.005
#define MEASURING 0.6
#define MOST_SHIFT 8 /* factor from size to size */

/* The number of repeats of a measurement. The middle one counts. */
#define TUNE_REPEATS 3

/* The number of powers of two. */
#define MAX_SIZES 64

/* The library's choice, its variants, and the numbers of workgroups of one
 * variant. */
#define MAX_WAYS 48

struct tuning {
    FILE *out; /* NULL except on rank 0 */
    char path[4096];
    char part[4096]; /* name of the file until it is complete */
    char name[64];   /* name of the current measurement */
    double spread;   /* allowed spread of repeats, as a share of the least */
    int64_t end_ns;
    int64_t part_ns; /* end of the operation's part of the time */
    int parts_left;
    int points; /* repeated measurements; unsteady: those that disagree */
    int unsteady;
    double least_us; /* times of the last unsteady measurement */
    double middle_us;
};

struct rule {
    size_t bytes; /* the most bytes of a call with this rule */
    iris_ccl_variant_t variant;
    int cus; /* 0: the library decides */
    double us;
};

/* One way to call a collective, and its times in alternating repeats. */
struct way {
    iris_ccl_variant_t variant; /* IRIS_CCL_AUTO: the library's table */
    int cus;                    /* 0: the library decides */
    double us[TUNE_REPEATS];    /* 0: the library refuses this way */
};

struct ways {
    struct way list[MAX_WAYS];
    int count;
};

/* ---- Repeats ---- */

/* Sorts the times of the repeats. Returns whether the middle one is near enough
 * to the least one. The greatest one may be an accident. */
static bool is_steady(struct tuning *tuning, double *us)
{
    double spread = tuning->spread;
    double middle = bench_quantile(us, TUNE_REPEATS, 0.5); /* sorts them */
    bool steady = middle <= us[0] * (1 + spread);

    tuning->points++;
    if (!steady) {
        tuning->unsteady++;
        tuning->least_us = us[0];
        tuning->middle_us = middle;
    }
    return steady;
}

/* Gives the same result on all ranks, because the times are the slowest rank's. */
static bool is_busy(const struct bench *b, const struct tuning *tuning)
{
    if (tuning->unsteady * 4 <= tuning->points) {
        return false;
    }
    if (b->rank == 0) {
        fprintf(stderr,
                "iris bench: --tune \"%s\": %d of %d repeated measurements "
                "disagree, the last by %.1f and %.1f us: the machine is busy; "
                "nothing is written. Try again when it is idle, or with more "
                "--seconds\n",
                b->options.tune, tuning->unsteady, tuning->points,
                tuning->least_us, tuning->middle_us);
    }
    return true;
}

/* ---- Time ---- */

/* Whether the time for `what` is over, with the same result on all ranks. If it
 * is, rank 0 prints this. Collective. */
static iris_status_t is_late(struct bench *b, const struct tuning *tuning,
                             const char *what, bool *late_p)
{
    double late = b->rank == 0 && bench_now_ns() > tuning->part_ns;
    iris_status_t status = bench_max(b, &late, 1);

    *late_p = late > 0;
    if (*late_p && b->rank == 0) {
        fprintf(stderr,
                "iris bench: --tune: no time for all of %s: the rest of it is "
                "left to the library; raise --tune-seconds\n",
                what);
    }
    return status;
}

/* Begins an operation, which gets its part of the remaining time. */
static void begin_part(struct tuning *tuning)
{
    int64_t now = bench_now_ns();

    tuning->part_ns = now + (tuning->end_ns - now) / tuning->parts_left;
    tuning->parts_left--;
}

/* The most ways to measure for one size of an operation. */
static size_t count_ways(const struct bench *b, enum bench_ccl_op op)
{
    size_t ways = 1;

    for (int v = IRIS_CCL_AUTO + 1; bench_variant_names[v] != NULL; v++) {
        ways += bench_ccl_has(op, (iris_ccl_variant_t)v, true);
    }
    for (int cus = 1; cus <= iris_num_cus(b->iris); cus *= 2) {
        ways++;
    }
    return ways;
}

static size_t count_points(const struct bench *b)
{
    const struct bench_options *options = &b->options;
    size_t sizes = 0, points = 0;

    for (size_t bytes = options->min_bytes; bytes <= options->max_bytes;
         bytes <<= options->size_shift) {
        sizes++;
    }
    for (size_t op = 0; bench_collectives.ops[op] != NULL; op++) {
        if (bench_selected(options->ops, &bench_collectives,
                           bench_collectives.ops[op])) {
            points +=
                TUNE_REPEATS * sizes * count_ways(b, (enum bench_ccl_op)op);
        }
    }
    return points;
}

/* Shares the time among the measurements. If there is too little time, selects
 * fewer sizes. All ranks get the same result. */
static void share_time(struct bench *b, struct tuning *tuning)
{
    struct bench_options *options = &b->options;
    double time = MEASURING * options->tune_seconds;
    double most =
        options->seconds < MOST_SECONDS ? options->seconds : MOST_SECONDS;

    while (time / (double)count_points(b) < LEAST_SECONDS &&
           options->size_shift < MOST_SHIFT) {
        options->size_shift++;
    }
    options->seconds = time / (double)count_points(b);
    options->seconds = options->seconds < most ? options->seconds : most;
    tuning->end_ns = bench_now_ns() + (int64_t)(1e9 * options->tune_seconds);
    for (size_t op = 0; bench_collectives.ops[op] != NULL; op++) {
        tuning->parts_left += bench_selected(options->ops, &bench_collectives,
                                             bench_collectives.ops[op]);
    }
    if (b->rank == 0) {
        fprintf(stderr,
                "iris bench: --tune: at most %zu measurements of %.0f ms, "
                "each size %d times the last; ends within about %.0f s\n",
                count_points(b), 1e3 * options->seconds,
                1 << options->size_shift, options->tune_seconds);
    }
}

/* Prints progress on rank 0. */
static void say_done(const struct bench *b, const struct tuning *tuning,
                     const char *what)
{
    double left = (double)(tuning->end_ns - bench_now_ns()) / 1e9;

    if (b->rank == 0 && b->options.progress) {
        fprintf(stderr, "iris bench: --tune: %s after %.0f of %.0f s\n", what,
                b->options.tune_seconds - left, b->options.tune_seconds);
    }
}

/* ---- Ways ---- */

/* Measures one way once. Skips a way that the library refuses (more workgroups
 * than can run at once): it refuses on all ranks alike. */
static iris_status_t time_way(struct bench *b, struct tuning *tuning,
                              const struct bench_ccl *call, size_t bytes,
                              double *us_p)
{
    struct bench_row row = {.group = bench_collectives.name,
                            .op = bench_collectives.ops[call->op],
                            .variant = tuning->name,
                            .bytes = bytes,
                            .grid = (unsigned)call->num_cus,
                            .dtype = call->dtype,
                            .how = call->variant,
                            .pairs = b->options.pairs};
    iris_status_t status;

    snprintf(tuning->name, sizeof tuning->name, "%s, %d wg",
             iris_ccl_variant_name(call->variant), call->num_cus);
    bench_progress(b, &row);
    b->no_graph = (b->options.calls & BENCH_GRAPH) == 0;
    b->wait_each = b->options.calls == BENCH_WAITED;
    status = bench_ccl_time(b, call, &row);
    row.calls = b->wait_each                 ? "waited"
                : b->graphs[0].graph != NULL ? "graph"
                                             : "eager";
    bench_graphs_drop(b);
    b->wait_each = false;
    if (status == IRIS_ERR_INVALID) {
        return IRIS_OK;
    }
    if (status == IRIS_OK) {
        bench_rate_bytes(&row, bytes, NULL);
        row.bus_rate = row.rate * bench_ccl_bus_share(call);
        bench_report_row(b, &row);
        *us_p = row.median_us;
    }
    return status;
}

/* Measures the ways from `first` on in turns, so that the machine's other work
 * affects all of them alike. */
static iris_status_t time_ways(struct bench *b, struct tuning *tuning,
                               struct bench_ccl *call, size_t bytes,
                               struct ways *ways, int first)
{
    iris_status_t status = IRIS_OK;

    for (int repeat = 0; repeat < TUNE_REPEATS; repeat++) {
        for (int i = first; i < ways->count && status == IRIS_OK; i++) {
            call->variant = ways->list[i].variant;
            call->num_cus = ways->list[i].cus;
            status =
                time_way(b, tuning, call, bytes, &ways->list[i].us[repeat]);
        }
    }
    return status;
}

static void add_way(struct ways *ways, iris_ccl_variant_t variant, int cus)
{
    if (ways->count < MAX_WAYS) {
        ways->list[ways->count++] =
            (struct way){.variant = variant, .cus = cus};
    }
}

/* The fastest way from `first` on whose repeats agree, or `fallback`. */
static int fastest(struct tuning *tuning, struct ways *ways, int first,
                   int fallback)
{
    int best = fallback;

    for (int i = first; i < ways->count; i++) {
        struct way *way = &ways->list[i];

        if (way->us[0] > 0 && is_steady(tuning, way->us) &&
            (best == fallback || way->us[TUNE_REPEATS / 2] <
                                     ways->list[best].us[TUNE_REPEATS / 2])) {
            best = i;
        }
    }
    return best;
}

/* Adds the variants that a rule may name. On a CPU one_shot needs all members'
 * buffers on the heap, so the library ignores rules that name it. */
static void add_variants(const struct bench *b, enum bench_ccl_op op,
                         struct ways *ways)
{
    bool on_gpu = iris_stream_native(b->iris, NULL) != NULL;

    for (int v = IRIS_CCL_AUTO + 1; bench_variant_names[v] != NULL; v++) {
        if (bench_ccl_has(op, (iris_ccl_variant_t)v, true) &&
            (on_gpu || v != IRIS_CCL_ONE_SHOT)) {
            add_way(ways, (iris_ccl_variant_t)v, 0);
        }
    }
}

/* Finds the best way for one size. This is the library's own choice, unless the
 * fastest variant takes clearly less time, with its default or another number
 * of workgroups. */
static iris_status_t tune_size(struct bench *b, struct tuning *tuning,
                               enum bench_ccl_op op, size_t bytes,
                               struct rule *best_p)
{
    iris_dtype_t dtype =
        (iris_dtype_t)__builtin_ctz(b->options.dtypes); /* the first */
    struct bench_ccl call = bench_ccl_call(b, op, bytes, dtype);
    struct ways ways = {.count = 0};
    iris_status_t status;
    int best, with_cus;

    *best_p = (struct rule){.bytes = call.count * iris_dtype_size(dtype)};
    if (call.count == 0) {
        return IRIS_OK;
    }
    add_way(&ways, IRIS_CCL_AUTO, 0);
    add_variants(b, op, &ways);
    status = time_ways(b, tuning, &call, bytes, &ways, 0);
    best = fastest(tuning, &ways, 1, 0);
    with_cus = ways.count;
    for (int cus = 1; cus <= iris_num_cus(b->iris) && best != 0; cus *= 2) {
        add_way(&ways, ways.list[best].variant, cus);
    }
    if (status == IRIS_OK) {
        status = time_ways(b, tuning, &call, bytes, &ways, with_cus);
    }
    with_cus = fastest(tuning, &ways, with_cus, best);
    best = ways.list[with_cus].us[TUNE_REPEATS / 2] <
                   MARGIN * ways.list[best].us[TUNE_REPEATS / 2]
               ? with_cus
               : best;
    if (!is_steady(tuning, ways.list[0].us) ||
        ways.list[best].us[TUNE_REPEATS / 2] >=
            MARGIN * ways.list[0].us[TUNE_REPEATS / 2]) {
        best = 0;
    }
    best_p->variant = ways.list[best].variant;
    best_p->cus = ways.list[best].cus;
    best_p->us = ways.list[best].us[TUNE_REPEATS / 2];
    return status;
}

/* Writes the rules of one operation, for the measured number of members and for
 * sizes between the smallest and the largest one. Leaves out a rule that equals
 * the next one. The library's table decides smaller and larger calls. */
static void write_rules(const struct bench *b, struct tuning *tuning,
                        const char *op, const struct rule *rules, size_t count)
{
    const char *device =
        iris_stream_native(b->iris, NULL) != NULL ? "gpu" : "cpu";

    if (count > 0 && rules[0].variant != IRIS_CCL_AUTO &&
        rules[0].bytes >> b->options.size_shift > 0 && tuning->out != NULL) {
        fprintf(tuning->out, "%s %s =%d %zu auto 0\n", op, device, b->num_ranks,
                rules[0].bytes >> b->options.size_shift);
    }
    for (size_t i = 0; i < count && tuning->out != NULL; i++) {
        if (i + 1 < count && rules[i].variant == rules[i + 1].variant &&
            rules[i].cus == rules[i + 1].cus) {
            continue;
        }
        fprintf(tuning->out, "%s %s =%d %zu %s %d\n", op, device, b->num_ranks,
                rules[i].bytes, iris_ccl_variant_name(rules[i].variant),
                rules[i].cus);
    }
}

static iris_status_t tune_op(struct bench *b, struct tuning *tuning,
                             enum bench_ccl_op op)
{
    const struct bench_options *options = &b->options;
    struct rule rules[MAX_SIZES];
    const char *name = bench_collectives.ops[op];
    size_t count = 0;
    bool late = false;
    iris_status_t status = bench_collectives.open(b);

    for (size_t bytes = options->min_bytes;
         bytes <= options->max_bytes && status == IRIS_OK && !late;
         bytes <<= options->size_shift) {
        status = is_late(b, tuning, name, &late);
        if (status == IRIS_OK && !late) {
            status = tune_size(b, tuning, op, bytes, &rules[count]);
            count += rules[count].us > 0;
        }
    }
    if (status == IRIS_OK) {
        write_rules(b, tuning, name, rules, count);
        say_done(b, tuning, name);
    }
    bench_collectives.close(b);
    b->state = NULL;
    return status;
}

/* ---- The file ---- */

/* Opens the file on rank 0. Returns 0 or an errno. The file gets its name only
 * when it is complete. */
static int open_file(const struct bench *b, struct tuning *tuning)
{
    const struct bench_metadata *about = &b->report->metadata;

    if (snprintf(tuning->path, sizeof tuning->path, "%s", b->options.tune) >=
            (int)sizeof tuning->path ||
        snprintf(tuning->part, sizeof tuning->part, "%s.part",
                 b->options.tune) >= (int)sizeof tuning->part) {
        return ENAMETOOLONG;
    }
    tuning->out = fopen(tuning->part, "we");
    if (tuning->out == NULL) {
        return errno;
    }
    fprintf(tuning->out,
            "format 2\n"
            "# Written by iris bench --tune, for IRIS_CCL_TUNING.\n"
            "# %s, %s, Iris %s, backend %s, %d ranks (%s), %s\n"
            "# op device members bytes variant cus\n",
            about->hostname, about->cpu, about->version, about->backend,
            b->num_ranks, about->ranks_as, about->date);
    return 0;
}

/* Closes the file, and gives it its name if `keep`. Returns 0 or an errno. */
static int close_file(struct tuning *tuning, bool keep)
{
    int ret =
        fflush(tuning->out) != 0 || fsync(fileno(tuning->out)) != 0 ? errno : 0;

    if (fclose(tuning->out) != 0 && ret == 0) {
        ret = errno;
    }
    if (ret == 0 && keep && rename(tuning->part, tuning->path) != 0) {
        ret = errno;
    }
    if (ret != 0 || !keep) {
        unlink(tuning->part);
    }
    return ret;
}

/* Gives all ranks the result of rank 0. */
static iris_status_t agree(struct bench *b, int ret)
{
    double failed = ret;
    iris_status_t status = bench_max(b, &failed, 1);

    if (ret != 0) {
        fprintf(stderr, "iris bench: --tune \"%s\": %s; nothing is written\n",
                b->options.tune, strerror(ret));
    }
    return status == IRIS_OK && failed != 0 ? IRIS_ERR_SYSTEM : status;
}

iris_status_t bench_tune(struct bench *b)
{
    struct tuning *tuning = calloc(1, sizeof *tuning);
    int ret = tuning == NULL ? ENOMEM : 0;
    iris_status_t status;
    bool is_whole;

    if (ret == 0) {
        tuning->spread = b->options.spread;
        share_time(b, tuning);
    }
    if (ret == 0 && b->rank == 0) {
        ret = open_file(b, tuning);
    }
    status = agree(b, ret);
    for (size_t op = 0; bench_collectives.ops[op] != NULL && status == IRIS_OK;
         op++) {
        if (bench_selected(b->options.ops, &bench_collectives,
                           bench_collectives.ops[op])) {
            begin_part(tuning);
            status = tune_op(b, tuning, (enum bench_ccl_op)op);
        }
    }
    bench_progress(b, NULL);
    ret = 0;
    is_whole = status == IRIS_OK && !is_busy(b, tuning);
    if (tuning != NULL && tuning->out != NULL) {
        ret = close_file(tuning, is_whole);
    }
    if (status == IRIS_OK) {
        status = is_whole ? agree(b, ret)
                          : iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                                        "repeated measurements disagree");
    }
    free(tuning);
    return status;
}
