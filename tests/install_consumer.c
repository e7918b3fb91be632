/* SPDX-License-Identifier: MIT
 *
 * A program outside the project: each of two ranks stores its number into the
 * other's heap. tests/install.sh builds it from pkg-config alone.
 */
#include <stdio.h>

#include <iris/device.h>
#include <iris/iris.h>

struct hello_args {
    int32_t *inbox; /* one element, symmetric */
    const int64_t *context;
};

IRIS_KERNEL(hello, struct hello_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int rank = (int)args->context[IRIS_CONTEXT_RANK];

    IRIS_LANES (wg, i, 1)
        iris_store(dev, &args->inbox[i], 100 + rank, 1 - rank);
}

static int rank_main(iris_t *iris, void *arg)
{
    struct hello_args args = {.context = iris_device_context(iris)};
    int32_t seen;

    (void)arg;
    if (iris_calloc_typed(iris, 1, &args.inbox) != IRIS_OK)
        return 1;
    if (iris_launch(iris, hello, 1, 64, &args, sizeof args, NULL) != IRIS_OK ||
        iris_barrier(iris, NULL, NULL) != IRIS_OK)
        return 2;
    if (iris_memcpy_sync(iris, &seen, args.inbox, sizeof seen) != IRIS_OK ||
        iris_barrier(iris, NULL, NULL) != IRIS_OK ||
        iris_free(iris, args.inbox) != IRIS_OK)
        return 3;
    printf("rank %d of %d saw %d\n", iris_rank(iris), iris_num_ranks(iris),
           seen);
    return seen == 101 - iris_rank(iris) ? 0 : 4;
}

int main(void)
{
    iris_status_t status = iris_spawn(NULL, 2, rank_main, NULL);

    if (status != IRIS_OK)
        fprintf(stderr, "%s: %s\n", iris_status_string(status),
                iris_last_error());
    return status != IRIS_OK;
}
