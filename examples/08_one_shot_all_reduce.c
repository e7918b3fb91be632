/* SPDX-License-Identifier: MIT
 *
 * An all-reduce of one's own, in one kernel: each rank says that its input is
 * ready, then loads everybody's and sums in rank order, so that all ranks get
 * the same bits.
 */
#include "example.h"

#include <stdlib.h>
#include <string.h>

static const char title[] = "One-shot all-reduce (sum of floats)";

struct all_reduce_args {
    const int64_t *context;
    float *input; /* symmetric */
    float *output;
    uint64_t *ready; /* symmetric: launches each rank has announced here */
    size_t count;
    uint64_t launch; /* from 1 */
};

IRIS_KERNEL(all_reduce, struct all_reduce_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    size_t num_ranks = (size_t)dev.num_ranks;
    const float *input = args->input;
    float *output = args->output;

    /* Signals release: a rank that sees one sees the input written before it.
     * Counts only grow, so nothing is reset between launches. */
    if (wg.id == 0) {
        IRIS_WG_LANES (wg, peer, num_ranks) {
            iris_signal_set(dev, &args->ready[dev.rank], args->launch,
                            (int)peer);
        }
    }
    if (iris_wg_leader(wg)) {
        iris_wait_until_all(dev, args->ready, num_ranks, NULL, IRIS_CMP_GE,
                            args->launch);
    }
    iris_wg_barrier(wg);

    IRIS_LANES (wg, i, args->count) {
        output[i] = iris_load(dev, &input[i], 0);
    }
    for (int peer = 1; peer < dev.num_ranks; peer++) {
        IRIS_LANES (wg, i, args->count) {
            output[i] += iris_load(dev, &input[i], peer);
        }
    }
}

/* The values have any sign and size, so that the sum's last bits depend on the
 * order in which the ranks are added. */
static float input_value(int rank, size_t i, int round)
{
    return (float)(int32_t)(example_value(rank, i, round) * 2654435761u) / 6.0f;
}

/* This rank's input for a size: between the barrier here and the one before the
 * next launch nobody reads it. */
static int fill(iris_t *iris, void *input, size_t count, int round)
{
    float *host = malloc(count * sizeof *host);
    iris_status_t status = iris_barrier(iris, NULL, NULL);

    for (size_t i = 0; host != NULL && i < count; i++) {
        host[i] = input_value(iris_rank(iris), i, round);
    }
    if (status == IRIS_OK && host != NULL) {
        status = example_copy(iris, input, host, count * sizeof *host);
    }
    free(host);
    return host == NULL ? IRIS_ERR_NO_MEMORY : status;
}

/* Bit for bit the host's sum, which it adds in the same order. */
static int check(iris_t *iris, const float *output, size_t count, int round)
{
    float *host = malloc(count * sizeof *host);
    int ret = host == NULL ? IRIS_ERR_NO_MEMORY : 0;

    if (ret == 0) {
        ret = example_copy(iris, host, output, count * sizeof *host);
    }
    for (size_t i = 0; ret == 0 && i < count; i++) {
        float sum = input_value(0, i, round);

        for (int rank = 1; rank < iris_num_ranks(iris); rank++) {
            sum += input_value(rank, i, round);
        }
        if (memcmp(&host[i], &sum, sizeof sum) != 0) {
            ret = example_wrong(iris, "output", i, host[i], sum);
        }
    }
    free(host);
    return ret;
}

/* One row of the table. */
static int measure(iris_t *iris, const struct example_options *options,
                   struct all_reduce_args *args, struct example_table *table,
                   int row)
{
    double seconds;
    int ret;

    if ((ret = fill(iris, args->input, args->count, row)) != 0 ||
        (ret = example_time_together(iris, options, all_reduce, args,
                                     sizeof *args, &args->launch, &seconds)) !=
            0 ||
        (ret = check(iris, args->output, args->count, row)) != 0) {
        return ret;
    }
    return example_record(iris, table, row, iris_rank(iris), seconds);
}

static int run(iris_t *iris, void *arg)
{
    const struct example_options *options = arg;
    struct all_reduce_args args = {.context = iris_device_context(iris)};
    size_t sizes[EXAMPLE_MAX_SIZES];
    int num_sizes = example_sizes(options->bytes, sizes);
    size_t num_ranks = (size_t)iris_num_ranks(iris);
    struct example_table table;
    void *input, *output, *ready;
    int ret;

    if ((ret = iris_malloc(iris, options->bytes, &input)) != 0 ||
        (ret = iris_malloc(iris, options->bytes, &output)) != 0 ||
        (ret = iris_calloc(iris, num_ranks, sizeof(uint64_t), &ready)) != 0 ||
        (ret = example_table_create(iris, num_sizes, (int)num_ranks, &table)) !=
            0) {
        return ret;
    }
    args.input = input;
    args.output = output;
    args.ready = ready;

    for (int row = 0; ret == 0 && row < num_sizes; row++) {
        args.count = sizes[row] / sizeof(float);
        ret = measure(iris, options, &args, &table, row);
    }
    if (ret != 0 ||
        (ret = example_print_times(iris, &table, title, sizes)) != 0 ||
        (ret = iris_free(iris, ready)) != 0 ||
        (ret = iris_free(iris, output)) != 0 ||
        (ret = iris_free(iris, input)) != 0) {
        return ret;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 4 << 20, .iterations = 10};

    example_options(argc, argv,
                    "All ranks sum up all ranks' floats; prints times by size.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
