/* SPDX-License-Identifier: MIT
 *
 * All-store: all ranks at once write to all ranks, each into a part of its own.
 */
#include "example.h"

static const char title[] = "All-store: each rank writes to all ranks at once";

struct all_store_args {
    const int64_t *context;
    const uint32_t *values;
    uint32_t *data; /* symmetric: `count` elements from each rank */
    size_t count;
};

/* The ranks start with different peers, so that they do not all write to the
 * same one at the same time. */
IRIS_KERNEL(all_store, struct all_store_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint32_t *values = args->values;
    uint32_t *data = args->data + (size_t)dev.rank * args->count;

    for (int step = 0; step < dev.num_ranks; step++) {
        int peer = (dev.rank + step) % dev.num_ranks;

        IRIS_LANES (wg, i, args->count) {
            iris_store(dev, &data[i], values[i], peer);
        }
    }
}

/* Checks the values that each rank stored here. */
static int check(iris_t *iris, const struct all_store_args *args, int round)
{
    int ret = iris_barrier(iris, NULL, NULL);

    for (int from = 0; ret == 0 && from < iris_num_ranks(iris); from++) {
        ret = example_check(iris, "stored", args->data + from * args->count,
                            args->count, example_value, from, round);
    }
    return ret;
}

/* One row of the table: args->count elements from each to each. */
static int measure(iris_t *iris, const struct example_options *options,
                   const struct all_store_args *args,
                   const struct example_table *table, int row)
{
    size_t bytes =
        args->count * sizeof(uint32_t) * (size_t)iris_num_ranks(iris);
    double seconds;
    int ret = example_time_together(iris, options, all_store, args,
                                    sizeof *args, NULL, &seconds);

    if (ret == 0) {
        ret = check(iris, args, row);
    }
    if (ret == 0) {
        ret = example_record(iris, table, row, iris_rank(iris),
                             example_gib_per_s(bytes, seconds));
    }
    return ret;
}

static int run(iris_t *iris, void *arg)
{
    const struct example_options *options = arg;
    struct all_store_args args = {.context = iris_device_context(iris)};
    size_t sizes[EXAMPLE_MAX_SIZES];
    int num_ranks = iris_num_ranks(iris);
    int num_sizes = example_sizes(options->bytes, sizes);
    struct example_table table;
    void *values, *data;
    int ret;

    if ((ret = iris_malloc(iris, options->bytes, &values)) != 0 ||
        (ret = iris_calloc(iris, (size_t)num_ranks, options->bytes, &data)) !=
            0 ||
        (ret = example_table_create(iris, num_sizes, num_ranks, &table)) != 0) {
        return ret;
    }
    args.values = values;
    args.data = data;

    for (int row = 0; row < num_sizes; row++) {
        args.count = sizes[row] / sizeof(uint32_t);
        if ((ret = example_fill(iris, values, args.count, iris_rank(iris),
                                row)) != 0 ||
            (ret = measure(iris, options, &args, &table, row)) != 0) {
            return ret;
        }
    }
    if ((ret = example_print_ranks(iris, &table, title, sizes)) != 0 ||
        (ret = iris_free(iris, data)) != 0 ||
        (ret = iris_free(iris, values)) != 0) {
        return ret;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 4 << 20, .iterations = 10};

    example_options(argc, argv,
                    "All ranks store to all ranks; prints GiB/s by rank.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
