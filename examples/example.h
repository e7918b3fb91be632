/* SPDX-License-Identifier: MIT
 *
 * Code that the examples share: options, test values, timing, and tables that
 * every rank writes into and rank 0 prints. Uses the public interface only.
 */
#ifndef IRIS_EXAMPLES_EXAMPLE_H
#define IRIS_EXAMPLES_EXAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include <iris/device.h>
#include <iris/iris.h>

/* Lanes of a workgroup in every launch here. */
#define EXAMPLE_LANES 256

/* Elements that message-passing examples hand over at a time. */
#define EXAMPLE_TILE 4096

/* The command line's options; the initial values are an example's defaults. */
struct example_options {
    size_t bytes;   /* size of the largest buffer */
    int iterations; /* timed ones; the median counts */
    int workgroups; /* of each kernel; 0: as many as run at once */
    int ranks;      /* 0: the launcher's, else IRIS_NUM_RANKS, else 4 */
};

/* Parses the command line; prints a help text or an error, and exits, where it
 * says so. `about` tells what the example does. */
void example_options(int argc, char **argv, const char *about,
                     struct example_options *options);

/* The exit code for a status of iris_spawn(); prints its message. */
int example_exit(iris_status_t status);

/* Workgroups to launch. */
unsigned example_grid(const iris_t *iris,
                      const struct example_options *options);

/* ---- Values ----
 *
 * A function below that returns int returns a value for a rank's function: 0,
 * or the status of a failed call, or 1 for a wrong value. */

/* The value that rank `rank` has at index i in round `round`: another one for
 * another rank, index or round. */
IRIS_HOST_DEVICE uint32_t example_value(int rank, size_t i, int round)
{
    return (uint32_t)(rank + 1) * 1000003u + (uint32_t)round * 7919u +
           (uint32_t)i * 31u;
}

/* The right value at index i; example_value() is one. */
typedef uint32_t (*example_value_fn)(int rank, size_t i, int round);

/* The sum (modulo 2^32) of what ranks 0 to num_ranks - 1 have. */
uint32_t example_sum(int num_ranks, size_t i, int round);

/* 0, of counters of what must not happen. */
uint32_t example_zero(int rank, size_t i, int round);

/* Sets `count` elements of this rank's heap to example_value(). */
int example_fill(iris_t *iris, uint32_t *ptr, size_t count, int rank,
                 int round);

/* Compares `count` elements of this rank's heap with value(rank, i, round) and
 * reports the first wrong one, calling it what[i]. */
int example_check(iris_t *iris, const char *what, const uint32_t *ptr,
                  size_t count, example_value_fn value, int rank, int round);

/* Copies between host memory and the heap, either way, and waits for it: the
 * host cannot read and write device memory itself on every backend. */
iris_status_t example_copy(iris_t *iris, void *to, const void *from,
                           size_t bytes);

/* ---- Matrices ----
 *
 * Their elements are whole numbers from -3 to 3, so that products and their sums
 * over ranks are exact in any order. */
IRIS_HOST_DEVICE float example_number(int seed, size_t r, size_t c)
{
    return (float)((int)(((size_t)seed * 31 + r * 7 + c * 13 + r * c) % 7) - 3);
}

/* Sets a matrix on this rank's heap, of neighbouring elements, to the part of
 * the matrix `seed` that begins at (row, col). */
int example_fill_matrix(iris_t *iris, iris_tile_t matrix, int seed, size_t row,
                        size_t col);

/* Element (r, c) of what the matrices of seeds `a` and `b` make, of `k` columns
 * and rows. */
float example_product(int a, int b, size_t r, size_t c, size_t k);

/* Compares a matrix of floats on this rank's heap with example_product(). */
int example_check_product(iris_t *iris, const float *matrix, size_t rows,
                          size_t cols, int a, int b, size_t k);

/* Rank 0's last line, once all ranks' values are right. */
int example_ok(iris_t *iris, const char *what, size_t rows, size_t cols,
               size_t k);

/* Reports one wrong value; returns 1. */
int example_wrong(const iris_t *iris, const char *what, size_t i, double seen,
                  double expected);

/* ---- Turns ---- */

/* Calls fn(iris, arg, actor, target) on all ranks for each pair of ranks, one
 * pair after the other. A barrier between them lets one rank act while the
 * others wait. */
typedef int (*example_pair_fn)(iris_t *iris, void *arg, int actor, int target);
int example_each_pair(iris_t *iris, example_pair_fn fn, void *arg);

/* Elements of a tile out of `count`: EXAMPLE_TILE, or the rest for the last
 * one. */
IRIS_DEVICE size_t example_tile_count(size_t count, size_t tile)
{
    size_t left = count - tile * EXAMPLE_TILE;

    return left < EXAMPLE_TILE ? left : EXAMPLE_TILE;
}

/* Tiles of `count` elements. */
IRIS_HOST_DEVICE size_t example_tiles(size_t count)
{
    return (count + EXAMPLE_TILE - 1) / EXAMPLE_TILE;
}

/* ---- Timing ---- */

/* Seconds of a clock that only goes forward. */
double example_now(void);

/* Sorts the times. */
double example_median(double *times, int count);

double example_gib_per_s(size_t bytes, double seconds);

/* How often example_time() launches: one launch warms up. */
#define EXAMPLE_LAUNCHES(options) ((options)->iterations + 1)

/* Median time of a kernel from launch to completion. */
iris_status_t example_time(iris_t *iris, const struct example_options *options,
                           const struct iris_kernel *kernel, const void *args,
                           size_t args_bytes, double *seconds_p);

/* The same for all ranks at once: each launch waits until all ranks are here.
 * Before each launch counts *launch, which may be one of the kernel's
 * arguments, unless it is NULL. */
iris_status_t example_time_together(iris_t *iris,
                                    const struct example_options *options,
                                    const struct iris_kernel *kernel,
                                    const void *args, size_t args_bytes,
                                    uint64_t *launch, double *seconds_p);

/* Fills in up to EXAMPLE_MAX_SIZES sizes, ascending, `bytes` the last. */
#define EXAMPLE_MAX_SIZES 5
int example_sizes(size_t bytes, size_t *sizes);

/* ---- Tables ---- */

/* Numbers that all ranks produce and rank 0 prints: a symmetric array, written
 * with remote stores. */
struct example_table {
    int rows, cols;
    double *cells;
};

/* Collective, as is each print, which also frees the table. */
iris_status_t example_table_create(iris_t *iris, int rows, int cols,
                                   struct example_table *table_p);

/* Stores one cell into rank 0's array. Any rank, any time. */
iris_status_t example_record(iris_t *iris, const struct example_table *table,
                             int row, int col, double value);

/* GiB/s: row is the rank that acted, column the rank it acted on. */
iris_status_t example_print_pairs(iris_t *iris, struct example_table *table,
                                  const char *title);

/* GiB/s: row is a size, column a rank. */
iris_status_t example_print_ranks(iris_t *iris, struct example_table *table,
                                  const char *title, const size_t *sizes);

/* Seconds: row is a size, column a rank. The slowest rank counts. */
iris_status_t example_print_times(iris_t *iris, struct example_table *table,
                                  const char *title, const size_t *sizes);

#endif /* IRIS_EXAMPLES_EXAMPLE_H */
