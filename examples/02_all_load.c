/* SPDX-License-Identifier: MIT
 *
 * All-load: all ranks at once read the data of all ranks, and sum it up.
 */
#include "example.h"

static const char title[] = "All-load: each rank reads from all ranks at once";

struct all_load_args {
    const int64_t *context;
    const uint32_t *data; /* symmetric */
    uint32_t *sums;
    size_t count;
};

/* The ranks start with different peers, so that they do not all read from the
 * same one at the same time. */
IRIS_KERNEL(all_load, struct all_load_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint32_t *data = args->data;
    uint32_t *sums = args->sums;

    IRIS_LANES (wg, i, args->count) {
        sums[i] = iris_load(dev, &data[i], dev.rank);
    }
    for (int step = 1; step < dev.num_ranks; step++) {
        int peer = (dev.rank + step) % dev.num_ranks;

        IRIS_LANES (wg, i, args->count) {
            sums[i] += iris_load(dev, &data[i], peer);
        }
    }
}

/* One row of the table: the first args->count elements. */
static int measure(iris_t *iris, const struct example_options *options,
                   const struct all_load_args *args,
                   const struct example_table *table, int row)
{
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    size_t bytes = args->count * sizeof(uint32_t) * (size_t)num_ranks;
    double seconds;
    int ret = example_time_together(iris, options, all_load, args, sizeof *args,
                                    NULL, &seconds);

    if (ret == 0) {
        ret = example_check(iris, "sums", args->sums, args->count, example_sum,
                            num_ranks, row);
    }
    if (ret == 0) {
        ret = example_record(iris, table, row, rank,
                             example_gib_per_s(bytes, seconds));
    }
    return ret;
}

static int run(iris_t *iris, void *arg)
{
    const struct example_options *options = arg;
    struct all_load_args args = {.context = iris_device_context(iris)};
    size_t sizes[EXAMPLE_MAX_SIZES];
    int num_sizes = example_sizes(options->bytes, sizes);
    struct example_table table;
    void *data, *sums;
    int ret;

    if ((ret = iris_malloc(iris, options->bytes, &data)) != 0 ||
        (ret = iris_malloc(iris, options->bytes, &sums)) != 0 ||
        (ret = example_table_create(iris, num_sizes, iris_num_ranks(iris),
                                    &table)) != 0) {
        return ret;
    }
    args.data = data;
    args.sums = sums;

    /* New values for each size: between the barrier here and the one that
     * example_time_together() begins with, nobody reads. */
    for (int row = 0; row < num_sizes; row++) {
        args.count = sizes[row] / sizeof(uint32_t);
        if ((ret = iris_barrier(iris, NULL, NULL)) != 0 ||
            (ret = example_fill(iris, data, args.count, iris_rank(iris),
                                row)) != 0 ||
            (ret = measure(iris, options, &args, &table, row)) != 0) {
            return ret;
        }
    }
    if ((ret = example_print_ranks(iris, &table, title, sizes)) != 0 ||
        (ret = iris_free(iris, sums)) != 0 ||
        (ret = iris_free(iris, data)) != 0) {
        return ret;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 16 << 20, .iterations = 10};

    example_options(argc, argv,
                    "All ranks load from all ranks; prints GiB/s by rank.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
