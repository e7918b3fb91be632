/* SPDX-License-Identifier: MIT
 *
 * Remote atomics by one lane, for every element type: updates that return the
 * old value, compare-and-swap, atomic load and store. Short names: generic.h.
 */
#ifndef IRIS_DEVICE_AMO_H
#define IRIS_DEVICE_AMO_H

#include <iris/device/watch/hook.h>
#include <iris/device/core/value.h>

/* ---- Atomics ---------------------------------------------------------------
 *
 * These rules hold for all operations below. Any single lane may call them.
 * `ptr` is on the caller's heap and aligned to its size. The operation accesses
 * to_rank's (from_rank's) copy of the element.
 *
 * The caller passes order and scope.
 *   - IRIS_RELEASE and IRIS_ACQ_REL: a lane that acquires the new value sees this
 *     lane's earlier writes and, after a workgroup barrier, the workgroup's.
 *   - IRIS_ACQUIRE and IRIS_ACQ_REL: this lane sees the writes that the writer
 *     of the old value released.
 *   - Other ranks see an atomic in order only with IRIS_SCOPE_SYSTEM.
 * When the call returns, the update has happened and its old value is known.
 *
 * Integer arithmetic wraps. Float arithmetic rounds to the element's own type.
 * If one operand of a float's min or max is a NaN, the result is the other
 * operand (IEEE minNum and maxNum). For -0 and +0 either may be the result.
 *
 * _masked: does the operation if `mask` is true. Otherwise it touches no memory
 * and returns zero.
 *
 * On the CPU a loop around an atomic load, a compare-and-swap or any acquiring
 * atomic counts as waiting: now and then it gives the core to other ranks, and
 * it ends when the kernel is to end. Use iris_wait_until() where it fits.
 *
 * @use lane; never blocks; CPU nodes
 * @param ptr  address on this rank's heap, which is translated
 * @param value  operand of the update
 * @param expected  value to replace
 * @param desired  value to replace it with */

/* The order and scope of an atomic, and its operation. */
typedef struct iris_d_amo {
    enum iris_op op;
    enum iris_d_kind kind;
    int rank;
    iris_d_order_t order;
} iris_d_amo_t;

IRIS_DEVICE iris_d_amo_t iris_d_amo_of(enum iris_op op, enum iris_d_kind kind,
                                       int rank, iris_sem_t sem,
                                       iris_scope_t scope)
{
    iris_d_amo_t how = {op, kind, rank, {sem, scope}};

    return how;
}

/* Counts polls of a kernel's own spin loop. Every 64th poll is treated as a
 * wait that has polled that often. */
IRIS_DEVICE void iris_d_maybe_spinning(iris_dev_t dev, const void *place,
                                       int rank, size_t bytes)
{
#if IRIS_ON_CPU
    if (dev.cpu != NULL && IRIS_UNLIKELY((++dev.cpu->spins & 63u) == 0)) {
        dev.cpu->polls += 63;
        dev.cpu->spin_address = iris_d_is_far(dev, rank) ? NULL : place;
        dev.cpu->spin_bytes = (unsigned)bytes;
        iris_cpu_poll(dev.cpu);
        dev.cpu->spin_address = NULL;
    }
    IRIS_D_PAUSED();
#else
    (void)dev, (void)place, (void)rank, (void)bytes;
#endif
}

#if IRIS_D_HOOKED
IRIS_DEVICE uint64_t iris_d_amo_packed(iris_d_amo_t how)
{
    size_t bytes = iris_d_kind_bytes(how.kind);

    return iris_d_packed(iris_d_ordered(
               how.op == IRIS_OP_LOAD ? iris_d_reads(how.op, how.rank, bytes)
                                      : iris_d_writes(how.op, how.rank, bytes),
               how.order)) |
           IRIS_D_ATOMIC;
}
#endif

/* Operations that a spin loop consists of: all that acquire, and loads and
 * compare-and-swaps of any order. */
