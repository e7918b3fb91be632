/* SPDX-License-Identifier: MIT
 *
 * Where rows go, and what report.c, table.c and json.c share.
 */
#ifndef IRIS_BENCH_REPORT_H
#define IRIS_BENCH_REPORT_H

#include <stdio.h>

#include "bench.h"

#include "base/json_writer.h"

/* What the figures were measured on. */
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

/* Lives on rank 0. */
struct bench_report {
    FILE *out;
    struct iris_json_writer json;
    size_t rows;
    size_t verdicts;
    struct bench_row last; /* what column heads were printed for */
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
