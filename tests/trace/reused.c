/* SPDX-License-Identifier: MIT
 *
 * A program for trace.sh: allocates, names and frees the same memory over and
 * over, with one store of a kernel into each allocation.
 */
#include <iris/device.h>
#include <iris/iris.h>

#include <stdio.h>

#define ROUNDS 200

struct touch_args {
    const int64_t *context;
    int64_t *memory;
};

IRIS_KERNEL(touch, struct touch_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int partner = (dev.rank + 1) % dev.num_ranks;

    if (wg.id == 0) {
        iris_store(dev, args->memory, 1, partner);
    }
}

static iris_status_t touch_new_memory(iris_t *iris, int round)
{
    struct touch_args args = {.context = iris_device_context(iris)};
    char name[32];
    iris_status_t status = iris_malloc(iris, 4096, (void **)&args.memory);

    snprintf(name, sizeof name, "owner_%d", round);
    status = status ? status : iris_name(iris, args.memory, name);
    status = status ? status
                    : iris_launch(iris, touch, 1, 1, &args, sizeof args, NULL);
    status = status ? status : iris_stream_synchronize(iris, NULL);
    return status ? status : iris_free(iris, args.memory);
}

static int rank_main(iris_t *iris, void *arg)
{
    iris_status_t status = iris_trace_enable(iris, 10000);

    for (int i = 0; status == IRIS_OK && i < ROUNDS; i++) {
        status = touch_new_memory(iris, i);
    }
    return (int)(status ? status : iris_trace_export(iris, arg, 1));
}

int main(int argc, char **argv)
{
    iris_status_t status =
        argc == 2 ? iris_spawn(NULL, 2, rank_main, argv[1]) : IRIS_ERR_INVALID;

    if (status != IRIS_OK) {
        fprintf(stderr, "%s\n", iris_last_error());
    }
    return status != IRIS_OK;
}
