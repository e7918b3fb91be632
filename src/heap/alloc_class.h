/* SPDX-License-Identifier: MIT
 *
 * The allocator's size classes: which class holds blocks of a size.
 */
#ifndef IRIS_SRC_HEAP_ALLOC_CLASS_H
#define IRIS_SRC_HEAP_ALLOC_CLASS_H

#include <stdint.h>

/* Sizes below ROW_CLASSES units have a class each; above, every power of two is
 * a row of ROW_CLASSES classes, so a class spans at most 1/64 of its sizes. */
#define ROW_BITS 6
#define ROW_CLASSES (1u << ROW_BITS)
#define ROWS (32 - ROW_BITS + 1)
#define CLASSES (ROWS * ROW_CLASSES)

/* Index of the highest bit set; `value` is not 0. */
static inline unsigned top_bit(uint64_t value)
{
    unsigned bit = 0;

    for (unsigned step = 32; step > 0; step /= 2) {
        if (value >> step) {
            value >>= step;
            bit += step;
        }
    }
    return bit;
}

/* The class that holds blocks of `size` units. Classes rise with size. */
static inline unsigned class_of(uint32_t size)
{
    unsigned shift;

    if (size < ROW_CLASSES) {
        return size;
    }
    shift = top_bit(size) - ROW_BITS;
    return shift * ROW_CLASSES + (size >> shift);
}

#endif /* IRIS_SRC_HEAP_ALLOC_CLASS_H */
