/* SPDX-License-Identifier: MIT
 *
 * The rates of a machine, from which fused operations are planned.
 */
#ifndef IRIS_SRC_OPS_OPS_RATES_H
#define IRIS_SRC_OPS_OPS_RATES_H

#include "ccl/tuning.h"
#include "context/context_type.h"

/* f32, f16, bf16 */
#define IRIS_OPS_RATE_TYPES 3
#define IRIS_OPS_RATE_POINTS 16

/* Rates of products of one type by size, the smallest first. */
struct iris_ops_curve {
    int count;
    struct {
        double size; /* operations, 2 M N K */
        double rate; /* TFLOP/s */
    } points[IRIS_OPS_RATE_POINTS];
};

struct iris_ops_rates {
    const char *source;         /* for people */
    double at[IRIS_RATE_KINDS]; /* in the unit of IRIS_RATE_ROWS */
    int64_t block;              /* rows that a product computes at once */
    double enqueue_us;          /* time of the host to enqueue a chunk */
    struct iris_ops_curve product[IRIS_OPS_RATE_TYPES];
};

/* The index of a type's curve. */
int iris_i_ops_rate_type(iris_dtype_t dtype);

/* Reads the tuning file, unless it has been read. */
iris_status_t iris_i_ops_read_rates(iris_t *iris);

/* The rates of the file, completed by the library's own for this kind of
 * device. The same on all ranks with devices of one kind. */
struct iris_ops_rates iris_i_ops_rates(const iris_t *iris);

/* The library's own rates for a device of that name. */
struct iris_ops_rates iris_i_ops_default_rates(const char *device, int on_gpu);

/* Overwrites rates with a file's. */
void iris_i_ops_apply_rates(const struct iris_ccl_tuning *tuning, int on_gpu,
                            struct iris_ops_rates *rates);

#endif /* IRIS_SRC_OPS_OPS_RATES_H */
