/* SPDX-License-Identifier: MIT
 *
 * The steps of operations: views of matrices and of the workspace, products,
 * copies, and the meetings around the first product of its sizes.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>

#include "context/context.h"
#include "control/control.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * The first products of their sizes, by a GPU's library for rank threads.
 *
 * A GPU's library loads a kernel at its first launch. The driver then holds up
 * the host until all kernels of the process have ended, on every GPU. A kernel
 * of a rank thread may wait for a kernel that this thread has not enqueued yet.
 * So members that are threads meet before and after each product of a first
 * call. When they have met, each has enqueued all that the others' kernels wait
 * for, and until they meet again none of them enqueues a kernel that waits.
 */

#define FIELDS                                       \
    {                                                \
        {.name = "M"}, {.name = "N"}, {.name = "K"}, \
        {                                            \
            .name = "chunks"                         \
        }                                            \
    }

static const struct iris_call_type types[] = {
    [IRIS_OPS_MATMUL_ALL_REDUCE] = {.name = "iris_matmul_all_reduce",
                                    .fields = FIELDS},
    [IRIS_OPS_ALL_GATHER_MATMUL] = {.name = "iris_all_gather_matmul",
                                    .fields = FIELDS},
    [IRIS_OPS_MATMUL_ALL_GATHER] = {.name = "iris_matmul_all_gather",
                                    .fields = FIELDS},
    [IRIS_OPS_MATMUL_REDUCE_SCATTER] = {.name = "iris_matmul_reduce_scatter",
                                        .fields = FIELDS},
};

/* The calls of a group. */
struct known {
    struct iris_extension extension;
    void *sizes; /* a tree of struct sizes */
};

struct sizes {
    int64_t of[6];
};

static int compare_sizes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct sizes));
}

static void close_known(struct iris_extension *extension)
{
    struct known *known = (struct known *)extension;

    tdestroy(known->sizes, free);
    free(known);
}

/* Whether every member is a rank of this process. */
static int are_threads(const iris_t *iris, const struct iris_group *group)
{
    for (int i = 0; i < group->members.count; i++) {
        if (iris_i_control_is_remote(iris->control, group->ranks[i])) {
            return 0;
        }
    }
    return group->members.count > 1;
}

static struct known *known_of(const struct iris_ops_call *call)
{
    struct known *known = (struct known *)call->group->ops;

    if (known == NULL) {
        known = calloc(1, sizeof *known);
        if (known != NULL) {
            known->extension.close = close_known;
            call->group->ops = &known->extension;
        }
    }
    return known;
}

/* Adds the sizes of a call. *new_p: they were not known. */
static iris_status_t
remember_sizes(const iris_t *iris, const struct iris_ops_call *call, int *new_p)
{
    const struct sizes own = {{call->op, call->m, call->n, call->k,
                               (int64_t)call->b->dtype, call->by_column}};
    struct known *known = known_of(call);
    struct sizes *sizes;

    if (known != NULL && tfind(&own, &known->sizes, compare_sizes) != NULL) {
        return IRIS_OK;
    }
    sizes = malloc(sizeof *sizes);
    if (sizes != NULL) {
        *sizes = own;
    }
    *new_p = known != NULL && sizes != NULL &&
             tsearch(sizes, &known->sizes, compare_sizes) != NULL;
    if (!*new_p) {
        free(sizes);
    }
    return *new_p ? IRIS_OK
                  : iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                                "%s: no memory for its sizes", call->name);
}

iris_status_t iris_i_ops_first(iris_t *iris, struct iris_ops_call *call)
{
    const struct iris_blas *blas;
    void *state;
    iris_status_t status = iris_i_ops_blas(iris, &blas, &state);

    if (status != IRIS_OK || blas == NULL || !blas->on_gpu ||
        !are_threads(iris, call->group)) {
        return status;
    }
    status = remember_sizes(iris, call, &call->is_first);
    /* Before any kernel waits for a member that makes another call. */
    return iris_i_ops_meet(call, status);
}

iris_status_t iris_i_ops_meet(const struct iris_ops_call *call,
                              iris_status_t status)
{
    const struct iris_call post = {
        .type = &types[call->op],
        .fields = {(uint64_t)call->m, (uint64_t)call->n, (uint64_t)call->k,
                   (uint64_t)call->plan.parts},
        .status = status};

    return call->is_first ? iris_i_agree(&call->group->members, &post) : status;
}

/* ---- Matrices ---- */

static iris_tensor_t make_matrix(char *data, iris_dtype_t dtype, int64_t rows,
                                 int64_t columns)
{
    iris_tensor_t matrix = {.data = data,
                            .dtype = dtype,
                            .ndim = 2,
                            .shape = {rows, columns},
                            .strides = {columns, 1}};

    return matrix;
}

