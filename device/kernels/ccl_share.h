/* SPDX-License-Identifier: MIT
 *
 * How the members of a group divide a buffer, or the rows of a matrix.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_SHARE_H
#define IRIS_DEVICE_KERNELS_CCL_SHARE_H

#include <iris/device/core/compat.h>

/* Member i's share of this number of bytes. Shares are equal, in units of 16
 * bytes; the last ones may be shorter or empty. */
typedef struct iris_d_ccl_share {
    size_t begin;
    size_t bytes;
} iris_d_ccl_share_t;

IRIS_DEVICE iris_d_ccl_share_t iris_d_ccl_share(uint32_t i, uint32_t count,
                                                size_t bytes)
{
    size_t each = ((bytes + count - 1) / count + 15) / 16 * 16;
    iris_d_ccl_share_t share = {i * each, 0};

    if (share.begin < bytes) {
        share.bytes = bytes - share.begin < each ? bytes - share.begin : each;
    }
    return share;
}

/* Some rows of a matrix: `count` of them, `step` apart. */
typedef struct iris_d_ccl_rows {
    size_t first;
    size_t step;
    size_t count;
} iris_d_ccl_rows_t;

/* Member i's: every count-th row or, without striding, the i-th block. The
 * first blocks have the extra rows. */
IRIS_DEVICE iris_d_ccl_rows_t iris_d_ccl_rows_of(size_t i, size_t count,
                                                 size_t rows,
                                                 iris_bool_t striding)
{
    size_t each = rows / count, extra = rows % count;
    iris_d_ccl_rows_t own = {i, count, each + (i < extra)};

    if (!striding) {
        own.first = i * each + (i < extra ? i : extra);
        own.step = 1;
    }
    return own;
}

#endif /* IRIS_DEVICE_KERNELS_CCL_SHARE_H */
