/* SPDX-License-Identifier: MIT
 *
 * Predicts the time of a fused operation in some number of chunks, from the
 * rates of the machine.
 */
#ifndef IRIS_SRC_OPS_OPS_MODEL_H
#define IRIS_SRC_OPS_OPS_MODEL_H

#include "ops/ops_plan.h"
#include "ops/ops_rates.h"

/* Chunks are used if the predicted time is less than this fraction of the time
 * of the product and the collective one after the other. */
#define IRIS_OPS_WORTH 0.97

struct iris_ops_times {
    double product_us;                   /* the whole product alone */
    double collective_us;                /* the collective alone */
    double us[IRIS_OPS_CHUNKS_MOST + 1]; /* us[n]: time in n chunks; us[1]:
                                          * one after the other */
    int most;                            /* largest possible number of chunks */
    int best;                            /* best number of chunks */
};

/* A pure function: ranks with the same rates get the same result. */
struct iris_ops_times iris_i_ops_expect(const struct iris_ops_rates *rates,
                                        const struct iris_ops_size *size);

#endif /* IRIS_SRC_OPS_OPS_MODEL_H */
