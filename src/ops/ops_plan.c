/* SPDX-License-Identifier: MIT
 *
 * How a call of a fused operation is done: in how many chunks.
 */
#include "config.h"

#include "ops/ops_plan.h"

#include "context/context_type.h"

/* What is worth it where nobody asks. On a CPU a collective is 0 to 5 % of the
 * time, on the cores of the product; and products and copies of ranks that share
 * a GPU wait for each other anyway. */
static int worth(const iris_t *iris, const struct iris_ops_size *size)
{
    (void)iris;
    (void)size;
    return 1;
}

struct iris_ops_plan
iris_i_ops_plan(const iris_t *iris, const struct iris_ops_size *size, int asked)
{
    struct iris_ops_plan plan = {asked};

    if (plan.chunks == 0) {
        plan.chunks = (int)iris_i_settings(iris)->ops_chunks.number;
    }
    if (plan.chunks == 0) {
        plan.chunks = worth(iris, size);
    }
    if (size->members == 1) {
        plan.chunks = 1;
    }
    if (plan.chunks > size->rows) {
        plan.chunks = (int)size->rows;
    }
    return plan;
}
