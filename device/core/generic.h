/* SPDX-License-Identifier: MIT
 *
 * Short names for the typed functions: iris_load(dev, ptr, from_rank) is
 * iris_load_f32() if ptr is a float pointer. _Generic in C, overloads in C++.
 */
#ifndef IRIS_DEVICE_GENERIC_H
#define IRIS_DEVICE_GENERIC_H

#include <iris/device/core/rma.h>
#include <iris/device/core/amo.h>
#include <iris/device/core/signal.h>

/* The type of `*ptr` selects the function; a type outside the rows does not
 * compile. Values convert to that type as in an assignment. */

/* clang-format off */
#ifndef __cplusplus

/* IRIS_TYPES does not generate these lists: then no short name would work
 * inside an expansion of IRIS_TYPES. */
#define IRIS_D_WORD_LIST(op)                                                   \
    int32_t: op##_i32, uint32_t: op##_u32, int64_t: op##_i64, uint64_t: op##_u64
#define IRIS_D_INTEGER_LIST(op)                                                \
    int8_t: op##_i8, uint8_t: op##_u8, int16_t: op##_i16, uint16_t: op##_u16,  \
    IRIS_D_WORD_LIST(op)
#define IRIS_D_LIST(op)                                                        \
    iris_f16_t: op##_f16, iris_bf16_t: op##_bf16, float: op##_f32,             \
    double: op##_f64, IRIS_D_INTEGER_LIST(op)
#define IRIS_D_PICK(op, LIST, ptr) _Generic(*(ptr), LIST(op))

#define iris_load(dev, ptr, from_rank)                                         \
    IRIS_D_PICK(iris_load, IRIS_D_LIST, ptr)(dev, ptr, from_rank)
#define iris_load_masked(dev, ptr, from_rank, mask, other)                     \
    IRIS_D_PICK(iris_load_masked, IRIS_D_LIST, ptr)                            \
    (dev, ptr, from_rank, mask, other)
#define iris_store(dev, ptr, value, to_rank)                                   \
    IRIS_D_PICK(iris_store, IRIS_D_LIST, ptr)(dev, ptr, value, to_rank)
#define iris_store_masked(dev, ptr, value, to_rank, mask)                      \
    IRIS_D_PICK(iris_store_masked, IRIS_D_LIST, ptr)                           \
    (dev, ptr, value, to_rank, mask)
#define iris_get(dev, from_ptr, to_ptr, from_rank)                             \
    IRIS_D_PICK(iris_get, IRIS_D_LIST, to_ptr)(dev, from_ptr, to_ptr, from_rank)
#define iris_get_masked(dev, from_ptr, to_ptr, from_rank, mask)                \
    IRIS_D_PICK(iris_get_masked, IRIS_D_LIST, to_ptr)                          \
    (dev, from_ptr, to_ptr, from_rank, mask)
#define iris_put(dev, from_ptr, to_ptr, to_rank)                               \
    IRIS_D_PICK(iris_put, IRIS_D_LIST, to_ptr)(dev, from_ptr, to_ptr, to_rank)
#define iris_put_masked(dev, from_ptr, to_ptr, to_rank, mask)                  \
    IRIS_D_PICK(iris_put_masked, IRIS_D_LIST, to_ptr)                          \
    (dev, from_ptr, to_ptr, to_rank, mask)
#define iris_copy(dev, src_ptr, dst_ptr, from_rank, to_rank)                   \
    IRIS_D_PICK(iris_copy, IRIS_D_LIST, dst_ptr)                               \
    (dev, src_ptr, dst_ptr, from_rank, to_rank)
#define iris_copy_masked(dev, src_ptr, dst_ptr, from_rank, to_rank, mask)      \
    IRIS_D_PICK(iris_copy_masked, IRIS_D_LIST, dst_ptr)                        \
    (dev, src_ptr, dst_ptr, from_rank, to_rank, mask)
#define iris_load_volatile(dev, ptr, from_rank)                                \
    IRIS_D_PICK(iris_load_volatile, IRIS_D_LIST, ptr)(dev, ptr, from_rank)
#define iris_store_volatile(dev, ptr, value, to_rank)                          \
    IRIS_D_PICK(iris_store_volatile, IRIS_D_LIST, ptr)(dev, ptr, value, to_rank)
#define iris_load_hint(dev, ptr, from_rank, hint)                              \
    IRIS_D_PICK(iris_load_hint, IRIS_D_LIST, ptr)(dev, ptr, from_rank, hint)
#define iris_store_hint(dev, ptr, value, to_rank, hint)                        \
    IRIS_D_PICK(iris_store_hint, IRIS_D_LIST, ptr)                             \
    (dev, ptr, value, to_rank, hint)

