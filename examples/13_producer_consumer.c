/* SPDX-License-Identifier: MIT
 *
 * Producer and consumer workgroups: half of the workgroups multiply tiles, the
 * other half put those that are ready to all other ranks. So no
 * workgroup that multiplies waits for a link. docs/kernels.md has a picture of it.
 */
#include "example.h"

#include <iris/trace.h>

enum { M = 320, N = 256, K = 512 }; /* N of each rank */
enum { MULTIPLY = 1024 };           /* an event of ours in traces */

struct args {
    const int64_t *context;
    iris_tile_t a;
    iris_tile_t b;   /* this rank's columns */
    iris_tile_t c;   /* these columns of the result; symmetric */
    uint64_t *ready; /* one for each tile, on this rank */
};

IRIS_DEVICE void produce(iris_wg_t wg, iris_dev_t dev, iris_tile_sums_t *sums,
                         const struct args *args, uint32_t m, uint32_t n)
{
    iris_tile_t a = iris_tile_block(args->a, m, 0, IRIS_SUMS_ROWS, K);
    iris_tile_t b = iris_tile_block(args->b, 0, n, K, IRIS_SUMS_COLS);
    iris_tile_t c =
        iris_tile_block(args->c, m, n, IRIS_SUMS_ROWS, IRIS_SUMS_COLS);
    iris_dev_trace_span_t span = iris_dev_trace_begin(dev, MULTIPLY);

    iris_wg_tile_sums_zero(wg, sums);
    iris_wg_tile_product(wg, sums, a, b, IRIS_DTYPE_F16);
    iris_dev_trace_end(dev, span);
    iris_wg_tile_sums_put(wg, dev, sums, c, IRIS_DTYPE_F32, dev.rank);
    iris_wg_barrier(wg); /* all lanes have stored, and read the sums */
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, &args->ready[m * (N / IRIS_SUMS_COLS) + n], 1,
                        dev.rank);
    }
}

IRIS_DEVICE void consume(iris_wg_t wg, iris_dev_t dev, const struct args *args,
                         uint32_t m, uint32_t n)
{
    iris_tile_t c =
        iris_tile_block(args->c, m, n, IRIS_SUMS_ROWS, IRIS_SUMS_COLS);

    if (iris_wg_leader(wg)) {
        (void)iris_wait_until(dev, &args->ready[m * (N / IRIS_SUMS_COLS) + n],
                              IRIS_CMP_EQ, 1);
    }
    iris_wg_barrier(wg);
    for (int i = 1; i < dev.num_ranks; i++) {
        iris_wg_tile_put(wg, dev, c, c, (dev.rank + i) % dev.num_ranks);
    }
}

/* Consumers wait for workgroups with lower ids, which run first, and these for
 * nobody: any grid is fine. A workgroup that is alone does both. */
IRIS_KERNEL(multiply_and_put, struct args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t across = N / IRIS_SUMS_COLS, tiles = M / IRIS_SUMS_ROWS * across;
    uint32_t producers = (wg.num_wgs + 1) / 2;
    uint32_t consumers = wg.num_wgs - producers;

    for (uint32_t t = wg.id; wg.id < producers && t < tiles; t += producers) {
        produce(wg, dev, sums, args, t / across, t % across);
    }
    if (consumers == 0) {
        producers = 0;
        consumers = 1;
    }
    for (uint32_t t = wg.id - producers; wg.id >= producers && t < tiles;
         t += consumers) {
        consume(wg, dev, args, t / across, t % across);
    }
}

static int run(iris_t *iris, void *options)
{
    size_t ranks = (size_t)iris_num_ranks(iris), rank = (size_t)iris_rank(iris);
    struct args args = {.context = iris_device_context(iris)};
    void *a, *b, *c, *ready;
    int ret;

    if ((ret = iris_malloc(iris, M * K * sizeof(iris_f16_t), &a)) != 0 ||
        (ret = iris_malloc(iris, K * N * sizeof(iris_f16_t), &b)) != 0 ||
        (ret = iris_malloc(iris, M * N * ranks * sizeof(float), &c)) != 0 ||
        (ret = iris_calloc(iris, M * N, sizeof(uint64_t), &ready)) != 0) {
        return ret;
    }
    /* For traces and reports of hangs. */
    (void)iris_trace_name(iris, MULTIPLY, "multiply");
    (void)iris_name(iris, c, "product");
    (void)iris_name(iris, ready, "ready");
    args.a = iris_tile(a, M, K, K, sizeof(iris_f16_t));
    args.b = iris_tile(b, K, N, N, sizeof(iris_f16_t));
    args.c = iris_tile((float *)c + N * rank, M, N, (int64_t)(N * ranks),
                       sizeof(float));
    args.ready = ready;
    if ((ret = example_fill_matrix(iris, args.a, 1, 0, 0)) != 0 ||
        (ret = example_fill_matrix(iris, args.b, 2, 0, N * rank)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0 || /* begin together */
        (ret = iris_launch(iris, multiply_and_put, example_grid(iris, options),
                           EXAMPLE_LANES, &args, sizeof args, NULL)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0 || /* all have put */
        (ret = example_check_product(iris, c, M, N * ranks, 1, 2, K)) != 0) {
        return ret;
    }
    return example_ok(iris, "producers and consumers", M, N * ranks, K);
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 1, .iterations = 1};

    example_options(argc, argv,
                    "Some workgroups multiply, others put what is ready.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
