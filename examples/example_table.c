/* SPDX-License-Identifier: MIT
 *
 * Tables of numbers that all ranks produce: cells are stored into rank 0's heap
 * by a kernel, rank 0 prints them.
 */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>

struct record_args {
    const int64_t *context;
    double *cell;
    double value;
};

IRIS_KERNEL(record, struct record_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        iris_store(dev, args->cell, args->value, 0);
    }
}

iris_status_t example_table_create(iris_t *iris, int rows, int cols,
                                   struct example_table *table_p)
{
    void *cells;
    iris_status_t status = iris_calloc(iris, (size_t)rows * (size_t)cols,
                                       sizeof *table_p->cells, &cells);

    if (status == IRIS_OK) {
        table_p->rows = rows;
        table_p->cols = cols;
        table_p->cells = cells;
    }
    return status;
}

iris_status_t example_record(iris_t *iris, const struct example_table *table,
                             int row, int col, double value)
{
    struct record_args args = {
        .context = iris_device_context(iris),
        .cell = &table->cells[row * table->cols + col],
        .value = value,
    };
    iris_status_t status =
        iris_launch(iris, record, 1, 1, &args, sizeof args, NULL);

    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

/* Once all cells are there: a host copy of them on rank 0, NULL on the others;
 * the caller frees it. Frees the table. */
static iris_status_t collect(iris_t *iris, struct example_table *table,
                             double **cells_p)
{
    size_t bytes = sizeof(double) * (size_t)(table->rows * table->cols);
    double *cells = NULL;
    iris_status_t status = iris_barrier(iris, NULL, NULL);

    if (status == IRIS_OK && iris_rank(iris) == 0) {
        cells = malloc(bytes);
        status = cells == NULL
                     ? IRIS_ERR_NO_MEMORY
                     : iris_memcpy(iris, cells, table->cells, bytes, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(iris, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_free(iris, table->cells);
    }
    if (status != IRIS_OK) {
        free(cells);
        return status;
    }
    *cells_p = cells;
    return IRIS_OK;
}

/* "16 MiB" and the like, in a static buffer of rank 0. */
static const char *size_text(size_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    static char text[32];
    int unit = 0;

    while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, sizeof text, "%zu %s", bytes, units[unit]);
    return text;
}

static void print_heads(const char *corner, int cols)
{
    printf("%12s", corner);
    for (int col = 0; col < cols; col++) {
        printf("  rank %2d", col);
    }
}

iris_status_t example_print_pairs(iris_t *iris, struct example_table *table,
                                  const char *title)
{
    double *cells;
    iris_status_t status = collect(iris, table, &cells);

    if (status != IRIS_OK || cells == NULL) {
        return status;
    }
    printf("\n%s, GiB/s\n", title);
    print_heads("", table->cols);
    for (int i = 0; i < table->rows * table->cols; i++) {
        if (i % table->cols == 0) {
            printf("\n     rank %2d", i / table->cols);
        }
        printf("  %7.2f", cells[i]);
    }
    printf("\n");
    free(cells);
    return IRIS_OK;
}

iris_status_t example_print_ranks(iris_t *iris, struct example_table *table,
                                  const char *title, const size_t *sizes)
{
    double *cells;
    iris_status_t status = collect(iris, table, &cells);

    if (status != IRIS_OK || cells == NULL) {
        return status;
    }
    printf("\n%s, GiB/s\n", title);
    print_heads("size", table->cols);
    printf("  slowest\n");
    for (int row = 0; row < table->rows; row++) {
        const double *cell = &cells[row * table->cols];
        double slowest = cell[0];

        printf("%12s", size_text(sizes[row]));
        for (int col = 0; col < table->cols; col++) {
            printf("  %7.2f", cell[col]);
            slowest = cell[col] < slowest ? cell[col] : slowest;
        }
        printf("  %7.2f\n", slowest);
    }
    free(cells);
    return IRIS_OK;
}

iris_status_t example_print_times(iris_t *iris, struct example_table *table,
                                  const char *title, const size_t *sizes)
{
    double *cells;
    iris_status_t status = collect(iris, table, &cells);

    if (status != IRIS_OK || cells == NULL) {
        return status;
    }
    printf("\n%s\n%12s  %12s  %10s\n", title, "size", "time, us", "GiB/s");
    for (int row = 0; row < table->rows; row++) {
        const double *cell = &cells[row * table->cols];
        double slowest = cell[0];

        for (int col = 1; col < table->cols; col++) {
            slowest = cell[col] > slowest ? cell[col] : slowest;
        }
        printf("%12s  %12.1f  %10.3f\n", size_text(sizes[row]), 1e6 * slowest,
               example_gib_per_s(sizes[row], slowest));
    }
    free(cells);
    return IRIS_OK;
}