IRIS_DEVICE iris_bool_t iris_d_may_spin(iris_d_amo_t how)
{
    return iris_d_acquires(how.order) || how.op == IRIS_OP_LOAD ||
           how.op == IRIS_OP_ATOMIC_CAS;
}

/* Before an atomic: the spin count, the hook, and the place to update. `value`
 * is its operand. */
IRIS_DEVICE void *iris_d_amo_begin(iris_dev_t *dev, const void *ptr,
                                   uint64_t value, iris_d_amo_t how)
{
    void *place = iris_d_translate(*dev, ptr, how.rank);

    if (iris_d_may_spin(how)) {
        iris_d_maybe_spinning(*dev, place, how.rank,
                              iris_d_kind_bytes(how.kind));
    }
    (void)value;
    IRIS_D_HOOK(
        iris_d_suspect(*dev, ptr, how.rank, iris_d_kind_bytes(how.kind)),
        IRIS_D_CALL(before, *dev, ptr, value, how.rank,
                    iris_d_amo_packed(how)));
    if (!iris_d_is_far(*dev, how.rank)) {
        IRIS_D_FAR_RELEASE(*dev, how.order);
    }
    return place;
}

/* After an atomic. `old` is the value that it read. */
IRIS_DEVICE void iris_d_amo_end(iris_dev_t dev, uint64_t old, iris_d_amo_t how)
{
    (void)dev, (void)old, (void)how;
    IRIS_D_HOOK(dev.watched,
                IRIS_D_CALL(after, dev, how.op != IRIS_OP_LOAD, old));
}

/* The update as a compare-and-swap loop. It is used for updates that a target
 * does not have, and for floats on all targets. PTX's f32 add flushes subnormal
 * numbers. AMD's native float atomics silently do nothing on fine-grained
 * memory, which heaps are made of. */
IRIS_DEVICE uint64_t iris_d_update(void *place, uint64_t value,
                                   iris_d_amo_t how)
{
    size_t bytes = iris_d_kind_bytes(how.kind);
    uint64_t seen =
        iris_d_load(place, bytes, iris_d_order(IRIS_RELAXED, how.order.scope));

    /* For smaller elements, iris_d_cas_in_word() releases. */
    if (bytes >= IRIS_D_FETCH_MIN_BYTES) {
        /* Release once, not in every round. */
        how.order = iris_d_released(how.order);
    }
    for (;;) {
        uint64_t old = seen;

        seen =
            iris_d_cas(place, bytes, old,
                       iris_d_combine(how.kind, how.op, old, value), how.order);
        if (seen == old) {
            return old;
        }
    }
}

/* The native minimum or maximum of integers of 4 and 8 bytes; GPUs only. At
 * system scope, compilers for AMD make loops of them, because PCIe lacks these
 * atomics. */
IRIS_DEVICE enum iris_d_fetch iris_d_extreme(iris_d_amo_t how)
{
    iris_bool_t is_signed =
        how.kind == IRIS_D_KIND_i32 || how.kind == IRIS_D_KIND_i64;

    if (how.op == IRIS_OP_ATOMIC_MIN) {
        return is_signed ? IRIS_D_FETCH_SMIN : IRIS_D_FETCH_UMIN;
    }
    return is_signed ? IRIS_D_FETCH_SMAX : IRIS_D_FETCH_UMAX;
}

