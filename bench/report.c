/* SPDX-License-Identifier: MIT
 *
 * The report: its file, the description of the machine, CSV, and the choice of
 * a format.
 */
#include "config.h"

#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The functions of a format. Each may be NULL except `row`. */
struct format {
    void (*begin)(struct bench *b);
    void (*row)(struct bench *b, const struct bench_row *row);
    void (*verdict)(struct bench *b, const struct bench_verdict *verdict);
    void (*end)(struct bench *b);
};

static void csv_begin(struct bench *b)
{
    fprintf(b->report->out,
            b->options.targets
                ? "target,limit,measured,held\n"
                : "group,op,variant,pairs,ranks,workgroups,block,bytes,"
                  "median_us,min_us,p90_us,rate,rate_unit,reference,"
                  "reference_rate,ratio,wrong,dtype,calls,bus_rate,"
                  "reference_us,time_ratio,m,n,k,product_us,collective_us,"
                  "bound_share,peer,peer_us\n");
}

/* The columns that only collectives and fused operations fill in. */
static void csv_collective(FILE *out, const struct bench_row *row)
{
    if (row->calls == NULL && row->shape == NULL) {
        fprintf(out, ",,,,");
        return;
    }
    fprintf(out, "%s,%s,", iris_dtype_name(row->dtype),
            row->calls != NULL ? row->calls : "");
    if (row->calls != NULL) {
        fprintf(out, "%.6g", row->bus_rate);
    }
    if (row->reference != NULL) {
        fprintf(out, ",%.6g,%.6g", row->references_us[0],
                row->median_us / row->references_us[0]);
    } else {
        fprintf(out, ",,");
    }
}

/* The columns that only fused operations fill in. */
static void csv_fused(FILE *out, const struct bench_row *row)
{
    const struct bench_shape *shape = row->shape;

    if (shape == NULL) {
        fprintf(out, ",,,,,,,,\n");
        return;
    }
    fprintf(out, ",%lld,%lld,%lld,%.6g,%.6g,%.6g,", (long long)shape->m,
            (long long)shape->n, (long long)shape->k,
            row->references_us[BENCH_PRODUCT],
            row->references_us[BENCH_COLLECTIVE], bench_bound_share(row));
    if (row->peer != NULL) {
        fprintf(out, "%s,%.6g\n", row->peer, row->references_us[BENCH_PEER]);
    } else {
        fprintf(out, ",\n");
    }
}

static void csv_row(struct bench *b, const struct bench_row *row)
{
    FILE *out = b->report->out;
    bool has_reference = row->reference != NULL;

    if (b->options.targets) {
        return; /* targets have other columns */
    }
    fprintf(out, "%s,%s,%s,%s,%d,%u,%u,%zu,%.6g,%.6g,%.6g,", row->group,
            row->op, row->variant, bench_pairs_names[row->pairs], b->num_ranks,
            row->grid != 0 ? row->grid : b->workgroups, b->options.block,
            row->bytes, row->median_us, row->min_us, row->p90_us);
    if (row->rate_unit[0] != '\0') {
        fprintf(out, "%.6g", row->rate);
    }
    fprintf(out, ",%s,", row->rate_unit);
    if (has_reference) {
        fprintf(out, "%s,%.6g,%.6g", row->reference, row->reference_rate,
                row->ratio);
    } else {
        fprintf(out, ",,");
    }
    fprintf(out, ",%llu,", (unsigned long long)row->wrong);
    csv_collective(out, row);
    csv_fused(out, row);
}

static void csv_verdict(struct bench *b, const struct bench_verdict *verdict)
{
    fprintf(b->report->out, "\"%s\",%s,%s,%s\n", verdict->target,
            verdict->limit, verdict->measured, verdict->held);
}

static const struct format formats[] = {
    [BENCH_TABLE] = {.begin = bench_table_begin,
                     .row = bench_table_row,
                     .verdict = bench_table_verdict},
    [BENCH_CSV] = {.begin = csv_begin, .row = csv_row, .verdict = csv_verdict},
    [BENCH_JSON] = {.begin = bench_json_begin,
                    .row = bench_json_row,
                    .verdict = bench_json_verdict,
                    .end = bench_json_end},
};

