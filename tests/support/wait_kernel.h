/* SPDX-License-Identifier: MIT
 *
 * A kernel that waits until a word of this rank's heap is 1.
 */
#ifndef IRIS_TESTS_WAIT_KERNEL_H
#define IRIS_TESTS_WAIT_KERNEL_H

#include <iris/device.h>

struct wait_args {
    const int64_t *context;
    uint64_t *word;
};

IRIS_KERNEL(wait_for_one, struct wait_args)
{
    (void)iris_wait_until_u64(iris_dev_init(args->context), args->word,
                              IRIS_CMP_EQ, 1);
}

static inline iris_status_t launch_wait(iris_t *iris, uint64_t *word)
{
    const struct wait_args args = {iris_device_context(iris), word};

    return iris_launch(iris, wait_for_one, 1, 1, &args, sizeof args, NULL);
}

#endif /* IRIS_TESTS_WAIT_KERNEL_H */
