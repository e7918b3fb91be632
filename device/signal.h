/* SPDX-License-Identifier: MIT
 *
 * Signals: uint64_t words on the heap that say "the data is there", and the
 * waits for them. A signal is released by its sender, acquired by its waiter.
 */
#ifndef IRIS_DEVICE_SIGNAL_H
#define IRIS_DEVICE_SIGNAL_H

#include <iris/device/amo.h>
#include <iris/device/rma.h>

/* Two protocols are right.
 *
 * One sender: iris_signal_set() to a number that grows, the receiver waits with
 * IRIS_CMP_GE (or EQ, if the sender waits for an answer before the next one).
 *
 * Many senders, one signal: each calls iris_signal_add(..., 1, ...) after its
 * data; the receiver waits with IRIS_CMP_GE for the total of all of them.
 * Counts only grow: nobody resets the signal while any may still arrive, the
 * next round waits for twice the total. A count below the total tells how many
 * have come and not which: adds may arrive in any order, so only the full total
 * says that a given sender's data is there. For the same reason no sender may
 * begin the next round before the receiver has its total: its early add would
 * pass for somebody's late one. Where senders can run ahead, rounds take turns
 * with two signals, or each sender has one of its own. */

/** Sets to_rank's signal to `value`: release, system scope. The lane's earlier
 *  writes, and after a workgroup barrier the workgroup's, are visible to
 *  whoever then acquires the value. Any lane. */
IRIS_DEVICE void iris_signal_set(iris_dev_t dev, uint64_t *signal,
                                 uint64_t value, int to_rank)
{
    iris_atomic_store_u64(dev, signal, value, to_rank, IRIS_RELEASE,
                          IRIS_SCOPE_SYSTEM);
}

/** Adds `value` to to_rank's signal, atomically; order as iris_signal_set().
 *  See above for how to wait for a sum. Any lane. */
IRIS_DEVICE void iris_signal_add(iris_dev_t dev, uint64_t *signal,
                                 uint64_t value, int to_rank)
{
    (void)iris_atomic_add_u64(dev, signal, value, to_rank, IRIS_RELEASE,
                              IRIS_SCOPE_SYSTEM);
}

/** This rank's own signal as it is now: acquire, system scope. Does not wait.
 *  Any lane. */
IRIS_DEVICE uint64_t iris_signal_fetch(iris_dev_t dev, const uint64_t *signal)
{
    return iris_atomic_load_u64(dev, signal, dev.rank, IRIS_ACQUIRE,
                                IRIS_SCOPE_SYSTEM);
}

/* clang-format off */
/** iris_put_signal: iris_put of one element, then iris_signal_set on the same
 *  rank: whoever acquires `value` there sees the element. Any lane. For f32:
 *      void iris_put_signal_f32(iris_dev_t dev, const float *from_ptr,
 *                               float *to_ptr, uint64_t *signal,
 *                               uint64_t value, int to_rank); */
#define IRIS_I_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_put_signal_##name(                                   \
        iris_dev_t dev, const c_type *from_ptr, c_type *to_ptr,                \
        uint64_t *signal, uint64_t value, int to_rank)                         \
    {                                                                          \
        iris_put_##name(dev, from_ptr, to_ptr, to_rank);                       \
        iris_signal_set(dev, signal, value, to_rank);                          \
    }
IRIS_TYPES(IRIS_I_ROW, )
#undef IRIS_I_ROW
/* clang-format on */

/* What a wait is for. */
typedef struct iris_i_goal {
    enum iris_i_kind kind;
    iris_cmp_t cmp;
    uint64_t value;
} iris_i_goal_t;

IRIS_DEVICE iris_i_goal_t iris_i_goal(enum iris_i_kind kind, iris_cmp_t cmp,
                                      uint64_t value)
{
    iris_i_goal_t goal = {kind, cmp, value};

    return goal;
}

/* Whether `seen` CMP value. A comparison that is none never holds. */
IRIS_DEVICE iris_bool_t iris_i_holds(iris_i_goal_t goal, uint64_t seen)
{
    switch (goal.cmp) {
    case IRIS_CMP_EQ:
        return seen == goal.value;
    case IRIS_CMP_NE:
        return seen != goal.value;
    case IRIS_CMP_LT:
        return iris_i_less(goal.kind, seen, goal.value);
    case IRIS_CMP_LE:
        return !iris_i_less(goal.kind, goal.value, seen);
    case IRIS_CMP_GT:
        return iris_i_less(goal.kind, goal.value, seen);
    case IRIS_CMP_GE:
        return !iris_i_less(goal.kind, seen, goal.value);
    default:
        return 0;
    }
}

/* One look at a local word. Looks relaxed, since an acquire that finds nothing
 * would empty caches for nothing, and acquires what it has found: true means
 * that *seen_p holds and is acquired. */
