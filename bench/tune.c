/* SPDX-License-Identifier: MIT
 *
 * --tune: measures variants and numbers of workgroups of collectives, and
 * writes for each operation and size which is best, as IRIS_CCL_TUNING reads
 * it: docs/collectives.md has the format.
 */
#include "config.h"

#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Another way must take less than this share of the best one's time, so that
 * noise does not decide. */
#define MARGIN 0.97

/* Powers of two that there are. */
#define MAX_SIZES 64

struct rule {
    size_t bytes; /* of `count` elements, at most */
    iris_ccl_variant_t variant;
    int cus; /* 0: as many as the library thinks worth it */
    double us;
};

struct tuning {
    FILE *out; /* NULL but on rank 0 */
    char path[4096];
    char part[4096]; /* the file while it is written */
    char name[64];   /* of what is being measured */
};

/* Measures one way, and keeps it if it is the best so far. One that the
 * library refuses (more workgroups than run at once) is left out: all ranks
 * are refused alike. */
static iris_status_t try_way(struct bench *b, struct tuning *tuning,
                             const struct bench_ccl *call, size_t bytes,
                             struct rule *best)
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
    }
    if (status == IRIS_OK &&
        (best->us == 0 || row.median_us < MARGIN * best->us)) {
        best->us = row.median_us;
        best->variant = call->variant;
        best->cus = call->num_cus;
    }
    return status;
}

/* The best way for one size: the variant first, then its workgroups. */
static iris_status_t tune_size(struct bench *b, struct tuning *tuning,
                               enum bench_ccl_op op, size_t bytes,
                               struct rule *best_p)
{
    iris_dtype_t dtype =
        (iris_dtype_t)__builtin_ctz(b->options.dtypes); /* the first */
    struct bench_ccl call = bench_ccl_call(b, op, bytes, dtype);
    iris_status_t status = IRIS_OK;

    *best_p = (struct rule){.bytes = call.count * iris_dtype_size(dtype)};
    if (call.count == 0) {
        return IRIS_OK;
    }
    for (int v = IRIS_CCL_AUTO + 1;
         bench_variant_names[v] != NULL && status == IRIS_OK; v++) {
        call.variant = (iris_ccl_variant_t)v;
        if (bench_ccl_has(op, call.variant, true)) {
            status = try_way(b, tuning, &call, bytes, best_p);
        }
    }
    call.variant = best_p->variant;
    for (int cus = 1; cus <= iris_num_cus(b->iris) && status == IRIS_OK;
         cus *= 2) {
        call.num_cus = cus;
        status = try_way(b, tuning, &call, bytes, best_p);
    }
    return status;
}

/* Rules of one operation; those that say the same as the next are left out, and
 * the last is for all that is larger. */
static void write_rules(const struct bench *b, struct tuning *tuning,
                        const char *op, const struct rule *rules, size_t count)
{
    const char *device =
        iris_stream_native(b->iris, NULL) != NULL ? "gpu" : "cpu";

    for (size_t i = 0; i < count && tuning->out != NULL; i++) {
        char bytes[32] = "any";

        if (i + 1 < count && rules[i].variant == rules[i + 1].variant &&
            rules[i].cus == rules[i + 1].cus) {
            continue;
        }
        if (i + 1 < count) {
            snprintf(bytes, sizeof bytes, "%zu", rules[i].bytes);
        }
        fprintf(tuning->out, "%s %s %d %s %s %d\n", op, device, b->num_ranks,
                bytes, iris_ccl_variant_name(rules[i].variant), rules[i].cus);
    }
}

static iris_status_t tune_op(struct bench *b, struct tuning *tuning,
                             enum bench_ccl_op op)
{
    const struct bench_options *options = &b->options;
    struct rule rules[MAX_SIZES];
    size_t count = 0;
    iris_status_t status = bench_collectives.open(b);

    for (size_t bytes = options->min_bytes;
         bytes <= options->max_bytes && status == IRIS_OK;
         bytes <<= options->size_shift) {
        status = tune_size(b, tuning, op, bytes, &rules[count]);
        count += rules[count].us > 0;
    }
    if (status == IRIS_OK) {
        write_rules(b, tuning, bench_collectives.ops[op], rules, count);
    }
    bench_collectives.close(b);
    b->state = NULL;
    return status;
}

/* On rank 0; 0 or an errno. The file appears whole or not at all. */
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
            "# Written by iris-bench --tune, for IRIS_CCL_TUNING.\n"
            "# %s, %s, Iris %s, backend %s, %d ranks (%s), %s\n"
            "# op device members bytes variant cus\n",
            about->hostname, about->cpu, about->version, about->backend,
            b->num_ranks, about->ranks_as, about->date);
    return 0;
}

/* The same; `keep`: it is whole. */
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

/* All ranks come to what happened on rank 0. */
static iris_status_t agree(struct bench *b, int ret)
{
    double failed = ret;
    iris_status_t status = bench_max(b, &failed, 1);

    if (ret != 0) {
        fprintf(stderr, "iris-bench: --tune \"%s\": %s; nothing is written\n",
                b->options.tune, strerror(ret));
    }
    return status == IRIS_OK && failed != 0 ? IRIS_ERR_SYSTEM : status;
}

iris_status_t bench_tune(struct bench *b)
{
    struct tuning *tuning = calloc(1, sizeof *tuning);
    int ret = tuning == NULL ? ENOMEM : 0;
    iris_status_t status;

    if (ret == 0 && b->rank == 0) {
        ret = open_file(b, tuning);
    }
    status = agree(b, ret);
    for (size_t op = 0; bench_collectives.ops[op] != NULL && status == IRIS_OK;
         op++) {
        if (bench_selected(b->options.ops, &bench_collectives,
                           bench_collectives.ops[op])) {
            status = tune_op(b, tuning, (enum bench_ccl_op)op);
        }
    }
    bench_progress(b, NULL);
    ret = 0;
    if (tuning != NULL && tuning->out != NULL) {
        ret = close_file(tuning, status == IRIS_OK);
    }
    if (status == IRIS_OK) {
        status = agree(b, ret);
    }
    free(tuning);
    return status;
}
