/* SPDX-License-Identifier: MIT
 *
 * The kernel of all_reduce without an order.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_UNORDERED_H
#define IRIS_DEVICE_KERNELS_CCL_UNORDERED_H

#include <iris/device/kernels/ccl_loose.h>

IRIS_KERNEL(iris_k_ccl_unordered, struct iris_ccl_reduce_args)
{
    iris_d_ccl_loose_t loose;

    loose.wg = wg;
    loose.args = args;
    loose.ccl = iris_d_ccl_begin(wg, &args->start);
    iris_d_ccl_loose_step(&loose);
    iris_d_ccl_end(wg, &loose.ccl);
}

#endif /* IRIS_DEVICE_KERNELS_CCL_UNORDERED_H */
