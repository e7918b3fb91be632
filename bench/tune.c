/* SPDX-License-Identifier: MIT
 *
 * --tune: measures the variants of collectives, within a time, and writes the
 * best for each size into a file that IRIS_CCL_TUNING or src/ccl/choices takes.
 * docs/collectives.md has the format.
 */
#include "config.h"

#include "choices.h"
#include "report.h"
#include "base/base.h"
#include "context/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limits for the time of one measurement, and the share of the whole time that
 * is for measurements. The rest is for the work in between. */
#define MOST_SECONDS 0.1
#define LEAST_SECONDS 0.005
#define MEASURING 0.6
#define MOST_SHIFT 8 /* factor from size to size */

/* The measurements of an operation's size: 3 repeats of at most this number of
 * variants, which rules may name. */
#define MEASUREMENTS ((size_t)3 * 4)

struct tuning {
    struct bench *b;
    struct bench_chooser chooser;
    char path[4096];
    char part[4096]; /* name of the file until it is complete */
    int64_t end_ns;
    int64_t part_ns; /* end of the operation's part of the time */
    int parts_left;
};

/* Gives the same result on all ranks, because the times are the slowest rank's. */
static bool is_busy(const struct bench *b, const struct bench_chooser *chooser)
{
    if (chooser->unsteady * 4 <= chooser->points) {
        return false;
    }
    if (b->rank == 0) {
        fprintf(stderr,
                "iris bench: --tune \"%s\": %d of %d repeated measurements "
                "disagree, the last by %.1f and %.1f us: the machine is busy; "
                "nothing is written. Try again when it is idle, or with more "
                "--seconds\n",
                b->options.tune, chooser->unsteady, chooser->points,
                chooser->least_us, chooser->middle_us);
    }
    return true;
}

/* ---- Time ---- */

/* Sets is_late if the operation's time is over, alike on all ranks. */
static iris_status_t check_time(struct tuning *tuning, int op)
{
    struct bench *b = tuning->b;
    double late = b->rank == 0 && bench_now_ns() > tuning->part_ns;
    iris_status_t status = bench_max(b, &late, 1);

    if (status == IRIS_OK && late > 0) {
        tuning->chooser.is_late = true;
        if (b->rank == 0) {
            fprintf(stderr,
                    "iris bench: --tune: no time for all of %s: the rest of it "
                    "is left to the library; raise --tune-seconds\n",
                    bench_collectives.ops[op]);
        }
    }
    return status;
}

/* Begins an operation, which gets its part of the remaining time. */
static void begin_part(struct tuning *tuning)
{
    int64_t now = bench_now_ns();

    tuning->chooser.is_late = false;
    tuning->part_ns = now + (tuning->end_ns - now) / tuning->parts_left;
    tuning->parts_left--;
}

static size_t count_measurements(const struct bench_options *options, int ops)
{
    size_t sizes = 0;

    for (size_t bytes = options->min_bytes; bytes <= options->max_bytes;
         bytes <<= options->size_shift) {
        sizes++;
    }
    return MEASUREMENTS * sizes * (size_t)ops;
}

/* Shares the time among the measurements. If there is too little time, selects
 * fewer sizes. All ranks get the same result. */
static void share_time(struct bench *b, struct tuning *tuning)
{
    struct bench_options *options = &b->options;
    double time = MEASURING * options->tune_seconds;
    double most =
        options->seconds < MOST_SECONDS ? options->seconds : MOST_SECONDS;
    int ops = 0;

    for (size_t op = 0; bench_collectives.ops[op] != NULL; op++) {
        ops += bench_selected(options->ops, &bench_collectives,
                              bench_collectives.ops[op]);
    }
    while (time / (double)count_measurements(options, ops) < LEAST_SECONDS &&
           options->size_shift < MOST_SHIFT) {
        options->size_shift++;
    }
    options->seconds = time / (double)count_measurements(options, ops);
    options->seconds = options->seconds < most ? options->seconds : most;
    tuning->end_ns = bench_now_ns() + (int64_t)(1e9 * options->tune_seconds);
    tuning->parts_left = ops;
    if (b->rank == 0) {
        fprintf(stderr,
                "iris bench: --tune: at most %zu measurements of %.0f ms, "
                "each size %d times the last; ends within about %.0f s\n",
                count_measurements(options, ops), 1e3 * options->seconds,
                1 << options->size_shift, options->tune_seconds);
    }
}

/* ---- Measuring ---- */

/* Measures one variant once. Skips one that the library refuses: it refuses on
 * all ranks alike. */