iris_tensor_t iris_i_ops_part(const iris_tensor_t *tensor, int dim,
                              struct iris_ops_share share)
{
    iris_tensor_t part = *tensor;

    part.data =
        (char *)tensor->data + share.begin * tensor->strides[dim] *
                                   (int64_t)iris_dtype_size(tensor->dtype);
    part.shape[dim] = share.rows;
    return part;
}

iris_tensor_t iris_i_ops_kept(const struct iris_ops_call *call, int64_t begin,
                              int64_t rows, int64_t columns)
{
    size_t at = (size_t)(begin * columns) * iris_dtype_size(call->b->dtype);

    /* A call that works in `out` has no memory, and does not use the matrix. */
    return make_matrix(call->memory == NULL ? NULL : call->memory + at,
                       call->b->dtype, rows, columns);
}

iris_tensor_t iris_i_ops_kept_columns(const struct iris_ops_call *call,
                                      int64_t i)
{
    size_t each = (size_t)(call->m * iris_i_ops_most(call, call->k)) *
                  iris_dtype_size(call->b->dtype);

    return make_matrix(call->memory + (size_t)i * each, call->b->dtype, call->m,
                       iris_i_ops_share(call, call->k, i).rows);
}

iris_tensor_t iris_i_ops_whole(const struct iris_ops_call *call)
{
    return make_matrix(iris_i_ops_kept_columns(call, call->members).data,
                       call->b->dtype, call->m, call->k);
}

struct iris_ops_rows iris_i_ops_dense(iris_tensor_t matrix)
{
    struct iris_ops_rows rows = {matrix, {matrix.shape[0], 0}};

    return rows;
}

/* ---- Steps ---- */

/* Only member 0 adds its bias to a sum. */
static struct iris_ops_product product_of(const struct iris_ops_call *call,
                                          iris_tensor_t a,
                                          struct iris_ops_rows out)
{
    int is_sum = call->op == IRIS_OPS_MATMUL_ALL_REDUCE ||
                 call->op == IRIS_OPS_MATMUL_REDUCE_SCATTER;
    struct iris_ops_product product = {
        .a = a,
        .b = *call->b,
        .out = out.matrix,
        .bias = is_sum && call->index != 0 ? NULL : call->options.bias,
        .bias_by_row = call->options.bias_by_row,
        .gaps = out.gaps};

    return product;
}

static iris_status_t multiply_met(iris_t *iris,
                                  const struct iris_ops_call *call,
                                  const struct iris_ops_product *product,
                                  struct iris_stream *stream)
{
    iris_status_t status = iris_i_ops_meet(call, IRIS_OK);

    return status == IRIS_OK
               ? iris_i_ops_meet(call,
                                 iris_i_ops_product(iris, product, stream))
               : status;
}

iris_status_t iris_i_ops_multiply(iris_t *iris,
                                  const struct iris_ops_call *call,
                                  iris_tensor_t a, struct iris_ops_rows out)
{
    struct iris_ops_product product = product_of(call, a, out);

    return multiply_met(iris, call, &product, call->options.stream);
}

iris_status_t iris_i_ops_multiply_part(iris_t *iris,
                                       const struct iris_ops_call *call,
                                       const struct iris_ops_piece *piece,
                                       struct iris_stream *stream)
{
    struct iris_ops_product product =
        product_of(call, piece->a, iris_i_ops_dense(piece->out));
    struct iris_ops_share rows = {piece->begin, piece->a.shape[0]};
    iris_tensor_t bias;

    product.begin = piece->begin;
    product.whole = piece->whole;
    if (product.bias != NULL && product.bias_by_row) {
        bias = iris_i_ops_part(product.bias, 0, rows);
        product.bias = &bias;
    }
    return multiply_met(iris, call, &product, stream);
}

iris_status_t iris_i_ops_copy(iris_t *iris, iris_tensor_t to,
                              iris_tensor_t from, struct iris_stream *stream)
{
    return iris_tensor_numel(&from) == 0
               ? IRIS_OK
               : iris_tensor_copy(iris, &to, &from, stream);
}

/* A collective without elements is a call that the members compare with their
 * own. */
iris_status_t iris_i_ops_refuse(iris_t *iris,
                                const struct iris_ccl_options *options,
                                iris_status_t status)
{
    const struct iris_fused *fused = iris_i_fused();
    const struct iris_fused failed = {
        .compared = {.op = IRIS_COMPARED_FAILED,
                     .sizes = {(uint64_t) - (int)status}},
        .stream = fused->stream};
    char message[IRIS_MESSAGE_BYTES];

    snprintf(message, sizeof message, "%s", iris_last_error());
    iris_i_fused_set(&failed);
    (void)iris_all_reduce(iris, NULL, NULL, 0, IRIS_DTYPE_U8, IRIS_REDUCE_MAX,
                          options);
    iris_i_fused_set(fused);
    return iris_i_fail_again(status, message);
}
