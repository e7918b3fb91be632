/* SPDX-License-Identifier: MIT
 *
 * The arguments of the kernels of fill.h. The host shares this header.
 */
#ifndef IRIS_DEVICE_KERNELS_FILL_ARGS_H
#define IRIS_DEVICE_KERNELS_FILL_ARGS_H

#include <stdint.h>

/* ---- Contiguous: one value ---- */

/* `pattern` is the element repeated from the first byte on. `data` is aligned
 * to the element's size, or to 8. */
struct iris_fill_args {
    void *data;
    uint64_t bytes;
    uint64_t pattern[2];
};

/* ---- Any strides ---- */

#define IRIS_D_DIMS_MAX 8

/* Elements of `width` bytes (1, 2, 4, 8 or 16) with strides in elements. */
struct iris_d_shape {
    int64_t sizes[IRIS_D_DIMS_MAX];
    int32_t ndim;
    int32_t width;
    uint64_t count; /* the product of sizes */
};

struct iris_fill_strided_args {
    void *data;
    struct iris_d_shape shape;
    int64_t strides[IRIS_D_DIMS_MAX];
    uint64_t element[2];
};

struct iris_copy_strided_args {
    void *to;
    const void *from;
    struct iris_d_shape shape;
    int64_t to_strides[IRIS_D_DIMS_MAX];
    int64_t from_strides[IRIS_D_DIMS_MAX];
};

/* ---- Numbers in a row ---- */

struct iris_row_args {
    void *data;
    int64_t count;
    int64_t stride;
    uint64_t whole_start; /* arange of integers, which wrap around */
    uint64_t whole_step;
    double start; /* all others */
    double step;
    double end; /* linspace */
};

#endif /* IRIS_DEVICE_KERNELS_FILL_ARGS_H */
