/* SPDX-License-Identifier: MIT
 *
 * Plans a call of a fused operation: the number of chunks.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>

#include "context/context.h"

/* Workgroups of a GPU for the collective of a chunk; the products have the
 * others. With 16 it took 4 times as long on an H100 as with all. */
#define COLLECTIVE_WORKGROUPS 64

/* The best number of chunks by the machine's rates, if the user asks for
 * none. */
static int worth(const iris_t *iris, const struct iris_ops_size *size)
{
    struct iris_ops_rates rates = iris_i_ops_rates(iris);

    return iris_i_ops_expect(&rates, size).best;
}

/* Whether parts of a product by rows have the bits of the whole. With a CPU's
 * library they do not. */
static iris_status_t may_part(iris_t *iris, int *may_p)
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
    int most = (iris_i_device(iris)->num_cus + 1) / 2;
    iris_status_t status = iris_i_ops_read_rates(iris);

    if (status != IRIS_OK) {
        return status;
    }
    if (chunks == 0) {
        chunks = (int)iris_i_settings(iris)->ops_chunks.number;
    }
    if (size->m == 0 || size->n == 0 || size->k == 0) {
        chunks = 1; /* There is nothing to overlap. */
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
    plan_p->workgroups = iris_i_device(iris)->wavefront <= 1 ? 1
                         : most < COLLECTIVE_WORKGROUPS      ? most
                                                        : COLLECTIVE_WORKGROUPS;
    return status;
}
