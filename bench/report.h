/* SPDX-License-Identifier: MIT
 *
 * The report of rank 0, which report.c, table.c and json.c share.
 */
#ifndef IRIS_BENCH_REPORT_H
#define IRIS_BENCH_REPORT_H

#include "bench.h"
#include "base/base.h"

#include <stdio.h>

/* The machine and the job that were measured. */
struct bench_metadata {
    const char *version;
    const char *backend;
    const char *ranks_as; /* "threads" or "processes" */
    const char *compiler;
    int device;
    bool on_gpu;
    int cus;
    int cores;
    char hostname[256];
    char cpu[256];
    char date[32]; /* UTC, ISO 8601 */
};

/* Exists on rank 0 only. */
struct bench_report {
    FILE *out;
    struct iris_json_writer json;
    size_t rows;
    size_t verdicts;
    struct bench_row last; /* the row of the last column heads */
    struct bench_metadata metadata;
};

void bench_table_begin(struct bench *b);
void bench_table_row(struct bench *b, const struct bench_row *row);
void bench_table_verdict(struct bench *b, const struct bench_verdict *verdict);

void bench_json_begin(struct bench *b);
void bench_json_row(struct bench *b, const struct bench_row *row);
void bench_json_verdict(struct bench *b, const struct bench_verdict *verdict);
void bench_json_end(struct bench *b);

#endif /* IRIS_BENCH_REPORT_H */
