/* SPDX-License-Identifier: MIT
 *
 * Kernels for GPUs whose ranks have ranks of other nodes (ring.h): the end of
 * every kernel of the program, and the updates of words by proxies. One
 * workgroup of one lane.
 */
#ifndef IRIS_DEVICE_KERNELS_PROXY_H
#define IRIS_DEVICE_KERNELS_PROXY_H

#include <iris/device/kernels/signal_args.h>
#include <iris/device/wg/kernel.h>
#include <iris/device/wg/wg.h>

/* Waits until all requests of the stream's earlier kernels have reached their
 * targets. A kernel for GPUs does not know its job at its end. */
IRIS_KERNEL(iris_k_quiet, struct iris_quiet_args)
{
    if (iris_wg_leader(wg)) {
        iris_dev_t dev = iris_dev_init(args->context);

        IRIS_D_FAR_RELEASE(dev, iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
        (void)dev;
    }
}

/* Updates a word of this rank's heap for a proxy: the GPU's kernels update it by
 * the same atomics. */
IRIS_KERNEL(iris_k_update, struct iris_update_args)
{
    if (iris_wg_leader(wg)) {
        uint64_t old;

        iris_d_fence(iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
        old = iris_d_amo_any(
            iris_d_global((uintptr_t)args->at), args->value, args->expected,
            iris_d_amo_of((enum iris_op)args->op, (enum iris_d_kind)args->kind,
                          0, IRIS_RELAXED, IRIS_SCOPE_SYSTEM));
        iris_d_fence(iris_d_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM));
        iris_d_store(iris_d_global((uintptr_t)args->old), sizeof old, old,
                     iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    }
}

#endif /* IRIS_DEVICE_KERNELS_PROXY_H */
