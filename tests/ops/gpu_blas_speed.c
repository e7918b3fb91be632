/* SPDX-License-Identifier: MIT
 *
 * How long products of square bf16 matrices take by the library that IRIS_BLAS
 * names: one rank on its GPU, the median of some runs of many products.
 */
#include "config.h"

#include <iris/iris.h>
#include <iris/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ops/product.h"

#define RUNS 9

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int by_size(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;

    return difference < 0 ? -1 : difference > 0;
}

static iris_status_t run(iris_t *iris, const struct iris_ops_product *product,
                         int count, double *us_p)
{
    double begin = now();
    iris_status_t status = IRIS_OK;

    for (int i = 0; i < count && status == IRIS_OK; i++) {
        status = iris_i_ops_product(iris, product, NULL);
    }
    status = status ? status : iris_stream_synchronize(iris, NULL);
    *us_p = (now() - begin) / count;
    return status;
}

static iris_status_t measure(iris_t *iris, int64_t side)
{
    int count = side > 4096 ? 20 : 400;
    struct iris_tensor_options options;
    struct iris_ops_product product = {.whole = side};
    double us[RUNS];
    iris_status_t status;

    iris_tensor_options_init(&options);
    options.dtype = IRIS_DTYPE_BF16;
    status = iris_randn(iris, IRIS_SHAPE(side, side), &options, &product.a);
    status =
        status ? status
               : iris_randn(iris, IRIS_SHAPE(side, side), &options, &product.b);
    status = status ? status
                    : iris_zeros(iris, IRIS_SHAPE(side, side), &options,
                                 &product.out);
    for (int i = -1; i < RUNS && status == IRIS_OK; i++) {
        status = run(iris, &product, count, &us[i < 0 ? 0 : i]);
    }
    if (status == IRIS_OK) {
        double cube = (double)side * (double)side * (double)side;

        qsort(us, RUNS, sizeof us[0], by_size);
        printf("iris bf16 %lld cubed: %.1f us, %.1f TFLOPS (from %.1f to "
               "%.1f us)\n",
               (long long)side, us[RUNS / 2], 2e-6 * cube / us[RUNS / 2], us[0],
               us[RUNS - 1]);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct iris_config config;
    iris_t *iris = NULL;
    iris_status_t status;

    iris_config_init(&config);
    config.num_ranks = 1;
    config.rank = 0;
    config.job_id = "speed";
    config.bootstrap = "env";
    config.heap_bytes = (size_t)2 << 30;
    status = iris_init(&config, &iris);
    for (int i = 1; i < argc && status == IRIS_OK; i++) {
        status = measure(iris, atoll(argv[i]));
    }
    if (status != IRIS_OK) {
        fprintf(stderr, "%s\n", iris_last_error());
    }
    if (iris != NULL) {
        (void)iris_finalize(iris);
    }
    return status != IRIS_OK;
}
