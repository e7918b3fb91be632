/* SPDX-License-Identifier: MIT
 *
 * Remote atomic exchange: each exchange returns the value that the one before it
 * put there, even if all ranks exchange with the same one at once.
 */
#include "example.h"

static const char title[] =
    "Atomic exchange: a rank (row) exchanges with a rank (column)";

struct xchg_args {
    const int64_t *context;
    const uint32_t *values;
    uint32_t *data; /* symmetric */
    uint32_t *olds; /* symmetric: the values that exchanges returned */
    size_t count;
    int to_rank;
};

IRIS_KERNEL(xchg, struct xchg_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint32_t *values = args->values;
    uint32_t *data = args->data, *olds = args->olds;
    int to_rank = args->to_rank;

    IRIS_LANES (wg, i, args->count) {
        olds[i] = iris_atomic_xchg(dev, &data[i], values[i], to_rank,
                                   IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    }
}

struct xchg {
    const struct example_options *options;
    struct xchg_args args;
    struct example_table table; /* GiB/s */
};

static iris_status_t exchange(iris_t *iris, struct xchg *self, int to_rank)
{
    self->args.to_rank = to_rank;
    return iris_launch(iris, xchg, example_grid(iris, self->options),
                       EXAMPLE_LANES, &self->args, sizeof self->args, NULL);
}

/* The rank before has left its values at rank `to`; they come back. Then times
 * it: from now on the rank gets its own values back. */
static int measure(iris_t *iris, void *arg, int rank, int to)
{
    struct xchg *self = arg;
    const struct xchg_args *args = &self->args;
    double seconds;
    int ret;

    if (iris_rank(iris) != rank) {
        return 0;
    }
    if ((ret = exchange(iris, self, to)) != 0 ||
        (ret = example_check(iris, "exchanged", args->olds, args->count,
                             example_value, rank - 1, 0)) != 0 ||
        (ret = example_time(iris, self->options, xchg, args, sizeof *args,
                            &seconds)) != 0 ||
        (ret = example_check(iris, "exchanged", args->olds, args->count,
                             example_value, rank, 0)) != 0) {
        return ret;
    }
    return example_record(iris, &self->table, rank, to,
                          example_gib_per_s(self->options->bytes, seconds));
}

/* Adds the values that all ranks got back to the values on rank 0. */
struct sum_args {
    const int64_t *context;
    const uint32_t *olds;
    uint32_t *data;
    size_t count;
};

IRIS_KERNEL(sum_olds, struct sum_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (int from = 0; from < dev.num_ranks; from++) {
        IRIS_LANES (wg, i, args->count) {
            args->data[i] += iris_load(dev, &args->olds[i], from);
        }
    }
}

/* All that was there, and all that was sent. */
static uint32_t sum(int num_ranks, size_t i, int round)
{
    return example_value(num_ranks - 1, i, 0) +
           example_sum(num_ranks, i, round);
}

/* All exchange with rank 0 at once. Nothing may be lost or come back twice:
 * the values there now and the values that came back are all the values. */
static int contend(iris_t *iris, struct xchg *self)
{
    struct sum_args args = {self->args.context, self->args.olds,
                            self->args.data, self->args.count};
    int ret;

    if ((ret = exchange(iris, self, 0)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0) {
        return ret;
    }
    if (iris_rank(iris) != 0) {
        return 0;
    }
    if ((ret = iris_launch(iris, sum_olds, 1, EXAMPLE_LANES, &args, sizeof args,
                           NULL)) != 0) {
        return ret;
    }
    return example_check(iris, "sum of values", args.data, args.count, sum,
                         iris_num_ranks(iris), 1);
}

static int run(iris_t *iris, void *arg)
{
    struct xchg self = {.options = arg};
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    size_t bytes = self.options->bytes, count = bytes / sizeof(uint32_t);
    void *values, *data, *olds;
    int ret;

    if ((ret = iris_malloc(iris, bytes, &values)) != 0 ||
        (ret = iris_malloc(iris, bytes, &data)) != 0 ||
        (ret = iris_malloc(iris, bytes, &olds)) != 0 ||
        (ret = example_table_create(iris, num_ranks, num_ranks, &self.table)) !=
            0) {
        return ret;
    }
    self.args = (struct xchg_args){.context = iris_device_context(iris),
                                   .values = values,
                                   .data = data,
                                   .olds = olds,
                                   .count = count};
    /* Before the first rank's values, those of a rank -1. */
    if ((ret = example_fill(iris, data, count, -1, 0)) != 0 ||
        (ret = example_fill(iris, values, count, rank, 0)) != 0 ||
        (ret = example_each_pair(iris, measure, &self)) != 0 ||
        (ret = example_fill(iris, values, count, rank, 1)) != 0 ||
        (ret = contend(iris, &self)) != 0 ||
        (ret = example_print_pairs(iris, &self.table, title)) != 0 ||
        (ret = iris_free(iris, olds)) != 0 ||
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
                    "Each rank exchanges values with each rank; prints GiB/s "
                    "by pair.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
