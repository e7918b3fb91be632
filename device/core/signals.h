/* SPDX-License-Identifier: MIT
 *
 * Waits for several signals at once: all, any, some; the semantics are those of
 * OpenSHMEM 1.5, section 9.10 (shmem_wait_until_all and its relatives).
 */
#ifndef IRIS_DEVICE_SIGNALS_H
#define IRIS_DEVICE_SIGNALS_H

#include <iris/device/core/signal.h>

/* ---- Waits for several signals ---------------------------------------------
 *
 * These rules hold for all functions below. Any single lane may call them.
 * `signals` are `count` words of this rank's own heap, which are not
 * translated. `status` is NULL or `count` ints; a signal with a status other
 * than zero is left out. A signal that compares as asked is acquired at system
 * scope, as by iris_wait_until(); the other signals are not.
 *
 * @use lane; all nodes
 * @param signals  `count` signals of this rank's own heap
 * @param count  number of signals
 * @param status  `count` ints, not 0 to leave a signal out; NULL: all take part
 * @param value  number to compare with
 * @param indices_p  receives up to `count` indices */

/* SIZE_MAX, which C++ defines only in its own headers. */
#define IRIS_D_NO_INDEX ((size_t)-1)

IRIS_DEVICE iris_bool_t iris_d_left_out(const int *status, size_t i)
{
    return status != NULL && status[i] != 0;
}

/* First signal that takes part; `count` if no signal does. */
IRIS_DEVICE size_t iris_d_first_signal(size_t count, const int *status)
{
    size_t i = 0;

    while (i < count && iris_d_left_out(status, i)) {
        i++;
    }
    return i;
}

/* The signals of one wait or test. */
typedef struct iris_d_signals {
    const uint64_t *signals;
    size_t count;
    const int *status;
    size_t max; /* the search stops after this number */
} iris_d_signals_t;

IRIS_DEVICE iris_d_signals_t iris_d_signals(const uint64_t *signals,
                                            size_t count, const int *status,
                                            size_t max)
{
    iris_d_signals_t set = {signals, count, status, max};

    return set;
}

/* Polls once every signal that takes part. Returns how many hold, and writes
 * the indices of the first `max` of them to indices_p. Stops when it has found
 * `max`. */
IRIS_DEVICE_LARGE size_t iris_d_scan(IRIS_UNUSED iris_dev_t dev,
                                     iris_d_signals_t set,
                                     iris_d_condition_t condition,
                                     size_t *indices_p)
{
    size_t found = 0;
    uint64_t seen;

    for (size_t i = 0; i < set.count && found < set.max; i++) {
        if (!iris_d_left_out(set.status, i) &&
            iris_d_reached(&set.signals[i], condition, &seen)) {
            indices_p[found++] = i;
            IRIS_D_HOOK(dev.watched,
                        IRIS_D_CALL(after_wait, dev, &set.signals[i],
                                    sizeof(uint64_t), seen, 1));
        }
    }
    return found;
}

/* The test of a set that is not empty. */
IRIS_DEVICE_LARGE size_t iris_d_test_scan(iris_dev_t dev, iris_d_signals_t set,
                                          iris_d_condition_t condition,
                                          size_t *indices_p)
{
    size_t bytes = set.count * sizeof(uint64_t), found;

    iris_d_wait_hook(&dev, set.signals, bytes, condition);
    found = iris_d_scan(dev, set, condition, indices_p);
    IRIS_D_HOOK(found == 0 && dev.watched,
                IRIS_D_CALL(after_wait, dev, set.signals, bytes, 0, 0));
    return found;
}

/* Polls until at least one holds. The set is not empty. */
IRIS_DEVICE_LARGE size_t iris_d_wait_scan(iris_dev_t dev, iris_d_signals_t set,
                                          iris_d_condition_t condition,
                                          size_t *indices_p)
{
    size_t found;

    iris_d_wait_hook(&dev, set.signals, set.count * sizeof(uint64_t),
                     condition);
    found = iris_d_scan(dev, set, condition, indices_p);
    if (found == 0) {
        size_t first = iris_d_first_signal(set.count, set.status);
        iris_d_waiting_t wait =
            iris_d_wait_begin(dev, &set.signals[first], condition);

        do {
            iris_d_wait_poll(dev, &wait);
            found = iris_d_scan(dev, set, condition, indices_p);
        } while (found == 0);
        iris_d_wait_end(dev);
    }
    return found;
}

