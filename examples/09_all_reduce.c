/* SPDX-License-Identifier: MIT
 *
 * The same sum twice: by iris_all_reduce() and by a kernel of one's own, which
 * loads everybody's input in the ranks' order. The results have the same bits.
 */
#include "example.h"

#include <stdio.h>
#include <string.h>

enum { COUNT = 1000, BYTES = COUNT * sizeof(float) };

struct sum_args {
    const int64_t *context;
    float *in; /* symmetric */
    float *out;
};

IRIS_KERNEL(sum_all, struct sum_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, i, COUNT) {
        float sum = iris_load(dev, &args->in[i], 0);

        for (int rank = 1; rank < dev.num_ranks; rank++) {
            sum += iris_load(dev, &args->in[i], rank);
        }
        args->out[i] = sum;
    }
}

static int run(iris_t *iris, void *options)
{
    struct sum_args args = {.context = iris_device_context(iris)};
    float host[COUNT], device[COUNT];
    void *in, *out;
    int ret;

    /* Values of any sign and size: the sum's last bits depend on the order. */
    for (size_t i = 0; i < COUNT; i++) {
        uint32_t value = example_value(iris_rank(iris), i, 0) * 2654435761u;

        host[i] = (float)(int32_t)value / 6.0f;
    }
    if ((ret = iris_malloc(iris, BYTES, &in)) != 0 ||
        (ret = iris_malloc(iris, BYTES, &out)) != 0 ||
        (ret = example_copy(iris, in, host, BYTES)) != 0 ||
        (ret = iris_all_reduce(iris, in, out, COUNT, IRIS_DTYPE_F32,
                               IRIS_REDUCE_SUM, NULL)) != 0 ||
        (ret = example_copy(iris, host, out, BYTES)) != 0) {
        return ret;
    }
    args.in = in;
    args.out = out;
    if ((ret = iris_barrier(iris, NULL, NULL)) !=
            0 || /* all have their input */
        (ret = iris_launch(iris, sum_all, example_grid(iris, options),
                           EXAMPLE_LANES, &args, sizeof args, NULL)) != 0 ||
        (ret = example_copy(iris, device, out, BYTES)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0) { /* all have read it */
        return ret;
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (memcmp(&host[i], &device[i], sizeof host[i]) != 0) {
            return example_wrong(iris, "kernel's sum", i, device[i], host[i]);
        }
    }
    if (iris_rank(iris) == 0) {
        printf("  size  element   iris_all_reduce       the kernel's\n");
        for (size_t i = 0; i < COUNT; i += 333) {
            printf("%6d %8zu %17.6a %18.6a\n", (int)BYTES, i, host[i],
                   device[i]);
        }
    }
    return (ret = iris_free(iris, out)) != 0 ? ret : iris_free(iris, in);
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = BYTES, .iterations = 1};

    example_options(argc, argv, "All ranks sum up 1000 floats in two ways.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
