/* SPDX-License-Identifier: MIT
 *
 * Remote store: each rank in turn writes into each rank's heap, element by
 * element. In the end each rank checks its own heap.
 */
#include "example.h"

static const char title[] = "Store: a rank (row) writes to a rank (column)";

struct store_args {
    const int64_t *context;
    const uint32_t *values; /* what to store */
    uint32_t *data;         /* symmetric: `count` elements for each writer */
    size_t count;
    int to_rank;
};

/* `data` is an address in this rank's heap; iris_store() writes the element
 * that to_rank keeps at the same place in its heap. */
IRIS_KERNEL(store, struct store_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint32_t *values = args->values;
    uint32_t *data = args->data + (size_t)dev.rank * args->count;
    int to_rank = args->to_rank;

    IRIS_LANES (wg, i, args->count) {
        iris_store(dev, &data[i], values[i], to_rank);
    }
}

struct store {
    const struct example_options *options;
    struct store_args args;
    struct example_table table; /* GiB/s */
};

static int measure(iris_t *iris, void *arg, int writer, int to)
{
    struct store *self = arg;
    double seconds;
    int ret;

    if (iris_rank(iris) != writer) {
        return 0;
    }
    self->args.to_rank = to;
    ret = example_time(iris, self->options, store, &self->args,
                       sizeof self->args, &seconds);
    if (ret == 0) {
        ret = example_record(iris, &self->table, writer, to,
                             example_gib_per_s(self->options->bytes, seconds));
    }
    return ret;
}

/* After a barrier all that kernels wrote before it is visible to all ranks. */
static int check(iris_t *iris, const struct store_args *args)
{
    int ret = iris_barrier(iris, NULL, NULL);

    for (int from = 0; ret == 0 && from < iris_num_ranks(iris); from++) {
        ret = example_check(iris, "stored",
                            args->data + (size_t)from * args->count,
                            args->count, example_value, from, 0);
    }
    return ret;
}

static int run(iris_t *iris, void *arg)
{
    struct store self = {.options = arg};
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    size_t bytes = self.options->bytes, count = bytes / sizeof(uint32_t);
    void *values, *data;
    int ret;

    if ((ret = iris_malloc(iris, bytes, &values)) != 0 ||
        (ret = iris_calloc(iris, (size_t)num_ranks, bytes, &data)) != 0 ||
        (ret = example_table_create(iris, num_ranks, num_ranks, &self.table)) !=
            0) {
        return ret;
    }
    self.args = (struct store_args){.context = iris_device_context(iris),
                                    .values = values,
                                    .data = data,
                                    .count = count};
    if ((ret = example_fill(iris, values, count, rank, 0)) != 0 ||
        (ret = example_each_pair(iris, measure, &self)) != 0 ||
        (ret = check(iris, &self.args)) != 0 ||
        (ret = example_print_pairs(iris, &self.table, title)) != 0 ||
        (ret = iris_free(iris, data)) != 0 ||
        (ret = iris_free(iris, values)) != 0) {
        return ret;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 16 << 20, .iterations = 10};

    example_options(argc, argv,
                    "Each rank stores to each rank; prints GiB/s by pair.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
