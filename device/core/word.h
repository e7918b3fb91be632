/* SPDX-License-Identifier: MIT
 *
 * The atomics of atomic.h by size, on 64-bit values, and the 1 and 2 byte
 * updates that GPUs do not have.
 */
#ifndef IRIS_DEVICE_WORD_H
#define IRIS_DEVICE_WORD_H

#include <iris/device/core/atomic.h>

/* Smallest word, in bytes, that iris_d_fetch() can update. GPUs have no 1 and 2
 * byte updates; iris_d_cas() builds them from the surrounding 32-bit word. */
#if IRIS_ON_CPU
#define IRIS_D_FETCH_MIN_BYTES 1
#else
#define IRIS_D_FETCH_MIN_BYTES 4

/* `bits` is 8 or 16. The word changes only if the expected bits are there. A
 * failed comparison writes the word back unchanged and so keeps the order.
 *
 * The update of the word always has system scope. The bytes beside the element
 * may belong to another lane, even of another rank. An update of the word at a
 * narrower scope than theirs could undo their writes. */
IRIS_DEVICE uint32_t iris_d_cas_in_word(void *ptr, uint32_t bits,
                                        uint32_t expected, uint32_t desired,
                                        iris_d_order_t how)
{
    uintptr_t address = (uintptr_t)ptr;
    uint32_t shift = (uint32_t)(address & 3) * 8;
    uint32_t mask = (bits == 8 ? 0xffu : 0xffffu) << shift;
    iris_d_u32_t *word = (iris_d_u32_t *)((char *)ptr - (address & 3));
    uint32_t seen =
        iris_d_load_u32(word, iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM));

    how.scope = IRIS_SCOPE_SYSTEM;
    how = iris_d_released(how); /* release once, not in every round */
    for (;;) {
        uint32_t before = seen;
        uint32_t after = before;

        if ((before & mask) == expected << shift) {
            after = (before & ~mask) | desired << shift;
        }
        seen = iris_d_cas_u32(word, before, after, how);
        if (seen == before) {
            return (before & mask) >> shift;
        }
    }
}

IRIS_DEVICE uint8_t iris_d_cas_u8(iris_d_u8_t *p, uint8_t expected,
                                  uint8_t desired, iris_d_order_t how)
{
    return (uint8_t)iris_d_cas_in_word(p, 8, expected, desired, how);
}

IRIS_DEVICE uint16_t iris_d_cas_u16(iris_d_u16_t *p, uint16_t expected,
                                    uint16_t desired, iris_d_order_t how)
{
    return (uint16_t)iris_d_cas_in_word(p, 16, expected, desired, how);
}
#endif

/* For all below, `bytes` is 1, 2, 4 or 8 and the address is a multiple of it.
 * Values are the low bytes of 64-bit words, the rest zero. */

IRIS_DEVICE uint64_t iris_d_load(const void *ptr, size_t bytes,
                                 iris_d_order_t how)
{
    switch (bytes) {
    case 1:
        return iris_d_load_u8((iris_d_u8_t *)ptr, how);
    case 2:
        return iris_d_load_u16((iris_d_u16_t *)ptr, how);
    case 4:
        return iris_d_load_u32((iris_d_u32_t *)ptr, how);
    default:
        return iris_d_load_u64((iris_d_u64_t *)ptr, how);
    }
}

IRIS_DEVICE void iris_d_store(void *ptr, size_t bytes, uint64_t value,
                              iris_d_order_t how)
{
    switch (bytes) {
    case 1:
        iris_d_store_u8((iris_d_u8_t *)ptr, (uint8_t)value, how);
        break;
    case 2:
        iris_d_store_u16((iris_d_u16_t *)ptr, (uint16_t)value, how);
        break;
    case 4:
        iris_d_store_u32((iris_d_u32_t *)ptr, (uint32_t)value, how);
        break;
    default:
        iris_d_store_u64((iris_d_u64_t *)ptr, value, how);
        break;
    }
}

IRIS_DEVICE uint64_t iris_d_cas(void *ptr, size_t bytes, uint64_t expected,
                                uint64_t desired, iris_d_order_t how)
{
    switch (bytes) {
    case 1:
        return iris_d_cas_u8((iris_d_u8_t *)ptr, (uint8_t)expected,
                             (uint8_t)desired, how);
    case 2:
        return iris_d_cas_u16((iris_d_u16_t *)ptr, (uint16_t)expected,
                              (uint16_t)desired, how);
    case 4:
        return iris_d_cas_u32((iris_d_u32_t *)ptr, (uint32_t)expected,
                              (uint32_t)desired, how);
    default:
        return iris_d_cas_u64((iris_d_u64_t *)ptr, expected, desired, how);
    }
}

