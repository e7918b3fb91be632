/* SPDX-License-Identifier: MIT
 *
 * The barrier between ranks, inside a kernel.
 */
#ifndef IRIS_DEVICE_BARRIER_H
#define IRIS_DEVICE_BARRIER_H

#include <iris/device/wg/wg.h>

/* A release at system scope ahead of the store that announces the epoch. That
 * store has the order IRIS_D_AHEAD.
 * - On a GPU, this is a separate fence. It takes about half of the latency
 *   to a peer, and loads complete in that time.
 * - On the CPU, the store itself releases. That costs nothing, and
 *   ThreadSanitizer understands it. */
#if IRIS_ON_CPU
#define IRIS_D_AHEAD IRIS_RELEASE
IRIS_DEVICE void iris_d_release_ahead(void)
{
}
#else
#define IRIS_D_AHEAD IRIS_RELAXED
IRIS_DEVICE void iris_d_release_ahead(void)
{
    iris_d_fence(iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
}
#endif

/* A word of the group that never changes. */
IRIS_DEVICE uint64_t iris_d_group_word(const void *word)
{
    return (uint64_t)iris_d_load_constant((const int64_t *)word);
}

/* Announces `epoch` to member i. The events name our own copy of the word that
 * is written there. */
IRIS_DEVICE void iris_d_announce(IRIS_UNUSED iris_dev_t dev,
                                 struct iris_dev_group *ours, uint32_t i,
                                 uint64_t where, uint64_t epoch)
{
    IRIS_D_HOOK(
        dev.watched,
        IRIS_D_CALL(before, dev,
                    (uint64_t *)(uintptr_t)ours->arrivals + ours->index, epoch,
                    (int)iris_i_group_ranks(ours)[i],
                    iris_d_packed(iris_d_ordered(
                        iris_d_writes(IRIS_OP_STORE, 0, sizeof epoch),
                        iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM))) |
                        IRIS_D_ATOMIC));
#if IRIS_ON_CPU || IRIS_FAR
    if (IRIS_UNLIKELY(where == 0)) {
        (void)iris_d_amo_far(
            dev, (uint64_t *)(uintptr_t)ours->arrivals + ours->index, epoch, 0,
            iris_d_amo_of(IRIS_OP_STORE, IRIS_D_KIND_u64,
                          (int)iris_i_group_ranks(ours)[i], IRIS_RELEASE,
                          IRIS_SCOPE_SYSTEM));
        iris_i_group_words(ours)[2 * (size_t)i + 1] = epoch;
        IRIS_D_HOOK(dev.watched, IRIS_D_CALL(after, dev, 1, 0));
        return;
    }
    IRIS_D_FAR_RELEASE(dev, iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
#endif
    iris_d_store(iris_d_global((uintptr_t)where), sizeof epoch, epoch,
                 iris_d_order(IRIS_D_AHEAD, IRIS_SCOPE_SYSTEM));
    iris_i_group_words(ours)[2 * (size_t)i + 1] = epoch;
    IRIS_D_HOOK(dev.watched, IRIS_D_CALL(after, dev, 1, 0));
}

/* One lane's part: announces to its members and waits for theirs. The loads of
 * `count` and `where`, the words of the lane's first member, may still be in
 * flight. */
IRIS_DEVICE void iris_d_await_members(iris_dev_t dev,
                                      struct iris_dev_group *ours,
                                      uint32_t count, uint64_t where)
{
    uint64_t *words = iris_i_group_words(ours), *arrivals, zero;
    uint32_t lane = iris_d_lane(), step = iris_d_num_lanes(), i;
    /* All its members get the same epoch. */
    uint64_t epoch = words[2 * lane + 1];
    iris_d_condition_t arrived;

    arrivals = (uint64_t *)iris_d_global(
        (uintptr_t)iris_d_group_word(&ours->arrivals));
    step = step < IRIS_DEV_GROUP_LANES ? step : IRIS_DEV_GROUP_LANES;
    iris_d_release_ahead(); /* releases all writes of the workgroup */
    zero = iris_d_zero_behind_fence();
    epoch += zero + 1;
    if (lane >= count + (uint32_t)zero) {
        return;
    }
    iris_d_announce(dev, ours, lane, where, epoch);
    for (i = lane + step; IRIS_UNLIKELY(i < count); i += step) {
        iris_d_announce(dev, ours, i, iris_d_group_word(&words[2 * i]), epoch);
    }
    arrived = iris_d_condition(IRIS_D_KIND_u64, IRIS_CMP_GE, epoch);
    arrived.op = IRIS_OP_BARRIER; /* for reports */
    i = lane;
    do {
        (void)iris_d_wait(dev, &arrivals[i], arrived);
        i += step;
    } while (IRIS_UNLIKELY(i < count));
}

/** Waits until every member of the group has called it as often as this rank.
 *  All lanes of one workgroup of each member call it; only one workgroup of a
 *  rank at a time may do so for a group. `group` is the result of
 *  iris_group_device() on the host.
 *
 *  Order: acquire and release at system scope for the workgroup. Afterwards the
 *  workgroup of every other member sees this workgroup's earlier writes, and the
 *  writes that it acquired from other workgroups of its rank. The barrier does
 *  not wait for other workgroups.
 *
 *  If a deadline or the death of a peer ends the barrier, it orders nothing. Do
 *  not use the group for another barrier in kernels or on streams.
 *
 *  The barrier is flat and takes one round: each rank stores its epoch at every
 *  member, with one lane for each peer, and waits for theirs. Epochs only grow,
 *  so nothing is reset, and a member may be one barrier ahead.
 *  @use workgroup; blocks; CPU nodes
 *  @param group  result of iris_group_device() */
IRIS_DEVICE_LARGE void iris_dev_barrier(iris_wg_t wg, iris_dev_t dev,
                                        struct iris_dev_group *group)
{
    struct iris_dev_group *ours =
        (struct iris_dev_group *)iris_d_global((uintptr_t)group);
    uint64_t *words = iris_i_group_words(ours);
    uint32_t count;
    uint64_t where;

    iris_wg_barrier(wg);
    /* Every lane has such a pair of words, so nvcc may load them ahead of the
     * test below. If a loop contains the barrier, these loads move out of the
     * loop. */
    count = (uint32_t)iris_d_group_word(&ours->count); /* low half */
    where =
        iris_d_group_word(&words[2 * (iris_d_lane() % IRIS_DEV_GROUP_LANES)]);
    IRIS_D_HOOK(dev.watched,
                IRIS_D_CALL(before_barrier, dev, ours,
                            iris_d_barrier_packed(IRIS_SCOPE_SYSTEM)));
    if (iris_d_lane() < IRIS_DEV_GROUP_LANES) {
        iris_d_await_members(dev, ours, count, where);
    }
    IRIS_D_HOOK(dev.watched,
                IRIS_D_CALL(after_barrier, dev, ours,
                            iris_d_barrier_packed(IRIS_SCOPE_SYSTEM)));
    iris_wg_barrier(wg);
}

#endif /* IRIS_DEVICE_BARRIER_H */
