/* SPDX-License-Identifier: MIT
 *
 * The barrier between ranks, inside a kernel.
 */
#ifndef IRIS_DEVICE_BARRIER_H
#define IRIS_DEVICE_BARRIER_H

#include <iris/device/wg.h>

/* Releases at system scope before the value to announce is at hand, so that the
 * store that announces it is IRIS_I_AHEAD only. A GPU's release takes as long
 * as half the way to a peer, in which loads come home. A CPU's is free, and
 * ThreadSanitizer wants it at the store. */
#if IRIS_ON_CPU
#define IRIS_I_AHEAD IRIS_RELEASE
#else
#define IRIS_I_AHEAD IRIS_RELAXED
#endif

IRIS_DEVICE void iris_i_release_ahead(void)
{
#if !IRIS_ON_CPU
    iris_i_fence(iris_i_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
#endif
}

/* A word of the group that never changes. */
IRIS_DEVICE uint64_t iris_i_group_word(const void *word)
{
    return (uint64_t)iris_i_load_constant((const int64_t *)word);
}

/* The event of an announcement to member i. It names our own copy of the word
 * that is written there. */
IRIS_DEVICE void iris_i_announce_seam(iris_dev_t dev,
                                      struct iris_dev_group *ours, uint32_t i)
{
    uint64_t *arrivals = (uint64_t *)iris_i_global((uintptr_t)ours->arrivals);
    int peer = (int)iris_i_group_word(&iris_i_group_ranks(ours)[i]);

    iris_i_strict_seam(
        dev, &arrivals[ours->index],
        iris_i_ordered(iris_i_writes(IRIS_OP_STORE, peer, sizeof *arrivals),
                       iris_i_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM)));
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
    uint64_t *words = iris_i_group_words(ours);
    uint32_t lane = iris_i_lane(), step = iris_i_num_lanes();
    uint32_t first = lane < IRIS_DEV_GROUP_LANES ? lane : 0;
    /* All loads are under way at once, and come home while the release below
     * takes its time: nothing before it waits for them. */
    uint32_t count = (uint32_t)iris_i_group_word(&ours->count);
    uint64_t *arrivals = (uint64_t *)iris_i_global(
        (uintptr_t)iris_i_group_word(&ours->arrivals));
    uint64_t where = iris_i_group_word(&words[2 * first]);
    uint64_t before = words[2 * first + 1];
    iris_i_goal_t arrived;

    step = step < IRIS_DEV_GROUP_LANES ? step : IRIS_DEV_GROUP_LANES;
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_i_seam(
            dev, ours,
            iris_i_ordered(iris_i_reads(IRIS_OP_BARRIER, -1, 0),
                           iris_i_order(IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM)));
    }
    if (lane < IRIS_DEV_GROUP_LANES) {
        /* Of each lane that announces; it covers what the whole workgroup
         * wrote. */
        iris_i_release_ahead();
        count = (uint32_t)iris_i_behind_fence(count);
        before = iris_i_behind_fence(before);
        for (uint32_t i = lane; i < count; i += step) {
            if (i != first) {
                where = iris_i_group_word(&words[2 * i]);
                before = words[2 * i + 1];
            }
            iris_i_announce_seam(dev, ours, i);
            iris_i_store(iris_i_global((uintptr_t)where), sizeof before,
                         before + 1,
                         iris_i_order(IRIS_I_AHEAD, IRIS_SCOPE_SYSTEM));
            words[2 * i + 1] = before + 1;
        }
        arrived = iris_i_goal(IRIS_I_KIND_u64, IRIS_CMP_GE, before + 1);
        arrived.op = IRIS_OP_BARRIER; /* who reads a report wants to know */
        for (uint32_t i = lane; i < count; i += step) {
            (void)iris_i_wait(dev, &arrivals[i], arrived);
        }
    }
    iris_wg_barrier(wg);
}

#endif /* IRIS_DEVICE_BARRIER_H */
