/* SPDX-License-Identifier: MIT
 *
 * Signals: uint64_t words on the heap that say "the data is there", and the
 * waits for them. A signal is released by its sender, acquired by its waiter.
 */
#ifndef IRIS_DEVICE_SIGNAL_H
#define IRIS_DEVICE_SIGNAL_H

#include <iris/device/core/rma.h>
#include <iris/device/core/wait.h>

/* ---- Signals ---------------------------------------------------------------
 *
 * Use one of these two protocols.
 *
 * One sender: it calls iris_signal_set() with a number that grows. The receiver
 * waits with IRIS_CMP_GE (or EQ, if the sender waits for an answer before the
 * next signal).
 *
 * Many senders, one signal: each calls iris_signal_add(..., 1, ...) after its
 * data. The receiver waits with IRIS_CMP_GE for the total of all senders.
 *   - Counts only grow. The next round waits for twice the total; no rank resets
 *     the signal while an add may still arrive.
 *   - Adds may arrive in any order. So only the full total shows that a given
 *     sender's data is there.
 *   - No sender may begin the next round before the receiver has its total,
 *     because the receiver would count its early add as another sender's late
 *     one. If senders can be one round ahead, use two signals in turns; if they
 *     can be further ahead, use one signal for each sender.
 *
 * @use lane; never blocks; CPU nodes
 * @param value  number that the signal is set to, increased by or compared with
 * @param from_ptr  source
 * @param to_ptr  target
 * @param ptr  aligned word of this rank's own heap */

/** Sets to_rank's signal to `value`: release, system scope. A lane that then
 *  acquires the value sees this lane's earlier writes and, after a workgroup
 *  barrier, the workgroup's. Any lane. */
IRIS_DEVICE void iris_signal_set(iris_dev_t dev, uint64_t *signal,
                                 uint64_t value, int to_rank)
{
    iris_atomic_store_u64(dev, signal, value, to_rank, IRIS_RELEASE,
                          IRIS_SCOPE_SYSTEM);
}

/** Adds `value` to to_rank's signal, atomically, with the order of
 *  iris_signal_set(). See "Signals" for how to wait for a sum. Any lane. */
IRIS_DEVICE void iris_signal_add(iris_dev_t dev, uint64_t *signal,
                                 uint64_t value, int to_rank)
{
    (void)iris_atomic_add_u64(dev, signal, value, to_rank, IRIS_RELEASE,
                              IRIS_SCOPE_SYSTEM);
}

/** This rank's own signal as it is now: acquire, system scope. Does not wait.
 *  Any lane.
 *  @use all nodes */
IRIS_DEVICE uint64_t iris_signal_fetch(iris_dev_t dev, const uint64_t *signal)
{
    return iris_atomic_load_u64(dev, signal, dev.rank, IRIS_ACQUIRE,
                                IRIS_SCOPE_SYSTEM);
}

/* clang-format off */
/** iris_put_signal: iris_put of one element, then iris_signal_set on the same
 *  rank. A lane that acquires `value` there sees the element. Any lane. For
 *  f32:
 *      void iris_put_signal_f32(iris_dev_t dev, const float *from_ptr,
 *                               float *to_ptr, uint64_t *signal,
 *                               uint64_t value, int to_rank); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_put_signal_##name(                                   \
        iris_dev_t dev, const c_type *from_ptr, c_type *to_ptr,                \
        uint64_t *signal, uint64_t value, int to_rank)                         \
    {                                                                          \
        iris_put_##name(dev, from_ptr, to_ptr, to_rank);                       \
        iris_signal_set(dev, signal, value, to_rank);                          \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/** iris_wait_until: waits until this rank's own word at `ptr`, which is not
 *  translated, compares with `value` as `cmp` says, and returns the word. It
 *  acquires at system scope: the lane then sees everything released with the
 *  word, and the workgroup does after iris_wg_barrier(). For i32, u32, i64 and
 *  u64 words, which atomics or signals write. Any lane. For u64:
 *      uint64_t iris_wait_until_u64(iris_dev_t dev, const uint64_t *ptr,
 *                                   iris_cmp_t cmp, uint64_t value);
 *  If a peer dies or a deadline passes, the kernel ends and the wait does not
 *  return. On a GPU only its lane (on AMD its wavefront) ends there.
 *  @use blocks; all nodes */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_wait_until_##name(                                 \
        iris_dev_t dev, const c_type *ptr, iris_cmp_t cmp, c_type value)       \
    {                                                                          \
        return iris_d_value_##name(                                            \
            iris_d_wait(dev, ptr,                                              \
                        iris_d_condition(IRIS_D_KIND_##name, cmp,                   \
                                    iris_d_bits_##name(value))));              \
    }
IRIS_WORD_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/** iris_test: returns at once, 1 if this rank's own word at `ptr` compares with
 *  `value` as `cmp` says, otherwise 0. With 1 it acquires as iris_wait_until()
 *  does. For the same words. Any lane. For u64:
 *      iris_bool_t iris_test_u64(iris_dev_t dev, const uint64_t *ptr,
 *                                iris_cmp_t cmp, uint64_t value);
 *  @use all nodes */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE iris_bool_t iris_test_##name(                                  \
        iris_dev_t dev, const c_type *ptr, iris_cmp_t cmp, c_type value)       \
    {                                                                          \
        return iris_d_test(dev, ptr,                                           \
                           iris_d_condition(IRIS_D_KIND_##name, cmp,                \
                                       iris_d_bits_##name(value)));            \
    }
IRIS_WORD_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW
/* clang-format on */

#endif /* IRIS_DEVICE_SIGNAL_H */
