/* SPDX-License-Identifier: MIT
 *
 * A product with an all-scatter, in one kernel. B is divided by columns: each
 * rank multiplies A by its own, and stores every tile of the result to all ranks
 * as soon as it is ready, while other workgroups still multiply.
 */
#include "example.h"

enum { M = 200, N = 150, K = 100 }; /* N of each rank */

struct args {
    const int64_t *context;
    iris_tile_t a;
    iris_tile_t b; /* this rank's columns */
    iris_tile_t c; /* these columns of the result; symmetric */
};

IRIS_KERNEL(multiply_and_scatter, struct args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t across = (N + IRIS_SUMS_COLS - 1) / IRIS_SUMS_COLS;
    uint32_t down = (M + IRIS_SUMS_ROWS - 1) / IRIS_SUMS_ROWS;

    for (uint32_t t = wg.id; t < down * across; t += wg.num_wgs) {
        uint32_t m = t / across, n = t % across;
        iris_tile_t a = iris_tile_block(args->a, m, 0, IRIS_SUMS_ROWS, K);
        iris_tile_t b = iris_tile_block(args->b, 0, n, K, IRIS_SUMS_COLS);
        iris_tile_t c =
            iris_tile_block(args->c, m, n, IRIS_SUMS_ROWS, IRIS_SUMS_COLS);

        iris_wg_tile_sums_zero(wg, sums);
        iris_wg_tile_product(wg, sums, a, b, IRIS_DTYPE_F16);
        for (int i = 1; i <= dev.num_ranks; i++) { /* each begins elsewhere */
            iris_wg_tile_sums_put(wg, dev, sums, c, IRIS_DTYPE_F32,
                                  (dev.rank + i) % dev.num_ranks);
        }
        iris_wg_barrier(wg); /* all lanes have read the sums */
    }
}

static int run(iris_t *iris, void *options)
{
    size_t ranks = (size_t)iris_num_ranks(iris), rank = (size_t)iris_rank(iris);
    struct args args = {.context = iris_device_context(iris)};
    void *a, *b, *c;
    int ret;

    if ((ret = iris_malloc(iris, M * K * sizeof(iris_f16_t), &a)) != 0 ||
        (ret = iris_malloc(iris, K * N * sizeof(iris_f16_t), &b)) != 0 ||
        (ret = iris_malloc(iris, M * N * ranks * sizeof(float), &c)) != 0) {
        return ret;
    }
    args.a = iris_tile(a, M, K, K, sizeof(iris_f16_t));
    args.b = iris_tile(b, K, N, N, sizeof(iris_f16_t));
    args.c = iris_tile((float *)c + N * rank, M, N, (int64_t)(N * ranks),
                       sizeof(float));
    if ((ret = example_fill_matrix(iris, args.a, 1, 0, 0)) != 0 ||
        (ret = example_fill_matrix(iris, args.b, 2, 0, N * rank)) != 0 ||
        (ret = iris_launch(iris, multiply_and_scatter,
                           example_grid(iris, options), EXAMPLE_LANES, &args,
                           sizeof args, NULL)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0 || /* all have stored */
        (ret = example_check_product(iris, c, M, N * ranks, 1, 2, K)) != 0) {
        return ret;
    }
    return example_ok(iris, "product with all-scatter", M, N * ranks, K);
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 1, .iterations = 1};

    example_options(argc, argv,
                    "Multiplies, and stores tiles to all ranks as they come.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