static iris_status_t measure_variant(void *arg, int op,
                                     iris_ccl_variant_t variant, size_t bytes,
                                     double *us_p)
{
    struct tuning *tuning = arg;
    struct bench *b = tuning->b;
    iris_dtype_t dtype =
        (iris_dtype_t)__builtin_ctz(b->options.dtypes); /* the first */
    struct bench_ccl call =
        bench_ccl_call(b, (enum bench_ccl_op)op, bytes, dtype);
    struct bench_row row = {.group = bench_collectives.name,
                            .op = bench_collectives.ops[op],
                            .variant = iris_ccl_variant_name(variant),
                            .bytes = bytes,
                            .dtype = dtype,
                            .how = variant,
                            .pairs = b->options.pairs};
    iris_status_t status;

    call.variant = variant;
    status = tuning->chooser.is_late ? IRIS_OK : check_time(tuning, op);
    if (status != IRIS_OK || call.count == 0 || tuning->chooser.is_late) {
        return status;
    }
    bench_progress(b, &row);
    b->no_graph = (b->options.calls & BENCH_GRAPH) == 0;
    b->wait_each = b->options.calls == BENCH_WAITED;
    status = bench_ccl_time(b, &call, &row);
    row.calls = b->wait_each                 ? "waited"
                : b->graphs[0].graph != NULL ? "graph"
                                             : "eager";
    bench_graphs_drop(b);
    b->wait_each = false;
    if (status == IRIS_OK) {
        bench_rate_bytes(&row, bytes, NULL);
        row.bus_rate = row.rate * bench_ccl_bus_share(&call);
        if (b->options.format != BENCH_TABLE) {
            bench_report_row(b, &row); /* people get the table of choices */
        }
        *us_p = row.median_us;
    }
    return status == IRIS_ERR_INVALID ? IRIS_OK : status;
}

static iris_status_t tune_op(struct tuning *tuning, int op)
{
    struct bench *b = tuning->b;
    iris_status_t status = bench_collectives.open(b);

    begin_part(tuning);
    if (status == IRIS_OK) {
        status = bench_choose(&tuning->chooser, op);
    }
    bench_collectives.close(b);
    b->state = NULL;
    if (status == IRIS_OK && b->rank == 0 && b->options.progress) {
        double left = (double)(tuning->end_ns - bench_now_ns()) / 1e9;

        fprintf(stderr, "iris bench: --tune: %s after %.0f of %.0f s\n",
                bench_collectives.ops[op], b->options.tune_seconds - left,
                b->options.tune_seconds);
    }
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
    tuning->chooser.rules = fopen(tuning->part, "we");
    if (tuning->chooser.rules == NULL) {
        return errno;
    }
    fprintf(tuning->chooser.rules,
            "format 2\n"
            "# Written by iris bench --tune.\n"
            "# %s, %s, Iris %s, backend %s, %d ranks (%s), %s\n"
            "# op device members bytes variant cus # time; the second best\n",
            about->hostname,
            tuning->chooser.on_gpu ? iris_i_device(b->iris)->name : about->cpu,
            about->version, about->backend, b->num_ranks, about->ranks_as,
            about->date);
    if (b->options.format == BENCH_TABLE) {
        tuning->chooser.table = b->report->out;
        fprintf(b->report->out, "\n%-14s %12s  %-16s %s\n", "collective",
                "bytes", "variant", "time; the second best variant");
    }
    return 0;
}

/* Closes the file, and gives it its name if `keep`. Returns 0 or an errno. */
static int close_file(struct tuning *tuning, bool keep)
{
    FILE *file = tuning->chooser.rules;
    int ret = fflush(file) != 0 || fsync(fileno(file)) != 0 ? errno : 0;

    if (fclose(file) != 0 && ret == 0) {
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
static iris_status_t agree_on_errno(struct bench *b, int ret)
{
    double failed = ret;
    iris_status_t status = bench_max(b, &failed, 1);

    if (ret != 0) {
        fprintf(stderr, "iris bench: --tune \"%s\": %s; nothing is written\n",
                b->options.tune, strerror(ret));
    }
    return status == IRIS_OK && failed != 0 ? IRIS_ERR_SYSTEM : status;
}

static void init_chooser(struct bench *b, struct tuning *tuning)
{
    const struct bench_options *options = &b->options;

    tuning->b = b;
    tuning->chooser = (struct bench_chooser){
        .members = b->num_ranks,
        .on_gpu = iris_stream_native(b->iris, NULL) != NULL,
        .min_bytes = options->min_bytes,
        .max_bytes = options->max_bytes,
        .size_shift = options->size_shift,
        .spread = options->spread,
        .measure = measure_variant,
        .arg = tuning};
}

iris_status_t bench_tune(struct bench *b)
{
    struct tuning *tuning = calloc(1, sizeof *tuning);
    int ret = tuning == NULL ? ENOMEM : 0;
    iris_status_t status;
    bool is_whole;

    if (ret == 0) {
        share_time(b, tuning);
        init_chooser(b, tuning);
    }
    if (ret == 0 && b->rank == 0) {
        ret = open_file(b, tuning);
    }
    status = agree_on_errno(b, ret);
    for (int op = 0; bench_collectives.ops[op] != NULL && status == IRIS_OK;
         op++) {
        if (bench_selected(b->options.ops, &bench_collectives,
                           bench_collectives.ops[op])) {
            status = tune_op(tuning, op);
        }
    }
    bench_progress(b, NULL);
    ret = 0;
    is_whole = status == IRIS_OK && !is_busy(b, &tuning->chooser);
    if (tuning != NULL && tuning->chooser.rules != NULL) {
        ret = close_file(tuning, is_whole);
    }
    if (status == IRIS_OK) {
        status = is_whole ? agree_on_errno(b, ret)
                          : iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                                        "repeated measurements disagree");
    }
    free(tuning);
    return status;
}
