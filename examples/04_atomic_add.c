/* SPDX-License-Identifier: MIT
 *
 * Remote atomic add: first all ranks add to all ranks at once, then each pair
 * of ranks is timed alone.
 */
#include "example.h"

static const char title[] =
    "Atomic add: a rank (row) adds to a rank's (column)";

struct add_args {
    const int64_t *context;
    const uint32_t *values;
    uint32_t *sums; /* symmetric */
    size_t count;
    int to_rank;
};

/* Order and scope are always said: relaxed, since nothing else hangs on these
 * additions; system, since other ranks add to the same elements. */
IRIS_KERNEL(add, struct add_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint32_t *values = args->values;
    uint32_t *sums = args->sums;
    int to_rank = args->to_rank;

    IRIS_LANES (wg, i, args->count) {
        (void)iris_atomic_add(dev, &sums[i], values[i], to_rank, IRIS_RELAXED,
                              IRIS_SCOPE_SYSTEM);
    }
}

struct add {
    const struct example_options *options;
    struct add_args args;
    struct example_table table; /* GiB/s */
};

/* Every rank adds to every rank, all at once. */
static int add_everywhere(iris_t *iris, struct add *self)
{
    int num_ranks = iris_num_ranks(iris);
    int ret = 0;

    for (int step = 0; ret == 0 && step < num_ranks; step++) {
        self->args.to_rank = (iris_rank(iris) + step) % num_ranks;
        ret = iris_launch(iris, add, example_grid(iris, self->options),
                          EXAMPLE_LANES, &self->args, sizeof self->args, NULL);
    }
    return ret == 0 ? iris_barrier(iris, NULL, NULL) : ret;
}

static int measure(iris_t *iris, void *arg, int adder, int to)
{
    struct add *self = arg;
    double seconds;
    int ret;

    if (iris_rank(iris) != adder) {
        return 0;
    }
    self->args.to_rank = to;
    ret = example_time(iris, self->options, add, &self->args, sizeof self->args,
                       &seconds);
    if (ret == 0) {
        ret = example_record(iris, &self->table, adder, to,
                             example_gib_per_s(self->options->bytes, seconds));
    }
    return ret;
}

/* The sum when each rank has added its values `times` times. */
static uint32_t sum(int num_ranks, size_t i, int times)
{
    return (uint32_t)times * example_sum(num_ranks, i, 0);
}

static int run(iris_t *iris, void *arg)
{
    struct add self = {.options = arg};
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    size_t bytes = self.options->bytes, count = bytes / sizeof(uint32_t);
    int num_adds = 1 + EXAMPLE_LAUNCHES(self.options);
    void *values, *sums;
    int ret;

    if ((ret = iris_malloc(iris, bytes, &values)) != 0 ||
        (ret = iris_calloc(iris, 1, bytes, &sums)) != 0 ||
        (ret = example_table_create(iris, num_ranks, num_ranks, &self.table)) !=
            0) {
        return ret;
    }
    self.args = (struct add_args){.context = iris_device_context(iris),
                                  .values = values,
                                  .sums = sums,
                                  .count = count};
    if ((ret = example_fill(iris, values, count, rank, 0)) != 0 ||
        (ret = add_everywhere(iris, &self)) != 0 ||
        (ret = example_check(iris, "sums", sums, count, sum, num_ranks, 1)) !=
            0 ||
        (ret = example_each_pair(iris, measure, &self)) != 0 ||
        (ret = example_check(iris, "sums", sums, count, sum, num_ranks,
                             num_adds)) != 0 ||
        (ret = example_print_pairs(iris, &self.table, title)) != 0 ||
        (ret = iris_free(iris, sums)) != 0 ||
        (ret = iris_free(iris, values)) != 0) {
        return ret;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 4 << 20, .iterations = 10};

    example_options(argc, argv,
                    "Each rank adds to each rank's values, atomically; prints "
                    "GiB/s by pair.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
