/* SPDX-License-Identifier: MIT
 *
 * The barrier between ranks, inside a kernel.
 */
#ifndef IRIS_DEVICE_BARRIER_H
#define IRIS_DEVICE_BARRIER_H

#include <iris/device/wg.h>

/** Waits until every member of the group has called it as often as this rank.
 *  Called by all lanes of one workgroup of each member, one workgroup at a time
 *  for one group. `group` is what iris_group_device() on the host returned.
 *
 *  Order: acquire and release at system scope for the workgroup. What it wrote
 *  before, or acquired from other workgroups of its rank, is visible after to
 *  the workgroup of every other member. Other workgroups are not waited for.
 *
 *  Flat, one round: each rank stores its epoch at every member, one lane a
 *  peer, and waits for theirs. Epochs only grow, so nothing is reset, and a
 *  member that is one barrier ahead does no harm. */
IRIS_DEVICE_LARGE void iris_dev_barrier(iris_wg_t wg, iris_dev_t dev,
                                        struct iris_dev_group *group)
{
    struct iris_dev_group *ours =
        (struct iris_dev_group *)iris_i_global((uintptr_t)group);
    size_t count = (size_t)ours->count;
    const uint64_t *members = iris_i_group_words(ours);
    uint64_t *arrivals = iris_i_group_words(ours) + count;
    uint64_t epoch;

    if (iris_wg_leader(wg)) {
        iris_i_seam(
            dev, ours,
            iris_i_ordered(iris_i_reads(IRIS_OP_BARRIER, -1, 0),
                           iris_i_order(IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM)));
        ours->epoch++;
    }
    /* Every lane reads the new epoch, and each lane's release below covers what
     * the whole workgroup wrote. */
    iris_wg_barrier(wg);
    epoch = ours->epoch;
    IRIS_WG_LANES (wg, i, count) {
        iris_atomic_store_u64(dev, &arrivals[ours->index], epoch,
                              (int)members[i], IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    }
    IRIS_WG_LANES (wg, i, count) {
        (void)iris_wait_until_u64(dev, &arrivals[i], IRIS_CMP_GE, epoch);
    }
    iris_wg_barrier(wg);
}

#endif /* IRIS_DEVICE_BARRIER_H */