/* Any update of any type; returns the old bits. */
IRIS_DEVICE uint64_t iris_d_amo_at(void *place, uint64_t value,
                                   iris_d_amo_t how)
{
    size_t bytes = iris_d_kind_bytes(how.kind);
    iris_bool_t is_float =
        how.kind == IRIS_D_KIND_f16 || how.kind == IRIS_D_KIND_bf16 ||
        how.kind == IRIS_D_KIND_f32 || how.kind == IRIS_D_KIND_f64;

    if (bytes < IRIS_D_FETCH_MIN_BYTES ||
        (is_float && how.op != IRIS_OP_ATOMIC_XCHG)) {
        return iris_d_update(place, value, how);
    }
    switch (how.op) {
    case IRIS_OP_ATOMIC_ADD:
        return iris_d_fetch(place, bytes, IRIS_D_FETCH_ADD, value, how.order);
    case IRIS_OP_ATOMIC_SUB:
        return iris_d_fetch(place, bytes, IRIS_D_FETCH_ADD, 0 - value,
                            how.order);
    case IRIS_OP_ATOMIC_AND:
        return iris_d_fetch(place, bytes, IRIS_D_FETCH_AND, value, how.order);
    case IRIS_OP_ATOMIC_OR:
        return iris_d_fetch(place, bytes, IRIS_D_FETCH_OR, value, how.order);
    case IRIS_OP_ATOMIC_XOR:
        return iris_d_fetch(place, bytes, IRIS_D_FETCH_XOR, value, how.order);
    case IRIS_OP_ATOMIC_XCHG:
        return iris_d_fetch(place, bytes, IRIS_D_FETCH_XCHG, value, how.order);
    default:
        return IRIS_ON_CPU ? iris_d_update(place, value, how)
                           : iris_d_fetch(place, bytes, iris_d_extreme(how),
                                          value, how.order);
    }
}

/* The same, or a compare-and-swap. */
IRIS_DEVICE uint64_t iris_d_amo_any(void *place, uint64_t value,
                                    uint64_t expected, iris_d_amo_t how)
{
    return how.op == IRIS_OP_ATOMIC_CAS
               ? iris_d_cas(place, iris_d_kind_bytes(how.kind), expected, value,
                            how.order)
               : iris_d_amo_at(place, value, how);
}

/* An update on a far rank, by the proxy. */
#if IRIS_ON_CPU || IRIS_FAR
IRIS_DEVICE_APART uint64_t iris_d_amo_far(iris_dev_t dev, const void *ptr,
                                          uint64_t value, uint64_t expected,
                                          iris_d_amo_t how)
{
    iris_d_request_t request = {
        how.op,   how.rank, ptr,      iris_d_kind_bytes(how.kind),
        how.kind, value,    expected, iris_d_releases(how.order),
        0};
#if IRIS_ON_CPU
    return iris_d_far_amo(iris_d_far_lane(dev.cpu), request);
#else
    iris_d_far_t self = iris_d_far_self(dev);

    return iris_d_far_amo(&self, request);
#endif
}
#else
IRIS_DEVICE uint64_t iris_d_amo_far(iris_dev_t dev, const void *ptr,
                                    uint64_t value, uint64_t expected,
                                    iris_d_amo_t how)
{
    (void)dev, (void)ptr, (void)value, (void)expected, (void)how;
    return 0;
}
#endif

/* iris_d_amo_at() with its hooks. `ptr` is not translated yet. */
IRIS_DEVICE uint64_t iris_d_amo(iris_dev_t dev, void *ptr, uint64_t value,
                                iris_d_amo_t how)
{
    void *place = iris_d_amo_begin(&dev, ptr, value, how);
    uint64_t old = IRIS_UNLIKELY(iris_d_is_far(dev, how.rank))
                       ? iris_d_amo_far(dev, ptr, value, 0, how)
                       : iris_d_amo_at(place, value, how);

    iris_d_amo_end(dev, old, how);
    return old;
}

IRIS_DEVICE uint64_t iris_d_amo_cas(iris_dev_t dev, void *ptr,
                                    uint64_t expected, uint64_t desired,
                                    iris_d_amo_t how)
{
    void *place;
    uint64_t old;

    IRIS_D_HOOK(dev.watched, IRIS_D_CALL(expects, dev, expected));
    place = iris_d_amo_begin(&dev, ptr, desired, how);
    old = IRIS_UNLIKELY(iris_d_is_far(dev, how.rank))
              ? iris_d_amo_far(dev, ptr, desired, expected, how)
              : iris_d_cas(place, iris_d_kind_bytes(how.kind), expected,
                           desired, how.order);
    iris_d_amo_end(dev, old, how);
    return old;
}

