/* SPDX-License-Identifier: MIT
 *
 * A product with a one-shot all-reduce by tile flags, in one kernel. k is divided
 * among the ranks. Each tile of a rank's part has a flag on all ranks. A
 * workgroup that finds a tile's flags of all ranks set adds their parts in order.
 */
#include "example.h"

enum { M = 170, N = 140, K = 96 }; /* K of each rank */

struct args {
    const int64_t *context;
    iris_tile_t a;    /* this rank's columns */
    iris_tile_t b;    /* this rank's rows */
    iris_tile_t part; /* this rank's sums; symmetric */
    float *c;
    uint64_t *ready; /* symmetric: [tile][rank] */
};

/* Adds all ranks' parts of a tile, in their order: the same bits everywhere. */
IRIS_DEVICE void add_all(iris_wg_t wg, iris_dev_t dev, const struct args *args,
                         iris_tile_t part)
{
    size_t first = (size_t)((float *)part.data - (float *)args->part.data);

    IRIS_WG_LANES (wg, e, part.rows * part.cols) {
        size_t at = e / part.cols * N + e % part.cols;
        float sum = 0;

        for (int rank = 0; rank < dev.num_ranks; rank++) {
            sum += iris_load(dev, (float *)part.data + at, rank);
        }
        args->c[first + at] = sum;
    }
}

IRIS_KERNEL(multiply_and_reduce, struct args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
    iris_dev_t dev = iris_dev_init(args->context);
    size_t ranks = (size_t)dev.num_ranks;
    uint32_t across = (N + IRIS_SUMS_COLS - 1) / IRIS_SUMS_COLS;
    uint32_t down = (M + IRIS_SUMS_ROWS - 1) / IRIS_SUMS_ROWS;

    for (uint32_t t = wg.id; t < down * across; t += wg.num_wgs) {
        uint32_t m = t / across, n = t % across;

        iris_wg_tile_sums_zero(wg, sums);
        iris_wg_tile_product(
            wg, sums, iris_tile_block(args->a, m, 0, IRIS_SUMS_ROWS, K),
            iris_tile_block(args->b, 0, n, K, IRIS_SUMS_COLS), IRIS_DTYPE_F16);
        iris_wg_tile_sums_put(
            wg, dev, sums,
            iris_tile_block(args->part, m, n, IRIS_SUMS_ROWS, IRIS_SUMS_COLS),
            IRIS_DTYPE_F32, dev.rank);
        iris_wg_barrier(wg); /* all lanes have stored, and read the sums */
        IRIS_WG_LANES (wg, peer, ranks) {
            iris_signal_set(dev, &args->ready[t * ranks + (size_t)dev.rank], 1,
                            (int)peer);
        }
    }
    /* A workgroup waits for others' with its own tiles, which have set theirs
     * before they wait: any grid is fine. */
    for (uint32_t t = wg.id; t < down * across; t += wg.num_wgs) {
        if (iris_wg_leader(wg)) {
            iris_wait_until_all(dev, &args->ready[t * ranks], ranks, NULL,
                                IRIS_CMP_EQ, 1);
        }
        iris_wg_barrier(wg);
        add_all(wg, dev, args,
                iris_tile_block(args->part, t / across, t % across,
                                IRIS_SUMS_ROWS, IRIS_SUMS_COLS));
    }
}

static int run(iris_t *iris, void *options)
{
    size_t ranks = (size_t)iris_num_ranks(iris);
    size_t first = K * (size_t)iris_rank(iris); /* of k */
    struct args args = {.context = iris_device_context(iris)};
    void *a, *b, *part, *c, *ready;
    int ret;

    if ((ret = iris_malloc(iris, M * K * sizeof(iris_f16_t), &a)) != 0 ||
        (ret = iris_malloc(iris, K * N * sizeof(iris_f16_t), &b)) != 0 ||
        (ret = iris_malloc(iris, M * N * sizeof(float), &part)) != 0 ||
        (ret = iris_malloc(iris, M * N * sizeof(float), &c)) != 0 ||
        (ret = iris_calloc(iris, M * N * ranks, sizeof(uint64_t), &ready)) !=
            0) {
        return ret;
    }
    args.a = iris_tile(a, M, K, K, sizeof(iris_f16_t));
    args.b = iris_tile(b, K, N, N, sizeof(iris_f16_t));
    args.part = iris_tile(part, M, N, N, sizeof(float));
    args.c = c;
    args.ready = ready;
    if ((ret = example_fill_matrix(iris, args.a, 1, 0, first)) != 0 ||
        (ret = example_fill_matrix(iris, args.b, 2, first, 0)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0 || /* all flags are 0 */
        (ret =
             iris_launch(iris, multiply_and_reduce, example_grid(iris, options),
                         EXAMPLE_LANES, &args, sizeof args, NULL)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0 || /* all have loaded */
        (ret = example_check_product(iris, c, M, N, 1, 2, K * ranks)) != 0) {
        return ret;
    }
    return example_ok(iris, "product with all-reduce", M, N, K * ranks);
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 1, .iterations = 1};

    example_options(argc, argv, "Multiplies, and sums up tiles of all ranks.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
