/* SPDX-License-Identifier: MIT
 *
 * A program for ranges.sh: calls of two ranks that succeed, and calls that fail
 * in every way. The last one is for a rank that has left.
 */
#include <iris/device.h>
#include <iris/iris.h>

#include <stdio.h>
#include <unistd.h>

struct store_args {
    const int64_t *context;
    float *memory;
};

IRIS_KERNEL(store_once, struct store_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (wg.id == 0 && iris_wg_leader(wg)) {
        iris_store_volatile(dev, args->memory, 1.0f,
                            (dev.rank + 1) % dev.num_ranks);
    }
}

static iris_status_t succeed(iris_t *iris, float *memory)
{
    struct store_args args = {iris_device_context(iris), memory};
    iris_status_t status =
        iris_launch(iris, store_once, 1, 1, &args, sizeof args, NULL);

    status = status ? status : iris_stream_synchronize(iris, NULL);
    status = status ? status
                    : iris_put_on_stream(iris, memory, memory, 64,
                                         1 - iris_rank(iris), NULL);
    status = status ? status : iris_barrier(iris, NULL, NULL);
    return status ? status
                  : iris_all_reduce(iris, memory, memory, 16, IRIS_DTYPE_F32,
                                    IRIS_REDUCE_SUM, NULL);
}

/* The number of calls that did not fail. */
static int fail(iris_t *iris, float *memory)
{
    void *none = NULL;
    int good = 0;

    good += iris_malloc(iris, (size_t)1 << 50, &none) == IRIS_OK;
    good += iris_free(iris, (char *)memory + 1) == IRIS_OK;
    good += iris_launch(iris, store_once, 0, 1, NULL, 0, NULL) == IRIS_OK;
    good += iris_put_on_stream(iris, memory, memory, 64, 99, NULL) == IRIS_OK;
    good += iris_all_reduce(iris, NULL, memory, 17, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM, NULL) == IRIS_OK;
    good += iris_broadcast(iris, NULL, 8, 0, NULL) == IRIS_OK;
    return good;
}

int main(void)
{
    iris_t *iris;
    float *memory;
    int good;

    if (iris_init(NULL, &iris) != IRIS_OK ||
        iris_calloc(iris, 64, sizeof(float), (void **)&memory) != IRIS_OK ||
        succeed(iris, memory) != IRIS_OK) {
        fprintf(stderr, "%s\n", iris_last_error());
        return 1;
    }
    good = fail(iris, memory);
    if (iris_rank(iris) == 1) {
        _exit(good == 0 ? 0 : 1);
    }
    good += iris_barrier(iris, NULL, NULL) == IRIS_OK; /* rank 1 has left */
    (void)iris_finalize(iris);
    return good == 0 ? 0 : 1;
}
