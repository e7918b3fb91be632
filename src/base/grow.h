/* SPDX-License-Identifier: MIT
 *
 * Arrays that grow by one element at a time.
 */
#ifndef IRIS_SRC_BASE_GROW_H
#define IRIS_SRC_BASE_GROW_H

#include <stdlib.h>

/* The array with space for one more than `count` elements of `size` bytes, if
 * it has only ever grown by this; NULL: no memory, and it is as it was. */
static inline void *iris_i_grow(void *array, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0) { /* there is space to the next power */
        return array;
    }
    return realloc(array, (count == 0 ? 1 : 2 * count) * size);
}

#endif /* IRIS_SRC_BASE_GROW_H */