/* Reads the processor's name, if /proc has it. */
static void read_cpu(char *cpu, size_t cpu_bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];
    bool found = false;

    snprintf(cpu, cpu_bytes, "unknown");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');

        found = strncmp(line, "model name", 10) == 0 && colon != NULL;
        if (found) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(cpu, cpu_bytes, "%.250s", colon + 2);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void describe_machine(struct bench *b, const char *ranks_as,
                             struct bench_metadata *about_p)
{
    time_t now = time(NULL);
    struct tm utc;

    about_p->version = iris_version();
    about_p->backend = iris_backend_name(b->iris);
    about_p->ranks_as = ranks_as;
#ifdef __VERSION__
    about_p->compiler = "compiler " __VERSION__;
#else
    about_p->compiler = "unknown compiler";
#endif
    about_p->device = iris_device_id(b->iris);
    about_p->on_gpu = iris_stream_native(b->iris, NULL) != NULL;
    about_p->cus = iris_num_cus(b->iris);
    about_p->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    gethostname(about_p->hostname, sizeof about_p->hostname - 1);
    read_cpu(about_p->cpu, sizeof about_p->cpu);
    strftime(about_p->date, sizeof about_p->date, "%Y-%m-%dT%H:%M:%SZ",
             gmtime_r(&now, &utc));
}

/* Opens the output on rank 0. Returns 0 or an errno. */
static int open_output(struct bench *b)
{
    struct bench_report *report = calloc(1, sizeof *report);

    if (report == NULL) {
        return ENOMEM;
    }
    report->out =
        b->options.output == NULL ? stdout : fopen(b->options.output, "we");
    if (report->out == NULL) {
        int ret = errno;

        fprintf(stderr, "iris bench: --output \"%s\": %s\n", b->options.output,
                strerror(ret));
        free(report);
        return ret;
    }
    b->report = report;
    return 0;
}

iris_status_t bench_report_open(struct bench *b)
{
    /* If all ranks are in one process, they have the same process id. */
    double facts[3] = {getpid(), -(double)getpid(), 0};
    iris_status_t status;

    if (b->rank == 0) {
        facts[2] = open_output(b);
    }
    status = bench_max(b, facts, 3);
    if (status != IRIS_OK || facts[2] != 0) {
        return status != IRIS_OK ? status : IRIS_ERR_SYSTEM;
    }
    if (b->rank == 0) {
        describe_machine(
            b,
            facts[0] == -facts[1] && b->num_ranks > 1 ? "threads" : "processes",
            &b->report->metadata);
        if (formats[b->options.format].begin != NULL) {
            formats[b->options.format].begin(b);
        }
    }
    return IRIS_OK;
}

void bench_report_row(struct bench *b, const struct bench_row *row)
{
    if (b->report != NULL) {
        bench_progress(b, NULL);
        formats[b->options.format].row(b, row);
        fflush(b->report->out);
        b->report->rows++;
    }
}

void bench_report_verdict(struct bench *b, const struct bench_verdict *verdict)
{
    if (b->report != NULL) {
        formats[b->options.format].verdict(b, verdict);
        b->report->verdicts++;
    }
}

iris_status_t bench_report_close(struct bench *b)
{
    struct bench_report *report = b->report;
    int ret;

    if (report == NULL) {
        return IRIS_OK;
    }
    if (formats[b->options.format].end != NULL) {
        formats[b->options.format].end(b);
    }
    ret = fflush(report->out) != 0 || ferror(report->out);
    if (report->out != stdout) {
        ret |= fclose(report->out) != 0;
    }
    if (ret != 0) {
        fprintf(stderr, "iris bench: the report could not be written: %s\n",
                strerror(errno));
    }
    free(report);
    b->report = NULL;
    return ret == 0 ? IRIS_OK : IRIS_ERR_SYSTEM;
}
