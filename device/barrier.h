/* SPDX-License-Identifier: MIT
 *
 * The barrier between ranks, inside a kernel.
 */
#ifndef IRIS_DEVICE_BARRIER_H
#define IRIS_DEVICE_BARRIER_H

#include <iris/device/wg.h>

/* What of a group never changes. */
typedef struct iris_i_group {
    size_t count;
    size_t index;
} iris_i_group_t;

IRIS_DEVICE iris_i_group_t iris_i_group(const struct iris_dev_group *group)
{
    uint64_t both = (uint64_t)iris_i_load_constant(
        (const int64_t *)(const void *)&group->count);
    iris_i_group_t known = {(uint32_t)both, (size_t)(both >> 32)};

    return known;
}

/* Whatever is ours, as it is mapped here at member i. */
IRIS_DEVICE void *iris_i_at_member(const void *ours, uint64_t way)
{
    return iris_i_global((uintptr_t)ours + (uintptr_t)way);
}

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
    int64_t *words = (int64_t *)(void *)iris_i_group_words(ours);
    size_t lane = iris_i_lane();
    size_t first = lane < IRIS_DEV_GROUP_AHEAD ? lane : 0;
    /* All three loads are under way at once, and come home while the release
     * below takes its time. Every lane reads the epoch before the leader counts
     * it. */
    iris_i_group_t known = iris_i_group(ours);
    uint64_t way = (uint64_t)iris_i_load_constant(&words[first]);
    uint64_t epoch = ours->epoch;
    uint64_t *arrivals =
        (uint64_t *)(void *)&words[IRIS_DEV_GROUP_ARRIVALS(known.count)];
    iris_i_order_t release = iris_i_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    iris_i_goal_t arrived;

    /* The release of each lane that announces covers what the whole workgroup
     * wrote. */
    iris_wg_barrier(wg);
    if (lane < known.count) {
        iris_i_release_ahead();
    }
    epoch++;
    if (iris_wg_leader(wg)) {
        iris_i_seam(
            dev, ours,
            iris_i_ordered(iris_i_reads(IRIS_OP_BARRIER, -1, 0),
                           iris_i_order(IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM)));
        ours->epoch = epoch;
    }
    IRIS_WG_LANES (wg, i, known.count) {
        int peer = (int)iris_i_load_constant(&words[known.count + i]);

        if (i != first) {
            way = (uint64_t)iris_i_load_constant(&words[i]);
        }
        iris_i_strict_seam(
            dev, &arrivals[known.index],
            iris_i_ordered(iris_i_writes(IRIS_OP_STORE, peer, sizeof epoch),
                           release));
        iris_i_store(iris_i_at_member(&arrivals[known.index], way),
                     sizeof epoch, epoch,
                     iris_i_order(IRIS_I_AHEAD, IRIS_SCOPE_SYSTEM));
    }
    arrived = iris_i_goal(IRIS_I_KIND_u64, IRIS_CMP_GE, epoch);
    arrived.op = IRIS_OP_BARRIER; /* who reads a report wants to know */
    IRIS_WG_LANES (wg, i, known.count) {
        (void)iris_i_wait(dev, &arrivals[i], arrived);
    }
    iris_wg_barrier(wg);
}

#endif /* IRIS_DEVICE_BARRIER_H */
