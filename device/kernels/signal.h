/* SPDX-License-Identifier: MIT
 *
 * Kernels for signals, waits and copies that the device's own queues cannot do
 * on streams: no queue adds to a signal, or reaches another node. One workgroup
 * of one lane.
 */
#ifndef IRIS_DEVICE_KERNELS_SIGNAL_H
#define IRIS_DEVICE_KERNELS_SIGNAL_H

#include <iris/device/wg/kernel.h>
#include <iris/device/kernels/signal_args.h>
#include <iris/device/wg/wg.h>

/* Sets and adds release all earlier work of the stream. */
IRIS_KERNEL(iris_k_signal, struct iris_signal_args)
{
    if (iris_wg_leader(wg)) {
        iris_signal_set(iris_dev_init(args->context), args->signal, args->value,
                        args->to_rank);
    }
}

IRIS_KERNEL(iris_k_signal_add, struct iris_signal_args)
{
    if (iris_wg_leader(wg)) {
        iris_signal_add(iris_dev_init(args->context), args->signal, args->value,
                        args->to_rank);
    }
}

/* Later work of the stream sees everything that the signal released. */
IRIS_KERNEL(iris_k_wait, struct iris_wait_args)
{
    if (iris_wg_leader(wg)) {
        (void)iris_wait_until_u64(iris_dev_init(args->context), args->signal,
                                  args->cmp, args->value);
    }
}

/* Sets a signal to the present value of a word of this rank. */
IRIS_KERNEL(iris_k_forward, struct iris_forward_args)
{
    if (iris_wg_leader(wg)) {
        iris_dev_t dev = iris_dev_init(args->context);

        iris_signal_set(dev, args->signal, iris_signal_fetch(dev, args->word),
                        args->to_rank);
    }
}

/* A row for each workgroup. */
IRIS_KERNEL(iris_k_transfer, struct iris_transfer_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    char *symmetric =
        (char *)args->symmetric + (int64_t)wg.id * args->symmetric_step;
    char *other = (char *)args->other + (int64_t)wg.id * args->other_step;

    if (args->gets) {
        iris_wg_get(wg, dev, symmetric, other, args->bytes, args->rank);
    } else {
        iris_wg_put(wg, dev, other, symmetric, args->bytes, args->rank);
    }
}

#endif /* IRIS_DEVICE_KERNELS_SIGNAL_H */
