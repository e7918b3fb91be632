/* SPDX-License-Identifier: MIT
 *
 * The kernel of collectives by packets.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_PACKET_H
#define IRIS_DEVICE_KERNELS_CCL_PACKET_H

#include <iris/device/kernels/ccl_exchange.h>

/* One workgroup processes unit u of each member's part, in every step of a
 * kernel and on every member. Therefore the rule about two parities
 * (iris_ccl_space) holds for each workgroup by itself. The next kernel divides
 * the units in another way, so all workgroups of a kernel with several end it
 * together. */
IRIS_KERNEL(iris_k_ccl_packet, struct iris_ccl_packet_args)
{
    iris_d_ccl_step_t step;
    size_t done;

    if (args->start.space == NULL) {
        iris_d_ccl_alone(wg, args);
        return;
    }
    step.ccl = iris_d_ccl_begin(wg, &args->start);
    iris_d_ccl_step_init(&step, args);
    for (done = 0; done < args->bytes; done += args->piece) {
        iris_d_ccl_next_piece(&step, args, done);
        iris_d_ccl_one_step(wg, &step, args);
    }
    if (done > args->piece) {
        iris_d_ccl_bye(wg, &step.ccl);
    }
    iris_d_ccl_end(wg, &step.ccl);
}

#endif /* IRIS_DEVICE_KERNELS_CCL_PACKET_H */
