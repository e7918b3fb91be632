/* SPDX-License-Identifier: MIT
 *
 * A product whose parts are added by atomics. k is divided among the ranks and,
 * within a rank, all tiles' steps evenly among the workgroups (stream-K): one
 * that ends in the middle of a tile adds its part, and the next one the rest.
 */
#include "example.h"

enum { M = 150, N = 130, K = 320, STEP = 64 }; /* K of each rank */

struct args {
    const int64_t *context;
    iris_tile_t a; /* this rank's columns */
    iris_tile_t b; /* this rank's rows */
    float *c;      /* symmetric; 0 before */
};

/* Adds the sums of tile (m, n) to every rank's result. */
IRIS_DEVICE void add_to_all(iris_wg_t wg, iris_dev_t dev,
                            const iris_tile_sums_t *sums, float *c, uint32_t m,
                            uint32_t n)
{
    for (int i = 1; i <= dev.num_ranks; i++) {
        IRIS_WG_LANES (wg, e, IRIS_SUMS_ROWS * IRIS_SUMS_COLS) {
            size_t r = e / IRIS_SUMS_COLS, row = m * IRIS_SUMS_ROWS + r;
            size_t s = e % IRIS_SUMS_COLS, col = n * IRIS_SUMS_COLS + s;

            if (row < M && col < N) {
                (void)iris_atomic_add(dev, &c[row * N + col],
                                      sums->values[r][s],
                                      (dev.rank + i) % dev.num_ranks,
                                      IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
            }
        }
    }
    iris_wg_barrier(wg); /* all lanes have read the sums */
}

IRIS_KERNEL(multiply_and_add, struct args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t across = (N + IRIS_SUMS_COLS - 1) / IRIS_SUMS_COLS;
    uint32_t down = (M + IRIS_SUMS_ROWS - 1) / IRIS_SUMS_ROWS;
    uint32_t steps = K / STEP, all = down * across * steps;
    uint32_t end = all * (wg.id + 1) / wg.num_wgs, next;

    for (uint32_t at = all * wg.id / wg.num_wgs; at < end; at = next) {
        uint32_t tile = at / steps, first = at % steps * STEP;
        iris_tile_t a =
            iris_tile_block(args->a, tile / across, 0, IRIS_SUMS_ROWS, K);
        iris_tile_t b =
            iris_tile_block(args->b, 0, tile % across, K, IRIS_SUMS_COLS);

        next = (tile + 1) * steps < end ? (tile + 1) * steps : end;
        a = iris_tile((iris_f16_t *)a.data + first, a.rows, (next - at) * STEP,
                      K, sizeof(iris_f16_t));
        b = iris_tile((iris_f16_t *)b.data + first * N, (next - at) * STEP,
                      b.cols, N, sizeof(iris_f16_t));
        iris_wg_tile_sums_zero(wg, sums);
        iris_wg_tile_product(wg, sums, a, b, IRIS_DTYPE_F16);
        add_to_all(wg, dev, sums, args->c, tile / across, tile % across);
    }
}

static int run(iris_t *iris, void *options)
{
    size_t ranks = (size_t)iris_num_ranks(iris);
    size_t first = K * (size_t)iris_rank(iris); /* of k */
    struct args args = {.context = iris_device_context(iris)};
    void *a, *b, *c;
    int ret;

    if ((ret = iris_malloc(iris, M * K * sizeof(iris_f16_t), &a)) != 0 ||
        (ret = iris_malloc(iris, K * N * sizeof(iris_f16_t), &b)) != 0 ||
        (ret = iris_calloc(iris, M * N, sizeof(float), &c)) != 0) {
        return ret;
    }
    args.a = iris_tile(a, M, K, K, sizeof(iris_f16_t));
    args.b = iris_tile(b, K, N, N, sizeof(iris_f16_t));
    args.c = c;
    if ((ret = example_fill_matrix(iris, args.a, 1, 0, first)) != 0 ||
        (ret = example_fill_matrix(iris, args.b, 2, first, 0)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0 || /* all have zeros */
        (ret = iris_launch(iris, multiply_and_add, example_grid(iris, options),
                           EXAMPLE_LANES, &args, sizeof args, NULL)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0 || /* all have added */
        (ret = example_check_product(iris, c, M, N, 1, 2, K * ranks)) != 0) {
        return ret;
    }
    return example_ok(iris, "product with atomics", M, N, K * ranks);
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 1, .iterations = 1};

    example_options(argc, argv, "Multiplies, and adds tiles' parts by atomics.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
