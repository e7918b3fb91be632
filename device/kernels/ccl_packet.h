/* SPDX-License-Identifier: MIT
 *
 * The kernel of collectives by packets.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_PACKET_H
#define IRIS_DEVICE_KERNELS_CCL_PACKET_H

#include <iris/device/kernels/ccl_exchange.h>

/* Unit u of each member's part is the affair of one workgroup, in every step of
 * a kernel and on every member, so that what iris_ccl_space says of two
 * parities is true of each workgroup by itself. The next kernel divides the
 * units in another way, so workgroups of one of several steps end it together.
 */
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
