/* SPDX-License-Identifier: MIT
 *
 * Plans a call of a fused operation: a table says when chunks overlap a product
 * with its transport, and in how many chunks.
 *
 * The number of chunks is the first of these that is set: the call's option,
 * IRIS_OPS_CHUNKS, the table. The table is a pure function of the sizes, the
 * number of members and the kind of device, which members have in common. So
 * all members make the same plan, and no rank asks another.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>

#include "context/context.h"

#include <string.h>

/* Workgroups of a GPU for the collective of a chunk; the products have the
 * others. With 16 it took 4 times as long on an H100 as with all. */
#define COLLECTIVE_WORKGROUPS 64

/* A product computes this number of rows at once. Chunks that are not whole
 * blocks took up to 14 % longer than one product on two H100. */
#define BLOCK_ROWS 128

#define CUBE(side) (2.0 * (side) * (side) * (side))

/* Calls that overlap. Each has at most `members` members, at least `operations`
 * (2 M N K), and at most `per_element` multiplications for each element that
 * moves: beyond that, the product takes nearly all of the time. A call that no
 * row fits is done in one chunk.
 *
 * Copy engines of H100 and H200 hide the shorter of product and transport.
 * docs/fused.md has the measurements of two members (bf16). The other rows are
 * estimates from these: a chunk costs 10 us more for each further member, and
 * matmul_all_gather pays that three times. There is no row for
 * matmul_all_reduce, whose collective takes processors from the product. */
struct overlap {
    enum iris_ops_op op;
    int members;
    double operations;
    int64_t per_element;
    int chunks;
};

static const struct overlap overlaps[] = {
    {IRIS_OPS_ALL_GATHER_MATMUL, 2, CUBE(4096), 8192, 2},
    {IRIS_OPS_ALL_GATHER_MATMUL, 4, 2 * CUBE(4096), 8192, 2},
    {IRIS_OPS_ALL_GATHER_MATMUL, 8, CUBE(8192), 8192, 2},
    {IRIS_OPS_MATMUL_ALL_GATHER, 2, CUBE(6144), 8192, 2},
    {IRIS_OPS_MATMUL_ALL_GATHER, 4, CUBE(8192), 8192, 2},
    {IRIS_OPS_MATMUL_ALL_GATHER, 8, 4 * CUBE(8192), 8192, 2},
    {IRIS_OPS_MATMUL_REDUCE_SCATTER, 2, CUBE(4096) / 2, 8192, 2},
    {IRIS_OPS_MATMUL_REDUCE_SCATTER, 4, CUBE(6144), 8192, 2},
    {IRIS_OPS_MATMUL_REDUCE_SCATTER, 8, CUBE(8192), 8192, 2},
};

/* Devices on which these rows hold: a part of the device's name. H200 has the
 * processors and copy engines of H100. No other GPU has been measured. On a
 * CPU the same cores do both, so nothing overlaps. */
static const char *const overlapping[] = {"H100", "H200"};

static int is_overlapping(const char *device)
{
    int found = 0;

    for (size_t i = 0; i < sizeof overlapping / sizeof overlapping[0]; i++) {
        found |= strstr(device, overlapping[i]) != NULL;
    }
    return found;
}

/* Whether all chunks of all members are whole blocks of rows. */
static int is_even(const struct iris_ops_size *size, int chunks)
{
    int64_t shares = size->rows == size->m ? 1 : size->members;

    return size->m % (shares * chunks * BLOCK_ROWS) == 0;
}

int iris_i_ops_table_chunks(const struct iris_ops_size *size,
                            const char *device)
{
    double operations = 2 * (double)size->m * (double)size->n * (double)size->k;
    int64_t per_element =
        size->op == IRIS_OPS_ALL_GATHER_MATMUL ? size->n : size->k;

    /* Kernels join the columns, and f32 was not measured. */
    if (!is_overlapping(device) || size->by_column ||
        size->dtype == IRIS_DTYPE_F32) {
        return 1;
    }
    for (size_t i = 0; i < sizeof overlaps / sizeof overlaps[0]; i++) {
        const struct overlap *row = &overlaps[i];

        if ((int)row->op == size->op && size->members <= row->members &&
            operations >= row->operations && per_element <= row->per_element &&
            is_even(size, row->chunks)) {
            return row->chunks;
        }
    }
    return 1;
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
    const struct iris_device_info *device = iris_i_device(iris);
    int on_gpu = device->wavefront > 1;
    int is_shared = iris->placement.ranks_on_device > 1;
    int chunks = asked, may = 1;
    int most = (device->num_cus + 1) / 2;
    iris_status_t status = IRIS_OK;

    if (chunks == 0) {
        chunks = (int)iris_i_settings(iris)->ops_chunks.number;
    }
    if (size->m == 0 || size->n == 0 || size->k == 0) {
        chunks = 1; /* There is nothing to overlap. */
    }
    if (chunks == 0) { /* Ranks that share a GPU wait for each other. */
        chunks = on_gpu && !is_shared
                     ? iris_i_ops_table_chunks(size, device->name)
                     : 1;
    }
    if (chunks > size->rows) {
        chunks = (int)size->rows;
    }
    if (chunks > 1 && size->members > 1) {
        status = may_part(iris, &may);
    }
    plan_p->chunks = size->members == 1 || !may ? 1 : chunks;
    plan_p->workgroups = !on_gpu                        ? 1
                         : most < COLLECTIVE_WORKGROUPS ? most
                                                        : COLLECTIVE_WORKGROUPS;
    return status;
}
