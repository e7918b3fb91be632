/* SPDX-License-Identifier: MIT
 *
 * How a call of a fused operation is done: in how many chunks.
 */
#include "config.h"

#include "ops/ops_plan.h"

#include "context/context_type.h"
#include "ops/blas.h"

/* Workgroups of a GPU for sums, which the products leave. */
#define SUM_WORKGROUPS 16

/* What is worth it where nobody asks. On a CPU a collective is 0 to 5 % of the
 * time, on the cores of the product; and products and copies of ranks that share
 * a GPU wait for each other anyway. */
static int worth(const iris_t *iris, const struct iris_ops_size *size)
{
    (void)iris;
    (void)size;
    return 1;
}

/* Whether parts of a product by rows have the bits of the whole: a CPU library's
 * have not. */
static int may_part(iris_t *iris, int *may_p)
{
    const struct iris_blas *blas;
    void *state;
    iris_status_t status = iris_i_ops_blas(iris, &blas, &state);

    *may_p = status == IRIS_OK && (blas == NULL || blas->on_gpu);
    return status;
}

iris_status_t iris_i_ops_plan(iris_t *iris, const struct iris_ops_size *size,
                              int asked, struct iris_ops_plan *plan_p)
{
    int chunks = asked, may = 1;
    int most = iris_i_device(iris)->num_cus;
    iris_status_t status = IRIS_OK;

    if (chunks == 0) {
        chunks = (int)iris_i_settings(iris)->ops_chunks.number;
    }
    if (chunks == 0) {
        chunks = worth(iris, size);
    }
    if (chunks > size->rows) {
        chunks = (int)size->rows;
    }
    if (chunks > 1 && size->members > 1) {
        status = may_part(iris, &may);
    }
    plan_p->chunks = size->members == 1 || !may ? 1 : chunks;
    plan_p->copies = plan_p->chunks > 1;
    plan_p->workgroups = most < SUM_WORKGROUPS ? 1 : SUM_WORKGROUPS;
    return status;
}