/* The operations of iris_d_fetch(). */
enum iris_d_fetch {
    IRIS_D_FETCH_XCHG,
    IRIS_D_FETCH_ADD,
    IRIS_D_FETCH_AND,
    IRIS_D_FETCH_OR,
    IRIS_D_FETCH_XOR,
    IRIS_D_FETCH_UMIN, /* from here on: GPUs only */
    IRIS_D_FETCH_UMAX,
    IRIS_D_FETCH_SMIN,
    IRIS_D_FETCH_SMAX,
};

/* clang-format off */
#if IRIS_ON_CPU
#define IRIS_D_FETCH_OTHER(bits, op, p, value, how)                            \
    iris_d_xor_u##bits(p, value, how)
#else
#define IRIS_D_FETCH_OTHER(bits, op, p, value, how)                            \
    (op == IRIS_D_FETCH_XOR    ? iris_d_xor_u##bits(p, value, how)             \
     : op == IRIS_D_FETCH_UMIN ? iris_d_umin_u##bits(p, value, how)            \
     : op == IRIS_D_FETCH_UMAX ? iris_d_umax_u##bits(p, value, how)            \
     : op == IRIS_D_FETCH_SMIN ? iris_d_smin_u##bits(p, value, how)            \
                               : iris_d_smax_u##bits(p, value, how))
#endif
#define IRIS_D_FETCHES(bits)                                                   \
    IRIS_DEVICE uint64_t iris_d_fetch_u##bits(void *ptr, enum iris_d_fetch op, \
                                              uint##bits##_t value,            \
                                              iris_d_order_t how)              \
    {                                                                          \
        iris_d_u##bits##_t *p = (iris_d_u##bits##_t *)ptr;                     \
        return op == IRIS_D_FETCH_XCHG  ? iris_d_xchg_u##bits(p, value, how)   \
               : op == IRIS_D_FETCH_ADD ? iris_d_add_u##bits(p, value, how)    \
               : op == IRIS_D_FETCH_AND ? iris_d_and_u##bits(p, value, how)    \
               : op == IRIS_D_FETCH_OR  ? iris_d_or_u##bits(p, value, how)     \
                                        : IRIS_D_FETCH_OTHER(bits, op, p,      \
                                                             value, how);      \
    }
/* clang-format on */

IRIS_D_FETCHES(32)
IRIS_D_FETCHES(64)
#if IRIS_ON_CPU
IRIS_D_FETCHES(8)
IRIS_D_FETCHES(16)
#endif
#undef IRIS_D_FETCHES
#undef IRIS_D_FETCH_OTHER

/* `bytes` is at least IRIS_D_FETCH_MIN_BYTES. */
IRIS_DEVICE uint64_t iris_d_fetch(void *ptr, size_t bytes, enum iris_d_fetch op,
                                  uint64_t value, iris_d_order_t how)
{
#if IRIS_ON_CPU
    if (bytes == 1) {
        return iris_d_fetch_u8(ptr, op, (uint8_t)value, how);
    }
    if (bytes == 2) {
        return iris_d_fetch_u16(ptr, op, (uint16_t)value, how);
    }
#endif
    if (bytes == 4) {
        return iris_d_fetch_u32(ptr, op, (uint32_t)value, how);
    }
    return iris_d_fetch_u64(ptr, op, value, how);
}

/* Plain accesses with a cache hint. */
IRIS_DEVICE uint64_t iris_d_load_hint(const void *ptr, size_t bytes,
                                      iris_cache_t hint)
{
    switch (bytes) {
    case 1:
        return IRIS_D_HINTED_LOAD((const iris_d_u8_t *)ptr, hint);
    case 2:
        return IRIS_D_HINTED_LOAD((const iris_d_u16_t *)ptr, hint);
    case 4:
        return IRIS_D_HINTED_LOAD((const iris_d_u32_t *)ptr, hint);
    default:
        return IRIS_D_HINTED_LOAD((const iris_d_u64_t *)ptr, hint);
    }
}

IRIS_DEVICE void iris_d_store_hint(void *ptr, size_t bytes, uint64_t value,
                                   iris_cache_t hint)
{
    switch (bytes) {
    case 1:
        IRIS_D_HINTED_STORE((iris_d_u8_t *)ptr, (uint8_t)value, hint);
        break;
    case 2:
        IRIS_D_HINTED_STORE((iris_d_u16_t *)ptr, (uint16_t)value, hint);
        break;
    case 4:
        IRIS_D_HINTED_STORE((iris_d_u32_t *)ptr, (uint32_t)value, hint);
        break;
    default:
        IRIS_D_HINTED_STORE((iris_d_u64_t *)ptr, value, hint);
        break;
    }
}

#undef IRIS_D_HINTED_LOAD
#undef IRIS_D_HINTED_STORE

#endif /* IRIS_DEVICE_WORD_H */