IRIS_DEVICE uint64_t iris_d_amo_load(iris_dev_t dev, const void *ptr,
                                     iris_d_amo_t how)
{
    const void *place = iris_d_amo_begin(&dev, ptr, 0, how);
    uint64_t seen =
        IRIS_UNLIKELY(iris_d_is_far(dev, how.rank))
            ? iris_d_amo_far(dev, ptr, 0, 0, how)
            : iris_d_load(place, iris_d_kind_bytes(how.kind), how.order);

    iris_d_amo_end(dev, seen, how);
    return seen;
}

IRIS_DEVICE void iris_d_amo_store(iris_dev_t dev, void *ptr, uint64_t value,
                                  iris_d_amo_t how)
{
    void *place = iris_d_amo_begin(&dev, ptr, value, how);

    if (IRIS_UNLIKELY(iris_d_is_far(dev, how.rank))) {
        (void)iris_d_amo_far(dev, ptr, value, 0, how);
    } else {
        iris_d_store(place, iris_d_kind_bytes(how.kind), value, how.order);
    }
    iris_d_amo_end(dev, 0, how);
}

/* clang-format off */

/* The names of the operations in the macros below. */
enum {
    IRIS_D_OP_add = IRIS_OP_ATOMIC_ADD,
    IRIS_D_OP_sub = IRIS_OP_ATOMIC_SUB,
    IRIS_D_OP_and = IRIS_OP_ATOMIC_AND,
    IRIS_D_OP_or = IRIS_OP_ATOMIC_OR,
    IRIS_D_OP_xor = IRIS_OP_ATOMIC_XOR,
    IRIS_D_OP_min = IRIS_OP_ATOMIC_MIN,
    IRIS_D_OP_max = IRIS_OP_ATOMIC_MAX,
    IRIS_D_OP_xchg = IRIS_OP_ATOMIC_XCHG,
};

/** iris_atomic_add, _sub, _min, _max, _xchg, _and, _or, _xor: replaces the
 *  element with (element OP value) and returns the old value. The last three
 *  take integers only. For add and f32:
 *      float iris_atomic_add_f32(iris_dev_t dev, float *ptr, float value,
 *                                int to_rank, iris_sem_t sem,
 *                                iris_scope_t scope);
 *      float iris_atomic_add_masked_f32(iris_dev_t dev, float *ptr,
 *                                       float value, int to_rank,
 *                                       iris_bool_t mask, iris_sem_t sem,
 *                                       iris_scope_t scope); */
#define IRIS_D_ROW(name, c_type, verb)                                         \
    IRIS_DEVICE c_type iris_atomic_##verb##_##name(                            \
        iris_dev_t dev, c_type *ptr, c_type value, int to_rank,                \
        iris_sem_t sem, iris_scope_t scope)                                    \
    {                                                                          \
        iris_d_amo_t how = iris_d_amo_of((enum iris_op)IRIS_D_OP_##verb,       \
                                         IRIS_D_KIND_##name, to_rank, sem,     \
                                         scope);                               \
        return iris_d_value_##name(                                            \
            iris_d_amo(dev, ptr, iris_d_bits_##name(value), how));             \
    }                                                                          \
    IRIS_DEVICE c_type iris_atomic_##verb##_masked_##name(                     \
        iris_dev_t dev, c_type *ptr, c_type value, int to_rank,                \
        iris_bool_t mask, iris_sem_t sem, iris_scope_t scope)                  \
    {                                                                          \
        return mask ? iris_atomic_##verb##_##name(dev, ptr, value, to_rank,    \
                                                  sem, scope)                  \
                    : iris_d_value_##name(0);                                  \
    }