/** Waits until every signal is CMP `value`; at once if none takes part.
 *  @use blocks */
IRIS_DEVICE_LARGE void iris_wait_until_all(iris_dev_t dev,
                                           const uint64_t *signals,
                                           size_t count, const int *status,
                                           iris_cmp_t cmp, uint64_t value)
{
    for (size_t i = 0; i < count; i++) {
        if (!iris_d_left_out(status, i)) {
            (void)iris_wait_until_u64(dev, &signals[i], cmp, value);
        }
    }
}

/** Waits until a signal is CMP `value`; returns its index, SIZE_MAX at once if
 *  none takes part.
 *  @use blocks */
IRIS_DEVICE_LARGE size_t iris_wait_until_any(iris_dev_t dev,
                                             const uint64_t *signals,
                                             size_t count, const int *status,
                                             iris_cmp_t cmp, uint64_t value)
{
    size_t index = IRIS_D_NO_INDEX;

    if (iris_d_first_signal(count, status) < count) {
        (void)iris_d_wait_scan(dev, iris_d_signals(signals, count, status, 1),
                               iris_d_condition(IRIS_D_KIND_u64, cmp, value),
                               &index);
    }
    return index;
}

/** Waits until at least one signal is CMP `value`; returns how many are, 0 at
 *  once if none takes part. Their indices, ascending, go to indices_p, which
 *  holds `count`.
 *  @use blocks */
IRIS_DEVICE_LARGE size_t iris_wait_until_some(iris_dev_t dev,
                                              const uint64_t *signals,
                                              size_t count, const int *status,
                                              iris_cmp_t cmp, uint64_t value,
                                              size_t *indices_p)
{
    if (iris_d_first_signal(count, status) == count) {
        return 0;
    }
    return iris_d_wait_scan(dev, iris_d_signals(signals, count, status, count),
                            iris_d_condition(IRIS_D_KIND_u64, cmp, value),
                            indices_p);
}

/** Whether every signal is CMP `value` now; true if none takes part.
 *  @use never blocks */
IRIS_DEVICE_LARGE iris_bool_t iris_test_all(iris_dev_t dev,
                                            const uint64_t *signals,
                                            size_t count, const int *status,
                                            iris_cmp_t cmp, uint64_t value)
{
    iris_bool_t all = 1;

    for (size_t i = 0; i < count && all; i++) {
        all = iris_d_left_out(status, i) ||
              iris_test_u64(dev, &signals[i], cmp, value);
    }
    return all;
}

/** Index of a signal that compares with `value` as `cmp` says now, or SIZE_MAX
 *  if no signal does.
 *  @use never blocks */
IRIS_DEVICE_LARGE size_t iris_test_any(iris_dev_t dev, const uint64_t *signals,
                                       size_t count, const int *status,
                                       iris_cmp_t cmp, uint64_t value)
{
    size_t index = IRIS_D_NO_INDEX;

    if (iris_d_first_signal(count, status) < count) {
        (void)iris_d_test_scan(dev, iris_d_signals(signals, count, status, 1),
                               iris_d_condition(IRIS_D_KIND_u64, cmp, value),
                               &index);
    }
    return index;
}

/** How many signals are CMP `value` now; their indices, ascending, go to
 *  indices_p, which holds `count`.
 *  @use never blocks */
IRIS_DEVICE_LARGE size_t iris_test_some(iris_dev_t dev, const uint64_t *signals,
                                        size_t count, const int *status,
                                        iris_cmp_t cmp, uint64_t value,
                                        size_t *indices_p)
{
    if (iris_d_first_signal(count, status) == count) {
        return 0;
    }
    return iris_d_test_scan(dev, iris_d_signals(signals, count, status, count),
                            iris_d_condition(IRIS_D_KIND_u64, cmp, value),
                            indices_p);
}

#endif /* IRIS_DEVICE_SIGNALS_H */
