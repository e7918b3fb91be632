/* SPDX-License-Identifier: MIT
 *
 * A kernel that can be stopped: an observer sees its load.
 */
#include "config.h"

#include "info_hold.h"

#include <iris/device.h>

struct hold_args {
    const int64_t *context;
    int32_t *word;
};

IRIS_KERNEL(hold, struct hold_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        (void)iris_load(dev, args->word, dev.rank);
    }
}

iris_status_t info_hold(iris_t *iris, void *word)
{
    struct hold_args args = {.context = iris_device_context(iris)};

    args.word = (int32_t *)word;
    return iris_launch(iris, hold, 1, 1, &args, sizeof args, NULL);
}
