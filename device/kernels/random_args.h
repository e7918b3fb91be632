/* SPDX-License-Identifier: MIT
 *
 * The arguments of the kernels of random.h. The host shares this header.
 */
#ifndef IRIS_DEVICE_KERNELS_RANDOM_ARGS_H
#define IRIS_DEVICE_KERNELS_RANDOM_ARGS_H

#include <stdint.h>

#define IRIS_RANDOM_DIMS_MAX \
    9 /* a tensor's dimensions, and the parts of
                                * complex numbers */

/* `count` numbers at `data`. Philox makes `per_block` of them (a constant of
 * the kernel) from each block of its counter, from `offset` on. Number i comes
 * from block offset + i / per_block, whichever workgroup or lane makes it. */
struct iris_random_args {
    void *data;
    uint64_t count;
    int32_t ndim; /* 0: contiguous; else the strides give the place of number
                   * i, counted with the last dimension fastest */
    int32_t half; /* normal numbers: variance 1/2, not 1 */
    int64_t sizes[IRIS_RANDOM_DIMS_MAX];
    int64_t strides[IRIS_RANDOM_DIMS_MAX];
    uint64_t seed;     /* Philox's key */
    uint64_t sequence; /* the upper half of its counter, */
    uint64_t offset;   /* the lower half of its counter for the first block */
    uint64_t low;      /* integers: the minimum */
    uint64_t range;    /* number of different integers, from 1 */
    uint64_t bias;     /* 2^32 (for wide ranges 2^64) modulo `range` */
};

#endif /* IRIS_DEVICE_KERNELS_RANDOM_ARGS_H */