#define iris_atomic_add(dev, ptr, value, to_rank, sem, scope)                  \
    IRIS_D_PICK(iris_atomic_add, IRIS_D_LIST, ptr)                             \
    (dev, ptr, value, to_rank, sem, scope)
#define iris_atomic_sub(dev, ptr, value, to_rank, sem, scope)                  \
    IRIS_D_PICK(iris_atomic_sub, IRIS_D_LIST, ptr)                             \
    (dev, ptr, value, to_rank, sem, scope)
#define iris_atomic_min(dev, ptr, value, to_rank, sem, scope)                  \
    IRIS_D_PICK(iris_atomic_min, IRIS_D_LIST, ptr)                             \
    (dev, ptr, value, to_rank, sem, scope)
#define iris_atomic_max(dev, ptr, value, to_rank, sem, scope)                  \
    IRIS_D_PICK(iris_atomic_max, IRIS_D_LIST, ptr)                             \
    (dev, ptr, value, to_rank, sem, scope)
#define iris_atomic_xchg(dev, ptr, value, to_rank, sem, scope)                 \
    IRIS_D_PICK(iris_atomic_xchg, IRIS_D_LIST, ptr)                            \
    (dev, ptr, value, to_rank, sem, scope)
#define iris_atomic_and(dev, ptr, value, to_rank, sem, scope)                  \
    IRIS_D_PICK(iris_atomic_and, IRIS_D_INTEGER_LIST, ptr)                     \
    (dev, ptr, value, to_rank, sem, scope)
#define iris_atomic_or(dev, ptr, value, to_rank, sem, scope)                   \
    IRIS_D_PICK(iris_atomic_or, IRIS_D_INTEGER_LIST, ptr)                      \
    (dev, ptr, value, to_rank, sem, scope)
#define iris_atomic_xor(dev, ptr, value, to_rank, sem, scope)                  \
    IRIS_D_PICK(iris_atomic_xor, IRIS_D_INTEGER_LIST, ptr)                     \
    (dev, ptr, value, to_rank, sem, scope)
#define iris_atomic_add_masked(dev, ptr, value, to_rank, mask, sem, scope)     \
    IRIS_D_PICK(iris_atomic_add_masked, IRIS_D_LIST, ptr)                      \
    (dev, ptr, value, to_rank, mask, sem, scope)
#define iris_atomic_sub_masked(dev, ptr, value, to_rank, mask, sem, scope)     \
    IRIS_D_PICK(iris_atomic_sub_masked, IRIS_D_LIST, ptr)                      \
    (dev, ptr, value, to_rank, mask, sem, scope)
#define iris_atomic_min_masked(dev, ptr, value, to_rank, mask, sem, scope)     \
    IRIS_D_PICK(iris_atomic_min_masked, IRIS_D_LIST, ptr)                      \
    (dev, ptr, value, to_rank, mask, sem, scope)
#define iris_atomic_max_masked(dev, ptr, value, to_rank, mask, sem, scope)     \
    IRIS_D_PICK(iris_atomic_max_masked, IRIS_D_LIST, ptr)                      \
    (dev, ptr, value, to_rank, mask, sem, scope)
#define iris_atomic_xchg_masked(dev, ptr, value, to_rank, mask, sem, scope)    \
    IRIS_D_PICK(iris_atomic_xchg_masked, IRIS_D_LIST, ptr)                     \
    (dev, ptr, value, to_rank, mask, sem, scope)
#define iris_atomic_and_masked(dev, ptr, value, to_rank, mask, sem, scope)     \
    IRIS_D_PICK(iris_atomic_and_masked, IRIS_D_INTEGER_LIST, ptr)              \
    (dev, ptr, value, to_rank, mask, sem, scope)
#define iris_atomic_or_masked(dev, ptr, value, to_rank, mask, sem, scope)      \
    IRIS_D_PICK(iris_atomic_or_masked, IRIS_D_INTEGER_LIST, ptr)               \
    (dev, ptr, value, to_rank, mask, sem, scope)
#define iris_atomic_xor_masked(dev, ptr, value, to_rank, mask, sem, scope)     \
    IRIS_D_PICK(iris_atomic_xor_masked, IRIS_D_INTEGER_LIST, ptr)              \
    (dev, ptr, value, to_rank, mask, sem, scope)
#define iris_atomic_cas(dev, ptr, expected, desired, to_rank, sem, scope)      \
    IRIS_D_PICK(iris_atomic_cas, IRIS_D_LIST, ptr)                             \
    (dev, ptr, expected, desired, to_rank, sem, scope)
