/* SPDX-License-Identifier: MIT
 *
 * Remote load: each rank in turn reads each rank's heap, element by element,
 * with ordinary instructions. Read this example first.
 */
#include "example.h"

static const char title[] = "Load: a rank (row) reads from a rank (column)";

/* The kernel's arguments. */
struct load_args {
    const int64_t *context;
    const uint32_t *data; /* symmetric: each rank has its own values there */
    uint32_t *loaded;
    size_t count;
    int from_rank;
};

/* The work of a workgroup. `data` is an address in this rank's heap; iris_load()
 * reads the element that from_rank keeps at the same place in its heap. */
IRIS_KERNEL(load, struct load_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint32_t *data = args->data;
    uint32_t *loaded = args->loaded;
    int from_rank = args->from_rank;

    IRIS_LANES (wg, i, args->count) {
        loaded[i] = iris_load(dev, &data[i], from_rank);
    }
}

struct load {
    const struct example_options *options;
    struct load_args args;
    struct example_table table; /* GiB/s */
};

/* The reader loads all that `from` has, checks it, and times it. */
static int measure(iris_t *iris, void *arg, int reader, int from)
{
    struct load *self = arg;
    struct load_args *args = &self->args;
    double seconds;
    int ret;

    if (iris_rank(iris) != reader) {
        return 0;
    }
    args->from_rank = from;
    ret = iris_launch(iris, load, example_grid(iris, self->options),
                      EXAMPLE_LANES, args, sizeof *args, NULL);
    if (ret == 0) {
        ret = example_check(iris, "loaded", args->loaded, args->count,
                            example_value, from, 0);
    }
    if (ret == 0) {
        ret = example_time(iris, self->options, load, args, sizeof *args,
                           &seconds);
    }
    if (ret == 0) {
        ret = example_record(iris, &self->table, reader, from,
                             example_gib_per_s(self->options->bytes, seconds));
    }
    return ret;
}

/* The work of each rank. If something fails it returns at once, and the others
 * learn of it in their next barrier. */
static int run(iris_t *iris, void *arg)
{
    struct load self = {.options = arg};
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    size_t bytes = self.options->bytes, count = bytes / sizeof(uint32_t);
    void *data, *loaded;
    int ret;

    /* Every rank makes the same allocations, so they have the same place in
     * every heap. Such allocations are symmetric. */
    if ((ret = iris_malloc(iris, bytes, &data)) != 0 ||
        (ret = iris_malloc(iris, bytes, &loaded)) != 0 ||
        (ret = example_table_create(iris, num_ranks, num_ranks, &self.table)) !=
            0) {
        return ret;
    }
    self.args = (struct load_args){.context = iris_device_context(iris),
                                   .data = data,
                                   .loaded = loaded,
                                   .count = count};
    if ((ret = example_fill(iris, data, count, rank, 0)) != 0 ||
        (ret = example_each_pair(iris, measure, &self)) != 0 ||
        (ret = example_print_pairs(iris, &self.table, title)) != 0 ||
        (ret = iris_free(iris, loaded)) != 0 ||
        (ret = iris_free(iris, data)) != 0) {
        return ret;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 16 << 20, .iterations = 10};

    example_options(argc, argv,
                    "Each rank loads from each rank; prints GiB/s by pair.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
