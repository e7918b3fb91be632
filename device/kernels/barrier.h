/* SPDX-License-Identifier: MIT
 *
 * The kernel behind iris_device_barrier() on the host. It runs as one
 * workgroup, and only the first IRIS_DEV_GROUP_LANES lanes work.
 */
#ifndef IRIS_DEVICE_KERNELS_BARRIER_H
#define IRIS_DEVICE_KERNELS_BARRIER_H

#include <iris/device/wg/barrier.h>

struct iris_barrier_args {
    const int64_t *context;
    struct iris_dev_group *group;
};

IRIS_KERNEL(iris_k_barrier, struct iris_barrier_args)
{
    iris_dev_barrier(wg, iris_dev_init(args->context), args->group);
}

#endif /* IRIS_DEVICE_KERNELS_BARRIER_H */
