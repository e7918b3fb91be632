/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/heap: the symmetric heap; it knows no groups, and
 * no stream but its own.
 */
#ifndef IRIS_SRC_HEAP_INTERNAL_H
#define IRIS_SRC_HEAP_INTERNAL_H

#include "heap/heap.h"

#include <pthread.h>
#include <stdint.h>

/* ---- Alloc record ---- */

/* The allocator's own records and size classes. */

/* Each size below ROW_CLASSES units has its own class. Above, every power of
 * two is a row of ROW_CLASSES classes, so a class spans at most 1/64 of its
 * sizes. */
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

/* A block of the heap, free or live. Records name each other by index, so that
 * the array can move. Record 0 is no block. It closes the ring of blocks in
 * address order, its `start` is the end of the heap, and as a link in a list it
 * marks the end. A record has 24 bytes. So even a live block with a free block
 * on both sides costs less than 64 bytes, including the slack of a table that
 * grows by a quarter. */
struct record {
    uint32_t start;          /* in units */
    uint32_t next;           /* neighbour in address order */
    uint32_t prev : 31;      /* neighbour in address order */
    uint32_t is_free : 1;    /* free block or spare record; 0 in record 0 */
    uint32_t list_next;      /* neighbours in its class if free, in its
                              * bucket if live, */
    uint32_t list_prev : 30; /* or (next only) in the list of spare records */
    uint32_t mark : 2;       /* the user's mark of a live block */
    uint32_t bucket_first;   /* a slot of the hash table from start to live
                              * record; unrelated to this record */
};

_Static_assert(sizeof(struct record) == 24, "the metadata bound counts on 24");

struct iris_alloc {
    pthread_mutex_t lock; /* protects readers of figures from changes */
    struct record *records;
    uint32_t capacity;   /* number of records, and of buckets */
    uint32_t touched;    /* records below this index have been used */
    uint32_t spare;      /* first used record without a block */
    uint32_t in_use;     /* records with a block, and record 0 */
    uint32_t units;      /* of the heap */
    uint32_t used_units; /* units in live blocks */
    uint32_t peak_units;
    uint32_t num_live;
    /* To undo the latest take: the free block before the taken one in the list
     * of its class (0: it was the first), and the peak. */
    uint32_t undo_before;
    uint32_t undo_peak_units;
    unsigned unit_shift;           /* a unit is 1 << unit_shift bytes */
    uint32_t row_map;              /* bit r: row_maps[r] is not 0 */
    uint64_t row_maps[ROWS];       /* bit c: class c of the row has a block */
    uint32_t class_first[CLASSES]; /* lists of free blocks, latest first */
};

static inline uint32_t block_units(const struct iris_alloc *alloc,
                                   uint32_t index)
{
    const struct record *record = &alloc->records[index];

    return alloc->records[record->next].start - record->start;
}

static inline size_t to_bytes(const struct iris_alloc *alloc, uint32_t units)
{
    return (size_t)units << alloc->unit_shift;
}

/* The first class at or above `class` that has a block, or CLASSES. */
static inline unsigned next_class(const struct iris_alloc *alloc,
                                  unsigned class)
{
    unsigned row = class / ROW_CLASSES;
    uint64_t classes, rows;

    if (class >= CLASSES) {
        return CLASSES;
    }
    classes = alloc->row_maps[row] & (UINT64_MAX << class % ROW_CLASSES);
    if (classes == 0) {
        rows = alloc->row_map & (UINT64_MAX << (row + 1));
        if (rows == 0) {
            return CLASSES;
        }
        row = top_bit(rows & -rows); /* the lowest bit set */
        classes = alloc->row_maps[row];
    }
    return row * ROW_CLASSES + top_bit(classes & -classes);
}

#endif /* IRIS_SRC_HEAP_INTERNAL_H */
