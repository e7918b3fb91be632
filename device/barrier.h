/* SPDX-License-Identifier: MIT
 *
 * The barrier between ranks, inside a kernel.
 */
#ifndef IRIS_DEVICE_BARRIER_H
#define IRIS_DEVICE_BARRIER_H

#include <iris/device/wg.h>

/* A release at system scope ahead of the store that announces, which is
 * IRIS_I_AHEAD only. A GPU's is a fence of its own, which takes as long as half
 * the way to a peer: loads come home in that time. On the CPU the store itself
 * releases: that is free, and ThreadSanitizer understands it. */
#if IRIS_ON_CPU
#define IRIS_I_AHEAD IRIS_RELEASE
IRIS_DEVICE void iris_i_release_ahead(void)
{
}
#else
#define IRIS_I_AHEAD IRIS_RELAXED
IRIS_DEVICE void iris_i_release_ahead(void)
{
    iris_i_fence(iris_i_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
}
#endif

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

    iris_i_strict_seam(
        dev, &arrivals[ours->index],
        iris_i_ordered(iris_i_writes(IRIS_OP_STORE,
                                     (int)iris_i_group_ranks(ours)[i],
                                     sizeof *arrivals),
                       iris_i_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM)));
}

/* One lane's part: announces to its members and waits for theirs. */
IRIS_DEVICE void iris_i_meet(iris_dev_t dev, struct iris_dev_group *ours)
{
    uint64_t *words = iris_i_group_words(ours);
    uint32_t lane = iris_i_lane(), step = iris_i_num_lanes();
    /* All loads are under way when the release begins, which waits for none. */
    uint32_t count = (uint32_t)iris_i_group_word(&ours->count); /* low half */
    uint64_t *arrivals = (uint64_t *)iris_i_global(
        (uintptr_t)iris_i_group_word(&ours->arrivals));
    uint64_t where = iris_i_group_word(&words[2 * lane]);
    uint64_t before = words[2 * lane + 1];
    iris_i_goal_t arrived;

    step = step < IRIS_DEV_GROUP_LANES ? step : IRIS_DEV_GROUP_LANES;
    iris_i_release_ahead(); /* of all that the workgroup wrote */
    count = (uint32_t)iris_i_behind_fence(count);
    before = iris_i_behind_fence(before);
    for (uint32_t i = lane; i < count; i += step) {
        if (i != lane) {
            where = iris_i_group_word(&words[2 * i]);
            before = words[2 * i + 1];
        }
        iris_i_announce_seam(dev, ours, i);
        iris_i_store(iris_i_global((uintptr_t)where), sizeof before, before + 1,
                     iris_i_order(IRIS_I_AHEAD, IRIS_SCOPE_SYSTEM));
        words[2 * i + 1] = before + 1;
    }
    arrived = iris_i_goal(IRIS_I_KIND_u64, IRIS_CMP_GE, before + 1);
    arrived.op = IRIS_OP_BARRIER; /* who reads a report wants to know */
    for (uint32_t i = lane; i < count; i += step) {
        (void)iris_i_wait(dev, &arrivals[i], arrived);
    }
}

/** Waits until every member of the group has called it as often as this rank.
 *  Called by all lanes of one workgroup of each member, one workgroup at a time
 *  for one group. `group` is what iris_group_device() on the host returned.
 *
 *  Order: acquire and release at system scope for the workgroup. What it wrote
 *  before, or acquired from other workgroups of its rank, is visible after to
 *  the workgroup of every other member. Other workgroups are not waited for.
 *
 *  A barrier that a deadline or the death of a peer ends is no barrier: the
 *  group is good for no other inside kernels or on streams.
 *
 *  Flat, one round: each rank stores its epoch at every member, one lane a
 *  peer, and waits for theirs. Epochs only grow, so nothing is reset, and a
 *  member that is one barrier ahead does no harm. */
IRIS_DEVICE_LARGE void iris_dev_barrier(iris_wg_t wg, iris_dev_t dev,
                                        struct iris_dev_group *group)
{
    struct iris_dev_group *ours =
        (struct iris_dev_group *)iris_i_global((uintptr_t)group);

    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_i_seam(
            dev, ours,
            iris_i_ordered(iris_i_reads(IRIS_OP_BARRIER, -1, 0),
                           iris_i_order(IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM)));
    }
    if (iris_i_lane() < IRIS_DEV_GROUP_LANES) {
        iris_i_meet(dev, ours);
    }
    iris_wg_barrier(wg);
}

#endif /* IRIS_DEVICE_BARRIER_H */