#define iris_atomic_cas_masked(dev, ptr, expected, desired, to_rank, mask,     \
                               sem, scope)                                     \
    IRIS_D_PICK(iris_atomic_cas_masked, IRIS_D_LIST, ptr)                      \
    (dev, ptr, expected, desired, to_rank, mask, sem, scope)
#define iris_atomic_load(dev, ptr, from_rank, sem, scope)                      \
    IRIS_D_PICK(iris_atomic_load, IRIS_D_LIST, ptr)                            \
    (dev, ptr, from_rank, sem, scope)
#define iris_atomic_store(dev, ptr, value, to_rank, sem, scope)                \
    IRIS_D_PICK(iris_atomic_store, IRIS_D_LIST, ptr)                           \
    (dev, ptr, value, to_rank, sem, scope)

#define iris_put_signal(dev, from_ptr, to_ptr, signal, value, to_rank)         \
    IRIS_D_PICK(iris_put_signal, IRIS_D_LIST, to_ptr)                          \
    (dev, from_ptr, to_ptr, signal, value, to_rank)
#define iris_wait_until(dev, ptr, cmp, value)                                  \
    IRIS_D_PICK(iris_wait_until, IRIS_D_WORD_LIST, ptr)(dev, ptr, cmp, value)
#define iris_test(dev, ptr, cmp, value)                                        \
    IRIS_D_PICK(iris_test, IRIS_D_WORD_LIST, ptr)(dev, ptr, cmp, value)

#else /* C++: overloads */

