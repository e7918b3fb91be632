/* SPDX-License-Identifier: MIT
 *
 * Arrays that grow by one element at a time.
 */
#ifndef IRIS_SRC_BASE_GROW_H
#define IRIS_SRC_BASE_GROW_H

#include <stdlib.h>

/* The array with space for one more element after `count` elements of `size`
 * bytes. The array must only grow by this function. NULL: no memory, and the
 * array is unchanged. */
static inline void *iris_i_grow(void *array, size_t count, size_t size)
{
    /* There is space up to the next power of two. */
    if ((count & (count - 1)) != 0) {
        return array;
    }
    return realloc(array, (count == 0 ? 1 : 2 * count) * size);
}

#endif /* IRIS_SRC_BASE_GROW_H */