IRIS_TYPES(IRIS_D_ROW, add)
IRIS_TYPES(IRIS_D_ROW, sub)
IRIS_TYPES(IRIS_D_ROW, min)
IRIS_TYPES(IRIS_D_ROW, max)
IRIS_TYPES(IRIS_D_ROW, xchg)
IRIS_INTEGER_TYPES(IRIS_D_ROW, and)
IRIS_INTEGER_TYPES(IRIS_D_ROW, or)
IRIS_INTEGER_TYPES(IRIS_D_ROW, xor)
#undef IRIS_D_ROW

/** iris_atomic_cas: replaces the element with `desired` if it equals
 *  `expected`, and returns the old value; it was replaced if that is `expected`.
 *  Floats compare by their bits: -0 is not +0, and a NaN equals the same NaN. A
 *  comparison that fails keeps the acquire part of `sem`. Never fails for
 *  another reason. For f32:
 *      float iris_atomic_cas_f32(iris_dev_t dev, float *ptr, float expected,
 *                                float desired, int to_rank, iris_sem_t sem,
 *                                iris_scope_t scope);
 *      float iris_atomic_cas_masked_f32(iris_dev_t dev, float *ptr,
 *                                       float expected, float desired,
 *                                       int to_rank, iris_bool_t mask,
 *                                       iris_sem_t sem, iris_scope_t scope); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_atomic_cas_##name(                                 \
        iris_dev_t dev, c_type *ptr, c_type expected, c_type desired,          \
        int to_rank, iris_sem_t sem, iris_scope_t scope)                       \
    {                                                                          \
        return iris_d_value_##name(                                            \
            iris_d_amo_cas(dev, ptr, iris_d_bits_##name(expected),             \
                           iris_d_bits_##name(desired),                        \
                           iris_d_amo_of(IRIS_OP_ATOMIC_CAS,                   \
                                         IRIS_D_KIND_##name, to_rank, sem,     \
                                         scope)));                             \
    }                                                                          \
    IRIS_DEVICE c_type iris_atomic_cas_masked_##name(                          \
        iris_dev_t dev, c_type *ptr, c_type expected, c_type desired,          \
        int to_rank, iris_bool_t mask, iris_sem_t sem, iris_scope_t scope)     \
    {                                                                          \
        return mask ? iris_atomic_cas_##name(dev, ptr, expected, desired,      \
                                             to_rank, sem, scope)              \
                    : iris_d_value_##name(0);                                  \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/** iris_atomic_load, iris_atomic_store: one element, whole and ordered. A load
 *  takes the acquire part of `sem` only, a store the release part only. For
 *  f32:
 *      float iris_atomic_load_f32(iris_dev_t dev, const float *ptr,
 *                                 int from_rank, iris_sem_t sem,
 *                                 iris_scope_t scope);
 *      void iris_atomic_store_f32(iris_dev_t dev, float *ptr, float value,
 *                                 int to_rank, iris_sem_t sem,
 *                                 iris_scope_t scope); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_atomic_load_##name(                                \
        iris_dev_t dev, const c_type *ptr, int from_rank, iris_sem_t sem,      \
        iris_scope_t scope)                                                    \
    {                                                                          \
        return iris_d_value_##name(                                            \
            iris_d_amo_load(dev, ptr,                                          \
                            iris_d_amo_of(IRIS_OP_LOAD, IRIS_D_KIND_##name,    \
                                          from_rank, sem, scope)));            \
    }                                                                          \
    IRIS_DEVICE void iris_atomic_store_##name(                                 \
        iris_dev_t dev, c_type *ptr, c_type value, int to_rank,                \
        iris_sem_t sem, iris_scope_t scope)                                    \
    {                                                                          \
        iris_d_amo_store(dev, ptr, iris_d_bits_##name(value),                  \
                         iris_d_amo_of(IRIS_OP_STORE, IRIS_D_KIND_##name,      \
                                       to_rank, sem, scope));                  \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW
/* clang-format on */

#endif /* IRIS_DEVICE_AMO_H */
