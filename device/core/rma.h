/* SPDX-License-Identifier: MIT
 *
 * Remote memory access by one lane: load, store, get, put and copy of one
 * element, for every element type. Short names are in generic.h.
 */
#ifndef IRIS_DEVICE_RMA_H
#define IRIS_DEVICE_RMA_H

#include <iris/device/watch/hook.h>
#include <iris/device/core/value.h>

/* ---- Access by one lane ----------------------------------------------------
 *
 * These rules hold for all operations below. Any single lane may call them; the
 * other lanes of the workgroup need not take part.
 *
 * Pointers are in the calling rank's address space and aligned for their type.
 * A pointer that an operation translates must be on the caller's heap.
 * from_rank and to_rank are ranks of the job, possibly the caller's own. If a
 * rank does not exist, the CPU ends the kernel, and the stream's synchronize
 * names the access; GPUs check nothing.
 *
 * Order: the operations order nothing. A load has its value when it returns. A
 * store may become visible to other lanes and ranks at any later time and in
 * any order, until a release (iris_fence(), iris_signal_set(), an atomic) or
 * the kernel's end. If two lanes or ranks access one element at the same time,
 * and one of them writes, use atomics.
 *
 * _masked: does the operation if `mask` is true. Otherwise it touches no memory
 * and does not translate; a load then returns `other`.
 *
 * @use lane; never blocks; CPU nodes
 * @param ptr  address on this rank's heap, which is translated
 * @param value  the element to store
 * @param other  result if `mask` is false
 * @param from_ptr  source
 * @param to_ptr  target
 * @param src_ptr  source, translated
 * @param dst_ptr  target, translated
 * @param hint  expected use of the cache, such as IRIS_CACHE_STREAMING */

/* clang-format off */

