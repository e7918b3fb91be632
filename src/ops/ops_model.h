/* SPDX-License-Identifier: MIT
 *
 * How long a fused operation takes in some number of chunks, by the rates of the
 * machine.
 */
#ifndef IRIS_SRC_OPS_OPS_MODEL_H
#define IRIS_SRC_OPS_OPS_MODEL_H

#include "ops/ops_plan.h"
#include "ops/ops_rates.h"

/* Chunks are for a call that is expected to take less than this share of the
 * time of the product and the collective one after the other. */
#define IRIS_OPS_WORTH 0.97

struct iris_ops_times {
    double product_us;                   /* the whole product alone */
    double collective_us;                /* the collective alone */
    double us[IRIS_OPS_CHUNKS_MOST + 1]; /* us[n]: in n chunks; us[1]: one after
                                            the other */
    int most;                            /* chunks that there can be */
    int best;                            /* chunks to take */
};

/* A pure function: ranks that have the same rates come to the same. */
struct iris_ops_times iris_i_ops_expect(const struct iris_ops_rates *rates,
                                        const struct iris_ops_size *size);

#endif /* IRIS_SRC_OPS_OPS_MODEL_H */
