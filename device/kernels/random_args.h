/* SPDX-License-Identifier: MIT
 *
 * What the kernels of random.h take, for the host, too.
 */
#ifndef IRIS_DEVICE_KERNELS_RANDOM_ARGS_H
#define IRIS_DEVICE_KERNELS_RANDOM_ARGS_H

#include <stdint.h>

#define IRIS_RANDOM_DIMS_MAX 9 /* a tensor's, and the parts of complex ones */

/* `count` numbers at `data`, of which Philox makes `per_block` (of the kernel)
 * out of each block of its counter, from `offset` on: number i comes of block
 * offset + i / per_block, whichever workgroup or lane makes it. */
struct iris_random_args {
    void *data;
    uint64_t count;
    int32_t ndim; /* 0: dense; else number i, counted with the last dimension
                   * fastest, is where the strides say */
    int32_t half; /* normal numbers: variance 1/2, not 1 */
    int64_t sizes[IRIS_RANDOM_DIMS_MAX];
    int64_t strides[IRIS_RANDOM_DIMS_MAX];
    uint64_t seed;     /* Philox's key */
    uint64_t sequence; /* the upper half of its counter, */
    uint64_t offset;   /* and of the first block the lower half */
    uint64_t low;      /* integers: the least one */
    uint64_t range;    /* how many there are, from 1 */
    uint64_t bias;     /* 2^32 or, of wide ones, 2^64, modulo that */
};

#endif /* IRIS_DEVICE_KERNELS_RANDOM_ARGS_H */
