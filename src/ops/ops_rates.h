/* SPDX-License-Identifier: MIT
 *
 * The rates of a machine by which fused operations are planned.
 */
#ifndef IRIS_SRC_OPS_OPS_RATES_H
#define IRIS_SRC_OPS_OPS_RATES_H

#include "ccl/tuning.h"
#include "context/context_type.h"

/* f32, f16, bf16 */
#define IRIS_OPS_RATE_TYPES 3
#define IRIS_OPS_RATE_POINTS 16

/* Products of one type by size, the smallest first. */
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
    double enqueue_us;          /* of the host, for a chunk */
    struct iris_ops_curve product[IRIS_OPS_RATE_TYPES];
};

/* Which curve a type has. */
int iris_i_ops_rate_type(iris_dtype_t dtype);

/* Reads the tuning file, if that has not been read. */
iris_status_t iris_i_ops_read_rates(iris_t *iris);

/* The rates of the file that was read where it has some, and the library's own
 * of this kind of device. The same on all ranks whose devices are of one kind. */
struct iris_ops_rates iris_i_ops_rates(const iris_t *iris);

/* The library's own for a device of that name. */
struct iris_ops_rates iris_i_ops_default_rates(const char *device, int on_gpu);

/* Puts a file's rates in place of others. */
void iris_i_ops_apply_rates(const struct iris_ccl_tuning *tuning, int on_gpu,
                            struct iris_ops_rates *rates);

#endif /* IRIS_SRC_OPS_OPS_RATES_H */
