/* SPDX-License-Identifier: MIT
 *
 * Plans in kernels: the start of copies that the host has armed, and the wait
 * for those of other ranks.
 */
#ifndef IRIS_DEVICE_PLAN_H
#define IRIS_DEVICE_PLAN_H

#include <iris/device/layout.h>
#include <iris/device/wg/wg.h>

/* ---- Plans -----------------------------------------------------------------
 *
 * `plan` is the result of iris_plan_device() on the host, `epoch` the number
 * that iris_plan_begin() returned. A batch that the plan does not have counts as
 * given up.
 *
 * @use CPU nodes
 * @param plan  the plan's struct in device memory, from iris_plan_device()
 * @param batch  number of the batch
 * @param epoch  number of the epoch, from iris_plan_begin() */

IRIS_DEVICE iris_bool_t iris_d_plan_has(const struct iris_dev_plan *plan,
                                        uint32_t batch)
{
    const struct iris_dev_plan *own =
        (const struct iris_dev_plan *)iris_d_global((uintptr_t)plan);

    return batch < own->num_batches;
}

/* The words of a batch that the plan has. */
IRIS_DEVICE uint64_t *iris_d_plan_batch(const struct iris_dev_plan *plan,
                                        uint32_t batch)
{
    const struct iris_dev_plan *own =
        (const struct iris_dev_plan *)iris_d_global((uintptr_t)plan);
    uint64_t at = own->first + batch * own->batch_words;

    return (uint64_t *)iris_d_global((uintptr_t)plan + at * sizeof at);
}

/* How many ranks copy to this one in a batch with these words. Constant: clang 22
 * for gfx1250 ends with an error if it is a load of each turn of a loop. */
IRIS_DEVICE uint64_t iris_d_plan_senders(const uint64_t *words)
{
    return (uint64_t)iris_d_load_constant(
        (const int64_t *)&words[IRIS_PLAN_SENDERS]);
}

/* Counts one of `parts` workgroups. Returns 1 to the last one, which sees
 * everything that the others have released. */
IRIS_DEVICE iris_bool_t iris_d_plan_is_last(iris_dev_t dev, uint64_t *count,
                                            uint32_t parts)
{
    if (parts <= 1) {
        return 1;
    }
    if (iris_atomic_add_u64(dev, count, 1, dev.rank, IRIS_ACQ_REL,
                            IRIS_SCOPE_SYSTEM) != parts - 1) {
        return 0;
    }
    iris_atomic_store_u64(dev, count, 0, dev.rank, IRIS_RELAXED,
                          IRIS_SCOPE_SYSTEM);
    return 1;
}

/** Starts this rank's copies of a batch in an epoch, once `parts` workgroups
 *  have called it. The copies see all earlier writes of these workgroups: every
 *  wavefront waits for its own stores, then all meet at a barrier, and one lane
 *  releases at system scope, first the stamp and then the gate. Returns without
 *  waiting for the copies. All lanes of each workgroup call it, outside lane
 *  loops. A call with another epoch than the one that has begun starts nothing.
 *  @use workgroup; never blocks
 *  @param parts  number of workgroups of this rank that publish the batch */
IRIS_DEVICE_LARGE void iris_plan_publish(iris_wg_t wg, iris_dev_t dev,
                                         struct iris_dev_plan *plan,
                                         uint32_t batch, uint32_t epoch,
                                         uint32_t parts)
{
    uint64_t *words = iris_d_plan_batch(plan, batch);

    iris_wg_barrier(wg);
    if (iris_wg_leader(wg) && iris_d_plan_has(plan, batch) &&
        iris_d_plan_is_last(dev, &words[IRIS_PLAN_PARTS], parts)) {
        iris_signal_set(dev, &words[IRIS_PLAN_STAMP], epoch, (int)dev.rank);
        iris_signal_set(dev, &words[IRIS_PLAN_GATE], epoch, (int)dev.rank);
    }
}

/** Whether all copies of a batch to this rank have arrived. If so, this lane has
 *  acquired their data. Any lane.
 *  @use lane; never blocks */
IRIS_DEVICE_LARGE iris_bool_t iris_plan_arrived(iris_dev_t dev,
                                                struct iris_dev_plan *plan,
                                                uint32_t batch, uint32_t epoch)
{
    const uint64_t *words = iris_d_plan_batch(plan, batch);
    iris_bool_t all = iris_d_plan_has(plan, batch);
    uint64_t senders = all ? iris_d_plan_senders(words) : 0;

    for (uint64_t i = 0; all && i < senders; i++) {
        uint64_t rank = words[IRIS_PLAN_ARRIVALS + (uint32_t)dev.num_ranks + i];

        all = iris_i_plan_reached(
            iris_signal_fetch(dev, &words[IRIS_PLAN_ARRIVALS + rank]), epoch);
    }
    return all;
}

/** Waits until all copies of a batch to this rank have arrived, and returns 1;
 *  the workgroup then sees their data. Returns 0 if a rank gave the plan up:
 *  there is no data, and the host's iris_plan_end() has the error. All lanes of a
 *  workgroup call it, outside lane loops.
 *  @use workgroup; blocks */
IRIS_DEVICE_LARGE iris_bool_t iris_plan_wait(iris_wg_t wg, iris_dev_t dev,
                                             struct iris_dev_plan *plan,
                                             uint32_t batch, uint32_t epoch)
{
    const uint64_t *words = iris_d_plan_batch(plan, batch);

    if (iris_wg_leader(wg) && iris_d_plan_has(plan, batch)) {
        uint64_t senders = iris_d_plan_senders(words);

        for (uint64_t i = 0; i < senders; i++) {
            uint64_t rank =
                words[IRIS_PLAN_ARRIVALS + (uint32_t)dev.num_ranks + i];

            (void)iris_wait_until_u64(dev, &words[IRIS_PLAN_ARRIVALS + rank],
                                      IRIS_CMP_NE, (uint32_t)(epoch - 1));
        }
    }
    iris_wg_barrier(wg);
    return iris_plan_arrived(dev, plan, batch, epoch);
}

/** Whether this rank's copies of a batch are done, so that a kernel may
 *  overwrite their sources. Any lane.
 *  @use lane; never blocks */
IRIS_DEVICE iris_bool_t iris_plan_reusable(iris_dev_t dev,
                                           struct iris_dev_plan *plan,
                                           uint32_t batch, uint32_t epoch)
{
    const uint64_t *words = iris_d_plan_batch(plan, batch);

    return iris_d_plan_has(plan, batch) &&
           iris_i_plan_reached(iris_signal_fetch(dev, &words[IRIS_PLAN_DONE]),
                               epoch);
}

/** Waits until this rank's copies of a batch are done, and returns 1; 0 if this
 *  rank gave the plan up. Only for a batch in which this rank copies. All lanes
 *  of a workgroup call it, outside lane loops.
 *  @use workgroup; blocks */
IRIS_DEVICE_LARGE iris_bool_t iris_plan_wait_reusable(
    iris_wg_t wg, iris_dev_t dev, struct iris_dev_plan *plan, uint32_t batch,
    uint32_t epoch)
{
    const uint64_t *words = iris_d_plan_batch(plan, batch);

    if (iris_wg_leader(wg) && iris_d_plan_has(plan, batch)) {
        (void)iris_wait_until_u64(dev, &words[IRIS_PLAN_DONE], IRIS_CMP_NE,
                                  (uint32_t)(epoch - 1));
    }
    iris_wg_barrier(wg);
    return iris_plan_reusable(dev, plan, batch, epoch);
}

#endif /* IRIS_DEVICE_PLAN_H */
