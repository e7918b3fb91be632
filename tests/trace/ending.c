/* SPDX-License-Identifier: MIT
 *
 * A program for trace.sh that knows nothing of traces, and ends one way or
 * another: ending HOW, where HOW is finalize, later, exit, killed, or fail.
 */
#include <iris/device.h>
#include <iris/iris.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store_args {
    const int64_t *context;
    int64_t *memory;
};

IRIS_KERNEL(store_once, struct store_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (wg.id == 0 && iris_wg_leader(wg)) {
        iris_store_volatile(dev, args->memory, 1,
                            (dev.rank + 1) % dev.num_ranks);
    }
}

static iris_status_t work(iris_t *iris)
{
    struct store_args args = {.context = iris_device_context(iris)};
    iris_status_t status = iris_calloc(iris, 1, 4096, (void **)&args.memory);

    status =
        status ? status
               : iris_launch(iris, store_once, 1, 1, &args, sizeof args, NULL);
    status = status ? status : iris_stream_synchronize(iris, NULL);
    return status ? status : iris_barrier(iris, NULL, NULL);
}

static int work_and_fail(iris_t *iris, void *arg)
{
    return work(iris) != IRIS_OK ? 1 : 3;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    iris_t *iris;

    if (strcmp(how, "fail") == 0) {
        return iris_spawn(NULL, 0, work_and_fail, NULL) == IRIS_OK ? 0 : 3;
    }
    if (iris_init(NULL, &iris) != IRIS_OK || work(iris) != IRIS_OK) {
        fprintf(stderr, "%s\n", iris_last_error());
        return 1;
    }
    if (strcmp(how, "killed") == 0 && iris_rank(iris) == 1) {
        raise(SIGKILL);
    }
    if (strcmp(how, "exit") == 0) {
        exit(5);
    }
    if (strcmp(how, "later") == 0) {
        return iris_finalize_later(iris) == IRIS_OK ? 7 : 1;
    }
    return iris_finalize(iris) == IRIS_OK ? 0 : 1;
}
