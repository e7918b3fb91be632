/* SPDX-License-Identifier: MIT
 *
 * iris-info --check: two ranks write into each other's heaps.
 */
#include "config.h"

#include "info_check.h"

#include <iris/device.h>
#include <iris/iris.h>

#include <stdio.h>
#include <unistd.h>

struct check_args {
    const int64_t *context;
    int32_t *inbox;
    uint64_t *signal;
};

/* Each rank stores a number at the other and waits for the other's. */
IRIS_KERNEL(check, struct check_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int other = 1 - dev.rank;

    if (iris_wg_leader(wg)) {
        iris_store(dev, args->inbox, 100 + dev.rank, other);
        iris_signal_set(dev, args->signal, 1, other);
        (void)iris_wait_until(dev, args->signal, IRIS_CMP_EQ, 1);
    }
}

static int check_rank(iris_t *iris, void *arg)
{
    struct check_args args = {.context = iris_device_context(iris)};
    char *prefix = arg, file[128];
    int32_t seen = 0;
    int ret;

    snprintf(file, sizeof file, "%s_rank_%d_heap_bases.json", prefix,
             iris_rank(iris));
    unlink(file);
    if ((ret = iris_calloc_typed(iris, 1, &args.inbox)) != 0 ||
        (ret = iris_calloc_typed(iris, 1, &args.signal)) != 0 ||
        (ret = iris_launch(iris, check, 1, 1, &args, sizeof args, NULL)) != 0 ||
        (ret = iris_memcpy_sync(iris, &seen, args.inbox, sizeof seen)) != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0) {
        return ret;
    }
    if (seen != 101 - iris_rank(iris)) {
        fprintf(stderr, "rank %d received %d, expected %d\n", iris_rank(iris),
                (int)seen, 101 - iris_rank(iris));
        return 1;
    }
    if (iris_rank(iris) == 0) {
        printf("check: 2 ranks on %s wrote into each other's heaps: ok\n",
               iris_backend_name(iris));
    }
    return 0;
}

int info_check(void)
{
    struct iris_config config;
    char prefix[64];
    iris_status_t status;

    snprintf(prefix, sizeof prefix, "/tmp/iris-info-%ld", (long)getpid());
    iris_config_init(&config);
    config.heap_bytes = 16 << 20;
    config.heap_bases_prefix = prefix;
    status = iris_spawn(&config, 2, check_rank, prefix);
    if (status != IRIS_OK) {
        printf("check: FAILED: %s: %s\n", iris_status_string(status),
               iris_last_error());
    }
    return status != IRIS_OK;
}