IRIS_DEVICE iris_bool_t iris_i_reached(const void *ptr, iris_i_goal_t goal,
                                       uint64_t *seen_p)
{
    const void *place = iris_i_global((uintptr_t)ptr);
    size_t bytes = iris_i_kind_bytes(goal.kind);

    *seen_p = iris_i_load(place, bytes,
                          iris_i_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM));
    if (!iris_i_holds(goal, *seen_p)) {
        return 0;
    }
    *seen_p = iris_i_load(place, bytes,
                          iris_i_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM));
    return iris_i_holds(goal, *seen_p);
}

/* The event of a wait or test on local words, before its first look. Tests may
 * be called over and over, so they count as a possible spin loop. */
IRIS_DEVICE void iris_i_wait_seam(iris_dev_t dev, const void *ptr, size_t bytes)
{
    iris_i_maybe_spinning(dev);
    iris_i_strict_seam(
        dev, ptr,
        iris_i_ordered(iris_i_reads(IRIS_OP_WAIT, dev.rank, bytes),
                       iris_i_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM)));
}

/* Around the looks of a wait that did not succeed at once. On the CPU this
 * tells the host what is waited for, and polling may end the kernel. */
IRIS_DEVICE void iris_i_wait_begin(iris_dev_t dev, const void *ptr,
                                   iris_i_goal_t goal)
{
#if IRIS_ON_CPU
    if (dev.cpu != NULL) {
        dev.cpu->polls = 0;
        dev.cpu->wait_address = ptr;
        dev.cpu->wait_cmp = goal.cmp;
        dev.cpu->wait_value = (int64_t)goal.value;
    }
#else
    (void)dev, (void)ptr, (void)goal;
#endif
}

IRIS_DEVICE void iris_i_wait_poll(iris_dev_t dev, uint64_t seen)
{
#if IRIS_ON_CPU
    if (dev.cpu != NULL) {
        dev.cpu->wait_seen = (int64_t)seen;
    }
    iris_cpu_poll(dev.cpu);
#else
    (void)dev, (void)seen;
    iris_i_pause();
#endif
}

IRIS_DEVICE void iris_i_wait_end(iris_dev_t dev)
{
#if IRIS_ON_CPU
    if (dev.cpu != NULL) {
        dev.cpu->wait_address = NULL;
    }
#else
    (void)dev;
#endif
}

IRIS_DEVICE uint64_t iris_i_wait(iris_dev_t dev, const void *ptr,
                                 iris_i_goal_t goal)
{
    uint64_t seen;

    iris_i_wait_seam(dev, ptr, iris_i_kind_bytes(goal.kind));
    if (iris_i_reached(ptr, goal, &seen)) {
        return seen;
    }
    iris_i_wait_begin(dev, ptr, goal);
    do {
        iris_i_wait_poll(dev, seen);
    } while (!iris_i_reached(ptr, goal, &seen));
    iris_i_wait_end(dev);
    return seen;
}

IRIS_DEVICE iris_bool_t iris_i_test(iris_dev_t dev, const void *ptr,
                                    iris_i_goal_t goal)
{
    uint64_t seen;

    iris_i_wait_seam(dev, ptr, iris_i_kind_bytes(goal.kind));
    return iris_i_reached(ptr, goal, &seen);
}

/* clang-format off */
/** iris_wait_until: waits until this rank's own word at `ptr`, untranslated, is
 *  CMP `value`, and returns what it was then. iris_test: one look; whether it
 *  is. Acquire at system scope when it holds: the lane then sees everything
 *  released with the word; the workgroup does after iris_wg_barrier(). For i32,
 *  u32, i64 and u64, written by atomics or signals. Any lane. For u64:
 *      uint64_t iris_wait_until_u64(iris_dev_t dev, const uint64_t *ptr,
 *                                   iris_cmp_t cmp, uint64_t value);
 *      iris_bool_t iris_test_u64(iris_dev_t dev, const uint64_t *ptr,
 *                                iris_cmp_t cmp, uint64_t value);
 *  On the CPU a wait does not return when the host ends the kernel, because a
 *  peer died or its deadline passed. */
#define IRIS_I_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_wait_until_##name(                                 \
        iris_dev_t dev, const c_type *ptr, iris_cmp_t cmp, c_type value)       \
    {                                                                          \
        return iris_i_value_##name(                                            \
            iris_i_wait(dev, ptr,                                              \
                        iris_i_goal(IRIS_I_KIND_##name, cmp,                   \
                                    iris_i_bits_##name(value))));              \
    }                                                                          \
    IRIS_DEVICE iris_bool_t iris_test_##name(                                  \
        iris_dev_t dev, const c_type *ptr, iris_cmp_t cmp, c_type value)       \
    {                                                                          \
        return iris_i_test(dev, ptr,                                           \
                           iris_i_goal(IRIS_I_KIND_##name, cmp,                \
                                       iris_i_bits_##name(value)));            \
    }
IRIS_WORD_TYPES(IRIS_I_ROW, )
#undef IRIS_I_ROW
/* clang-format on */

#endif /* IRIS_DEVICE_SIGNAL_H */