/* For f32: float iris_load(iris_dev_t dev, const float *ptr, int from_rank) and
 * so on for each short name. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_load(iris_dev_t dev, const c_type *ptr,            \
                                 int from_rank)                                \
    {                                                                          \
        return iris_load_##name(dev, ptr, from_rank);                          \
    }                                                                          \
    IRIS_DEVICE c_type iris_load_masked(iris_dev_t dev, const c_type *ptr,     \
                                        int from_rank, iris_bool_t mask,       \
                                        c_type other)                          \
    {                                                                          \
        return iris_load_masked_##name(dev, ptr, from_rank, mask, other);      \
    }                                                                          \
    IRIS_DEVICE void iris_store(iris_dev_t dev, c_type *ptr, c_type value,     \
                                int to_rank)                                   \
    {                                                                          \
        iris_store_##name(dev, ptr, value, to_rank);                           \
    }                                                                          \
    IRIS_DEVICE void iris_store_masked(iris_dev_t dev, c_type *ptr,            \
                                       c_type value, int to_rank,              \
                                       iris_bool_t mask)                       \
    {                                                                          \
        iris_store_masked_##name(dev, ptr, value, to_rank, mask);              \
    }                                                                          \
    IRIS_DEVICE c_type iris_load_volatile(iris_dev_t dev, const c_type *ptr,   \
                                          int from_rank)                       \
    {                                                                          \
        return iris_load_volatile_##name(dev, ptr, from_rank);                 \
    }                                                                          \
    IRIS_DEVICE void iris_store_volatile(iris_dev_t dev, c_type *ptr,          \
                                         c_type value, int to_rank)            \
    {                                                                          \
        iris_store_volatile_##name(dev, ptr, value, to_rank);                  \
    }                                                                          \
    IRIS_DEVICE c_type iris_load_hint(iris_dev_t dev, const c_type *ptr,       \
                                      int from_rank, iris_cache_t hint)        \
    {                                                                          \
        return iris_load_hint_##name(dev, ptr, from_rank, hint);               \
    }                                                                          \
    IRIS_DEVICE void iris_store_hint(iris_dev_t dev, c_type *ptr,              \
                                     c_type value, int to_rank,                \
                                     iris_cache_t hint)                        \
    {                                                                          \
        iris_store_hint_##name(dev, ptr, value, to_rank, hint);                \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

#define IRIS_D_ROW(name, c_type, op)                                           \
    IRIS_DEVICE void op(iris_dev_t dev, const c_type *from_ptr,                \
                        c_type *to_ptr, int rank)                              \
    {                                                                          \
        op##_##name(dev, from_ptr, to_ptr, rank);                              \
    }                                                                          \
    IRIS_DEVICE void op##_masked(iris_dev_t dev, const c_type *from_ptr,       \
                                 c_type *to_ptr, int rank, iris_bool_t mask)   \
    {                                                                          \
        op##_masked_##name(dev, from_ptr, to_ptr, rank, mask);                 \
    }
IRIS_TYPES(IRIS_D_ROW, iris_get)
IRIS_TYPES(IRIS_D_ROW, iris_put)
#undef IRIS_D_ROW

#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_copy(iris_dev_t dev, const c_type *src_ptr,          \
                               c_type *dst_ptr, int from_rank, int to_rank)    \
    {                                                                          \
        iris_copy_##name(dev, src_ptr, dst_ptr, from_rank, to_rank);           \
    }                                                                          \
    IRIS_DEVICE void iris_copy_masked(iris_dev_t dev, const c_type *src_ptr,   \
                                      c_type *dst_ptr, int from_rank,          \
                                      int to_rank, iris_bool_t mask)           \
    {                                                                          \
        iris_copy_masked_##name(dev, src_ptr, dst_ptr, from_rank, to_rank,     \
                                mask);                                         \
    }                                                                          \
    IRIS_DEVICE void iris_put_signal(iris_dev_t dev, const c_type *from_ptr,   \
                                     c_type *to_ptr, uint64_t *signal,         \
                                     uint64_t value, int to_rank)              \
    {                                                                          \
        iris_put_signal_##name(dev, from_ptr, to_ptr, signal, value, to_rank); \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

#define IRIS_D_ROW(name, c_type, op)                                           \
    IRIS_DEVICE c_type op(iris_dev_t dev, c_type *ptr, c_type value,           \
                          int to_rank, iris_sem_t sem, iris_scope_t scope)     \
    {                                                                          \
        return op##_##name(dev, ptr, value, to_rank, sem, scope);              \
    }                                                                          \
    IRIS_DEVICE c_type op##_masked(iris_dev_t dev, c_type *ptr, c_type value,  \
                                   int to_rank, iris_bool_t mask,              \
                                   iris_sem_t sem, iris_scope_t scope)         \
    {                                                                          \
        return op##_masked_##name(dev, ptr, value, to_rank, mask, sem, scope); \
    }
IRIS_TYPES(IRIS_D_ROW, iris_atomic_add)
IRIS_TYPES(IRIS_D_ROW, iris_atomic_sub)
IRIS_TYPES(IRIS_D_ROW, iris_atomic_min)
IRIS_TYPES(IRIS_D_ROW, iris_atomic_max)
IRIS_TYPES(IRIS_D_ROW, iris_atomic_xchg)
IRIS_INTEGER_TYPES(IRIS_D_ROW, iris_atomic_and)
IRIS_INTEGER_TYPES(IRIS_D_ROW, iris_atomic_or)
IRIS_INTEGER_TYPES(IRIS_D_ROW, iris_atomic_xor)
#undef IRIS_D_ROW

#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_atomic_cas(iris_dev_t dev, c_type *ptr,            \
                                       c_type expected, c_type desired,        \
                                       int to_rank, iris_sem_t sem,            \
                                       iris_scope_t scope)                     \
    {                                                                          \
        return iris_atomic_cas_##name(dev, ptr, expected, desired, to_rank,    \
                                      sem, scope);                             \
    }                                                                          \
    IRIS_DEVICE c_type iris_atomic_cas_masked(                                 \
        iris_dev_t dev, c_type *ptr, c_type expected, c_type desired,          \
        int to_rank, iris_bool_t mask, iris_sem_t sem, iris_scope_t scope)     \
    {                                                                          \
        return iris_atomic_cas_masked_##name(dev, ptr, expected, desired,      \
                                             to_rank, mask, sem, scope);       \
    }                                                                          \
    IRIS_DEVICE c_type iris_atomic_load(iris_dev_t dev, const c_type *ptr,     \
                                        int from_rank, iris_sem_t sem,         \
                                        iris_scope_t scope)                    \
    {                                                                          \
        return iris_atomic_load_##name(dev, ptr, from_rank, sem, scope);       \
    }                                                                          \
    IRIS_DEVICE void iris_atomic_store(iris_dev_t dev, c_type *ptr,            \
                                       c_type value, int to_rank,              \
                                       iris_sem_t sem, iris_scope_t scope)     \
    {                                                                          \
        iris_atomic_store_##name(dev, ptr, value, to_rank, sem, scope);        \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_wait_until(iris_dev_t dev, const c_type *ptr,      \
                                       iris_cmp_t cmp, c_type value)           \
    {                                                                          \
        return iris_wait_until_##name(dev, ptr, cmp, value);                   \
    }                                                                          \
    IRIS_DEVICE iris_bool_t iris_test(iris_dev_t dev, const c_type *ptr,       \
                                      iris_cmp_t cmp, c_type value)            \
    {                                                                          \
        return iris_test_##name(dev, ptr, cmp, value);                         \
    }
IRIS_WORD_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

#endif
/* clang-format on */

#endif /* IRIS_DEVICE_GENERIC_H */