/* The hooks of plain accesses, whose place is `from` or `to`. */
#define IRIS_D_PLAIN(op, bytes)                                                \
    iris_d_packed(iris_d_reads(IRIS_OP_##op, 0, bytes))
#define IRIS_D_VOLATILE(op, bytes)                                             \
    (iris_d_packed(iris_d_ordered(                                             \
         iris_d_reads(IRIS_OP_##op, 0, bytes),                                 \
         iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM))) |                     \
     IRIS_D_ATOMIC)
#define IRIS_D_BEFORE_LOAD(dev, ptr, rank, bytes, form)                        \
    IRIS_D_HOOK(iris_d_watched(dev, rank),                                     \
                (IRIS_D_CALL(before, dev, ptr, 0, rank,                        \
                              IRIS_D_##form(LOAD, bytes)),                      \
                 IRIS_D_FAR_FROM(dev, ptr, from, rank, bytes)))
#define IRIS_D_AFTER_LOAD(dev, rank, bits)                                     \
    IRIS_D_HOOK(iris_d_watched(dev, rank), IRIS_D_CALL(after, dev, 0, bits))
#define IRIS_D_BEFORE_STORE(dev, ptr, rank, bytes, bits, form)                 \
    IRIS_D_HOOK(iris_d_watched(dev, rank),                                     \
                (IRIS_D_CALL(before, dev, ptr, bits, rank,                     \
                              IRIS_D_##form(STORE, bytes) | IRIS_D_WRITE),      \
                 IRIS_D_FAR_TO(dev, ptr, to)))
#define IRIS_D_AFTER_STORE(dev, ptr, rank, bytes)                              \
    IRIS_D_HOOK(iris_d_watched(dev, rank),                                     \
                (IRIS_D_FAR_SEND(dev, ptr, to, rank, bytes),                   \
                 IRIS_D_CALL(after, dev, 1, 0)))

/** iris_load: the element that from_rank keeps at `ptr`. For f32:
 *      float iris_load_f32(iris_dev_t dev, const float *ptr, int from_rank);
 *      float iris_load_masked_f32(iris_dev_t dev, const float *ptr,
 *                                 int from_rank, iris_bool_t mask,
 *                                 float other); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_load_##name(iris_dev_t dev, const c_type *ptr,     \
                                        int from_rank)                         \
    {                                                                          \
        const void *from = iris_d_translate(dev, ptr, from_rank);              \
        c_type value;                                                          \
        IRIS_D_BEFORE_LOAD(dev, ptr, from_rank, sizeof(c_type), PLAIN); \
        value = IRIS_D_FAR_READ(name, dev, ptr, from_rank,                     \
                                *(const c_type *)from);                        \
        IRIS_D_AFTER_LOAD(dev, from_rank, iris_d_bits_##name(value));          \
        return value;                                                          \
    }                                                                          \
    IRIS_DEVICE c_type iris_load_masked_##name(                                \
        iris_dev_t dev, const c_type *ptr, int from_rank, iris_bool_t mask,    \
        c_type other)                                                          \
    {                                                                          \
        return mask ? iris_load_##name(dev, ptr, from_rank) : other;           \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/** iris_store: sets the element that to_rank keeps at `ptr`. For f32:
 *      void iris_store_f32(iris_dev_t dev, float *ptr, float value,
 *                          int to_rank);
 *      void iris_store_masked_f32(iris_dev_t dev, float *ptr, float value,
 *                                 int to_rank, iris_bool_t mask); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_store_##name(iris_dev_t dev, c_type *ptr,            \
                                       c_type value, int to_rank)              \
    {                                                                          \
        void *to = iris_d_translate(dev, ptr, to_rank);                        \
        IRIS_D_BEFORE_STORE(dev, ptr, to_rank, sizeof(c_type),                 \
                            iris_d_bits_##name(value), PLAIN); \
        IRIS_D_FAR_WRITE(dev, ptr, to_rank, iris_d_bits_##name(value),             \
                     sizeof(c_type), *(c_type *)to = value);                   \
        IRIS_D_AFTER_STORE(dev, ptr, to_rank, sizeof(c_type));                                 \
    }                                                                          \
    IRIS_DEVICE void iris_store_masked_##name(iris_dev_t dev, c_type *ptr,     \
                                              c_type value, int to_rank,       \
                                              iris_bool_t mask)                \
    {                                                                          \
        if (mask) {                                                            \
            iris_store_##name(dev, ptr, value, to_rank);                       \
        }                                                                      \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/** iris_get: copies the element that from_rank keeps at `from_ptr` to this
 *  rank's `to_ptr`, which is used as it is and may be any memory the lane can
 *  write. For f32:
 *      void iris_get_f32(iris_dev_t dev, const float *from_ptr, float *to_ptr,
 *                        int from_rank);
 *      void iris_get_masked_f32(iris_dev_t dev, const float *from_ptr,
 *                               float *to_ptr, int from_rank,
 *                               iris_bool_t mask); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_get_##name(iris_dev_t dev, const c_type *from_ptr,   \
                                     c_type *to_ptr, int from_rank)            \
    {                                                                          \
        const void *from = iris_d_translate(dev, from_ptr, from_rank);         \
        c_type value;                                                          \
        IRIS_D_HOOK(iris_d_watched(dev, from_rank),                            \
                    (IRIS_D_CALL(before_both, dev, from_ptr, from_rank,        \
                                 to_ptr, dev.rank,                             \
                                 IRIS_D_PLAIN(GET, sizeof(c_type))),           \
                     IRIS_D_FAR_FROM(dev, from_ptr, from, from_rank,           \
                                     sizeof(c_type))));                        \
        value = IRIS_D_FAR_READ(name, dev, from_ptr, from_rank,                    \
                            *(const c_type *)from);                            \
        *to_ptr = value;                                                       \
        IRIS_D_HOOK(iris_d_watched(dev, from_rank),                            \
                    IRIS_D_CALL(after_both, dev, iris_d_bits_##name(value)));    \
    }                                                                          \
    IRIS_DEVICE void iris_get_masked_##name(                                   \
        iris_dev_t dev, const c_type *from_ptr, c_type *to_ptr, int from_rank, \
        iris_bool_t mask)                                                      \
    {                                                                          \
        if (mask) {                                                            \
            iris_get_##name(dev, from_ptr, to_ptr, from_rank);                 \
        }                                                                      \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/** iris_put: copies the element at this rank's `from_ptr`, which is used as it
 *  is and may be any memory the lane can read, to where to_rank keeps `to_ptr`.
 *  For f32:
 *      void iris_put_f32(iris_dev_t dev, const float *from_ptr, float *to_ptr,
 *                        int to_rank);
 *      void iris_put_masked_f32(iris_dev_t dev, const float *from_ptr,
 *                               float *to_ptr, int to_rank,
 *                               iris_bool_t mask); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_put_##name(iris_dev_t dev, const c_type *from_ptr,   \
                                     c_type *to_ptr, int to_rank)              \
    {                                                                          \
        void *to = iris_d_translate(dev, to_ptr, to_rank);                     \
        c_type value;                                                          \
        IRIS_D_HOOK(iris_d_watched(dev, to_rank),                              \
                    (IRIS_D_CALL(before_both, dev, from_ptr, dev.rank, to_ptr, \
                                 to_rank,                                      \
                                 IRIS_D_PLAIN(PUT, sizeof(c_type))),           \
                     IRIS_D_FAR_TO(dev, to_ptr, to)));                         \
        value = *from_ptr;                                                     \
        IRIS_D_FAR_WRITE(dev, to_ptr, to_rank, iris_d_bits_##name(value),          \
                     sizeof(c_type), *(c_type *)to = value);                   \
        IRIS_D_HOOK(iris_d_watched(dev, to_rank),                              \
                    (IRIS_D_FAR_SEND(dev, to_ptr, to, to_rank,                 \
                                     sizeof(c_type)),                          \
                     IRIS_D_CALL(after_both, dev,                              \
                                 iris_d_bits_##name(value))));                 \
    }                                                                          \
    IRIS_DEVICE void iris_put_masked_##name(                                   \
        iris_dev_t dev, const c_type *from_ptr, c_type *to_ptr, int to_rank,   \
        iris_bool_t mask)                                                      \
    {                                                                          \
        if (mask) {                                                            \
            iris_put_##name(dev, from_ptr, to_ptr, to_rank);                   \
        }                                                                      \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/** iris_copy: copies the element that from_rank keeps at `src_ptr` to where
 *  to_rank keeps `dst_ptr`; both are translated, and neither rank need be the
 *  caller's. For f32:
 *      void iris_copy_f32(iris_dev_t dev, const float *src_ptr, float *dst_ptr,
 *                         int from_rank, int to_rank);
 *      void iris_copy_masked_f32(iris_dev_t dev, const float *src_ptr,
 *                                float *dst_ptr, int from_rank, int to_rank,
 *                                iris_bool_t mask); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_copy_##name(iris_dev_t dev, const c_type *src_ptr,   \
                                      c_type *dst_ptr, int from_rank,          \
                                      int to_rank)                             \
    {                                                                          \
        void *to = iris_d_translate(dev, dst_ptr, to_rank);                    \
        const void *from = iris_d_translate(dev, src_ptr, from_rank);          \
        c_type value;                                                          \
        IRIS_D_HOOK(iris_d_watched2(dev, from_rank, to_rank),                  \
                    (IRIS_D_CALL(before_both, dev, src_ptr, from_rank,         \
                                 dst_ptr, to_rank,                             \
                                 IRIS_D_PLAIN(COPY, sizeof(c_type))),          \
                     IRIS_D_FAR_FROM(dev, src_ptr, from, from_rank,            \
                                     sizeof(c_type)),                          \
                     IRIS_D_FAR_TO(dev, dst_ptr, to)));                        \
        value = IRIS_D_FAR_READ(name, dev, src_ptr, from_rank,                     \
                            *(const c_type *)from);                            \
        IRIS_D_FAR_WRITE(dev, dst_ptr, to_rank, iris_d_bits_##name(value),         \
                     sizeof(c_type), *(c_type *)to = value);                   \
        IRIS_D_HOOK(iris_d_watched2(dev, from_rank, to_rank),                  \
                    (IRIS_D_FAR_SEND(dev, dst_ptr, to, to_rank,                \
                                     sizeof(c_type)),                          \
                     IRIS_D_CALL(after_both, dev,                              \
                                 iris_d_bits_##name(value))));                 \
    }                                                                          \
    IRIS_DEVICE void iris_copy_masked_##name(                                  \
        iris_dev_t dev, const c_type *src_ptr, c_type *dst_ptr, int from_rank, \
        int to_rank, iris_bool_t mask)                                         \
    {                                                                          \
        if (mask) {                                                            \
            iris_copy_##name(dev, src_ptr, dst_ptr, from_rank, to_rank);       \
        }                                                                      \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/** iris_load_volatile, iris_store_volatile: one real access each time, past
 *  every cache that is not coherent with other ranks, never torn and never
 *  merged with another; as an atomic, IRIS_RELAXED at IRIS_SCOPE_SYSTEM. It
 *  does not order anything else: to wait for data use iris_wait_until().
 *  For f32:
 *      float iris_load_volatile_f32(iris_dev_t dev, const float *ptr,
 *                                   int from_rank);
 *      void iris_store_volatile_f32(iris_dev_t dev, float *ptr, float value,
 *                                   int to_rank); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_load_volatile_##name(                              \
        iris_dev_t dev, const c_type *ptr, int from_rank)                      \
    {                                                                          \
        const void *from = iris_d_translate(dev, ptr, from_rank);              \
        uint64_t bits;                                                         \
        IRIS_D_BEFORE_LOAD(dev, ptr, from_rank, sizeof(c_type), VOLATILE); \
        bits = IRIS_D_FAR_READ_BITS(                                               \
            dev, ptr, from_rank, sizeof(c_type),                               \
            iris_d_load(from, sizeof(c_type),                                  \
                        iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM)));       \
        IRIS_D_AFTER_LOAD(dev, from_rank, bits);                               \
        return iris_d_value_##name(bits);                                      \
    }                                                                          \
    IRIS_DEVICE void iris_store_volatile_##name(                               \
        iris_dev_t dev, c_type *ptr, c_type value, int to_rank)                \
    {                                                                          \
        void *to = iris_d_translate(dev, ptr, to_rank);                        \
        uint64_t bits = iris_d_bits_##name(value);                             \
        IRIS_D_BEFORE_STORE(dev, ptr, to_rank, sizeof(c_type), bits, VOLATILE); \
        IRIS_D_FAR_WRITE(dev, ptr, to_rank, bits, sizeof(c_type),                  \
                     iris_d_store(to, sizeof(c_type), bits,                    \
                                  iris_d_order(IRIS_RELAXED,                   \
                                               IRIS_SCOPE_SYSTEM)));           \
        IRIS_D_AFTER_STORE(dev, ptr, to_rank, sizeof(c_type));                                 \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/** iris_load_hint, iris_store_hint: iris_load and iris_store that say to the
 *  caches what to expect (iris_cache_t). A hint changes speed, never a value or
 *  an order; the CPU ignores it. For f32:
 *      float iris_load_hint_f32(iris_dev_t dev, const float *ptr,
 *                               int from_rank, iris_cache_t hint);
 *      void iris_store_hint_f32(iris_dev_t dev, float *ptr, float value,
 *                               int to_rank, iris_cache_t hint); */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_load_hint_##name(                                  \
        iris_dev_t dev, const c_type *ptr, int from_rank, iris_cache_t hint)   \
    {                                                                          \
        const void *from = iris_d_translate(dev, ptr, from_rank);              \
        uint64_t bits;                                                         \
        IRIS_D_BEFORE_LOAD(dev, ptr, from_rank, sizeof(c_type), PLAIN); \
        bits = IRIS_D_FAR_READ_BITS(dev, ptr, from_rank, sizeof(c_type),           \
                                iris_d_load_hint(from, sizeof(c_type), hint)); \
        IRIS_D_AFTER_LOAD(dev, from_rank, bits);                               \
        return iris_d_value_##name(bits);                                      \
    }                                                                          \
    IRIS_DEVICE void iris_store_hint_##name(                                   \
        iris_dev_t dev, c_type *ptr, c_type value, int to_rank,                \
        iris_cache_t hint)                                                     \
    {                                                                          \
        void *to = iris_d_translate(dev, ptr, to_rank);                        \
        uint64_t bits = iris_d_bits_##name(value);                             \
        IRIS_D_BEFORE_STORE(dev, ptr, to_rank, sizeof(c_type), bits, PLAIN); \
        IRIS_D_FAR_WRITE(dev, ptr, to_rank, bits, sizeof(c_type),                  \
                     iris_d_store_hint(to, sizeof(c_type), bits, hint));       \
        IRIS_D_AFTER_STORE(dev, ptr, to_rank, sizeof(c_type));                                 \
    }
IRIS_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW
/* clang-format on */

/** Four words that one access moves, aligned to 16 bytes. */
typedef struct __attribute__((aligned(16), may_alias)) iris_quad {
    uint32_t words[4];
} iris_quad_t;

/** The 16 bytes that from_rank keeps at `ptr`, of elements of any type, aligned
 *  to 16. */
IRIS_DEVICE iris_quad_t iris_load_quad(iris_dev_t dev, const void *ptr,
                                       int from_rank)
{
    const void *from = iris_d_translate(dev, ptr, from_rank);
    iris_quad_t value;

    IRIS_D_BEFORE_LOAD(dev, ptr, from_rank, sizeof value, PLAIN);
    IRIS_D_FAR_READ_QUAD(value, dev, ptr, from_rank,
                         *(const iris_quad_t *)from);
    IRIS_D_AFTER_LOAD(dev, from_rank, 0);
    return value;
}

/** Sets the 16 bytes that to_rank keeps at `ptr`, aligned to 16. */
IRIS_DEVICE void iris_store_quad(iris_dev_t dev, void *ptr, iris_quad_t value,
                                 int to_rank)
{
    void *to = iris_d_translate(dev, ptr, to_rank);

    IRIS_D_BEFORE_STORE(dev, ptr, to_rank, sizeof value, 0, PLAIN);
    IRIS_D_FAR_WRITE_QUAD(value, dev, ptr, to_rank, *(iris_quad_t *)to = value);
    IRIS_D_AFTER_STORE(dev, ptr, to_rank, sizeof value);
}

#undef IRIS_D_PLAIN
#undef IRIS_D_VOLATILE
#undef IRIS_D_BEFORE_LOAD
#undef IRIS_D_AFTER_LOAD
#undef IRIS_D_BEFORE_STORE
#undef IRIS_D_AFTER_STORE

#endif /* IRIS_DEVICE_RMA_H */
