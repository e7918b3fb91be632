/* SPDX-License-Identifier: MIT
 *
 * The public fused operations: checks a call, finds its memory, and enqueues it
 * as products and collectives.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/ccl.h>
#include <iris/constants.h>

#include "backend/backend.h"
#include "base/fp_env.h"
#include "context/context.h"
#include "heap/heap.h"

#include <stdlib.h>

/* ---- Steps ---- */

static struct iris_ccl_options collective(const struct iris_ops_call *call)
{
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.stream = call->options.stream;
    options.group = call->options.group;
    return options;
}

/* The gaps between a product's rows if each member has a place for the same
 * number of rows: one row is left free behind each share that has one row
 * less. */
static struct iris_blas_gaps between_shares(const struct iris_ops_call *call)
{
    int64_t most = iris_i_ops_most(call, call->m);
    int64_t longer = call->m % call->members;
    struct iris_blas_gaps gaps = {
        longer == 0 ? call->m : longer * most + most - 1, most - 1};

    return gaps;
}

static iris_status_t copy(iris_t *iris, const struct iris_ops_call *call,
                          iris_tensor_t to, iris_tensor_t from)
{
    return iris_i_ops_copy(iris, to, from, call->options.stream);
}

static iris_status_t gather(iris_t *iris, const struct iris_ops_call *call,
                            const void *in, char *memory, int64_t elements)
{
    struct iris_ccl_options options = collective(call);
    size_t bytes = (size_t)elements * iris_dtype_size(call->b->dtype);

    return iris_all_gather(
        iris, in == NULL ? memory + (size_t)call->index * bytes : in, memory,
        (size_t)elements, call->b->dtype, &options);
}

/* Fails ahead of the call's collective. Members of a first call have agreed on
 * the failure. */
static iris_status_t refuse(iris_t *iris, const struct iris_ops_call *call,
                            iris_status_t status)
{
    struct iris_ccl_options options = collective(call);

    return call->is_first || call->members == 1
               ? status
               : iris_i_ops_refuse(iris, &options, status);
}

/* Whether a collective of `elements` elements can use the matrix in place.
 * Otherwise some members may still copy their input through the workspace. All
 * members choose the same variant, since the workspace is on the heap, too. */
static int is_whole(const iris_t *iris, const iris_tensor_t *matrix,
                    int64_t elements)
{
    return iris_tensor_numel(matrix) == elements &&
           iris_tensor_is_contiguous(matrix, IRIS_FORMAT_CONTIGUOUS) &&
           iris_i_heap_bytes_from(iris_i_heap(iris), matrix->data) > 0;
}

/* Gathers the members' `a`. Each has a place for `elements` elements; `own` is
 * this member's. */
static iris_status_t gather_a(iris_t *iris, const struct iris_ops_call *call,
                              iris_tensor_t own, int64_t elements)
{
    int whole = is_whole(iris, call->a, elements);
    iris_status_t status = whole ? IRIS_OK : copy(iris, call, own, *call->a);

    return status == IRIS_OK ? gather(iris, call, whole ? call->a->data : NULL,
                                      call->memory, elements)
                             : refuse(iris, call, status);
}

/* ---- The operations ---- */

static iris_status_t matmul_all_reduce(iris_t *iris,
                                       const struct iris_ops_call *call)
{
    struct iris_ccl_options options = collective(call);
    struct iris_ops_share all = {0, call->m};
    struct iris_ops_sums sums = iris_i_ops_sums(call, all);
    iris_status_t status = iris_i_ops_multiply(iris, call, *call->a,
                                               iris_i_ops_dense(sums.products));

    if (status != IRIS_OK) {
        return refuse(iris, call, status);
    }
    status = iris_all_reduce(iris, sums.products.data, sums.sums.data,
                             (size_t)(call->m * call->n), call->b->dtype,
                             IRIS_REDUCE_SUM, &options);
    return status == IRIS_OK && !call->direct
               ? copy(iris, call, *call->out, sums.sums)
               : status;
}

/* Gathers the members' shares of the rows of `all`. This member's share is
 * `in`, or in place (NULL). */
static iris_status_t gather_shares(iris_t *iris,
                                   const struct iris_ops_call *call,
                                   const void *in, const iris_tensor_t *all)
{
    struct iris_ccl_options options = collective(call);
    struct iris_ops_share share = iris_i_ops_share(call, call->m, call->index);
    iris_tensor_t own = iris_i_ops_part(all, 0, share);
    size_t *counts;
    iris_status_t status;

    if (call->m % call->members == 0) {
        return gather(iris, call, in, all->data, iris_tensor_numel(&own));
    }
    counts = calloc((size_t)call->members, sizeof *counts);
    if (counts == NULL) {
        status =
            iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                        "%s: no memory for the sizes of shares", call->name);
        return refuse(iris, call, status);
    }
    for (int64_t i = 0; i < call->members; i++) {
        counts[i] =
            (size_t)(iris_i_ops_share(call, call->m, i).rows * all->shape[1]);
    }
    status = iris_all_gatherv(iris, in == NULL ? own.data : in, all->data,
                              counts, NULL, all->dtype, &options);
    free(counts);
    return status;
}

static iris_status_t matmul_all_gather(iris_t *iris,
                                       const struct iris_ops_call *call)
{
    struct iris_ops_share share = iris_i_ops_share(call, call->m, call->index);
    iris_tensor_t all =
        call->direct ? *call->out : iris_i_ops_kept(call, 0, call->m, call->n);
    iris_tensor_t own = iris_i_ops_part(&all, 0, share);
    iris_status_t status =
        iris_i_ops_multiply(iris, call, *call->a, iris_i_ops_dense(own));

    status = status == IRIS_OK ? gather_shares(iris, call, NULL, &all)
                               : refuse(iris, call, status);
    return status == IRIS_OK && !call->direct
               ? copy(iris, call, *call->out, all)
               : status;
}

static iris_status_t gather_rows(iris_t *iris, const struct iris_ops_call *call)
{
    struct iris_ops_share share = iris_i_ops_share(call, call->m, call->index);
    iris_tensor_t all = iris_i_ops_kept(call, 0, call->m, call->k);
    int whole = is_whole(iris, call->a, share.rows * call->k);
    iris_status_t status =
        whole ? IRIS_OK
              : copy(iris, call, iris_i_ops_part(&all, 0, share), *call->a);

    status = status == IRIS_OK
                 ? gather_shares(iris, call, whole ? call->a->data : NULL, &all)
                 : refuse(iris, call, status);
    return status == IRIS_OK ? iris_i_ops_multiply(iris, call, all,
                                                   iris_i_ops_dense(*call->out))
                             : status;
}

/* The members' columns are joined behind the place where they were gathered. */
static iris_status_t gather_columns(iris_t *iris,
                                    const struct iris_ops_call *call)
{
    int64_t most = iris_i_ops_most(call, call->k);
    iris_tensor_t whole = iris_i_ops_whole(call);
    iris_status_t status = gather_a(
        iris, call, iris_i_ops_kept_columns(call, call->index), call->m * most);

    for (int64_t i = 0; i < call->members && status == IRIS_OK; i++) {
        status =
            copy(iris, call,
                 iris_i_ops_part(&whole, 1, iris_i_ops_share(call, call->k, i)),
                 iris_i_ops_kept_columns(call, i));
    }
    return status == IRIS_OK ? iris_i_ops_multiply(iris, call, whole,
                                                   iris_i_ops_dense(*call->out))
                             : status;
}

static iris_status_t matmul_reduce_scatter(iris_t *iris,
                                           const struct iris_ops_call *call)
{
    struct iris_ccl_options options = collective(call);
    int64_t most = iris_i_ops_most(call, call->m);
    int whole = is_whole(iris, call->out, most * call->n);
    iris_tensor_t own =
        iris_i_ops_kept(call, call->index * most, call->out->shape[0], call->n);
    struct iris_ops_rows spread = {iris_i_ops_kept(call, 0, call->m, call->n),
                                   between_shares(call)};
    iris_status_t status = iris_i_ops_multiply(iris, call, *call->a, spread);

    if (status != IRIS_OK) {
        return refuse(iris, call, status);
    }
    status = iris_reduce_scatter(
        iris, call->memory, whole ? call->out->data : own.data,
        (size_t)(most * call->n), own.dtype, IRIS_REDUCE_SUM, &options);
    return status == IRIS_OK && !whole ? copy(iris, call, *call->out, own)
                                       : status;
}

static iris_status_t enqueue(iris_t *iris, const struct iris_ops_call *call)
{
    if (call->members == 1) {
        return iris_i_ops_multiply(iris, call, *call->a,
                                   iris_i_ops_dense(*call->out));
    }
    if (iris_i_ops_in_chunks(&call->plan)) {
        return iris_i_ops_chunks(iris, call);
    }
    switch (call->op) {
    case IRIS_OPS_MATMUL_ALL_REDUCE:
        return matmul_all_reduce(iris, call);
    case IRIS_OPS_ALL_GATHER_MATMUL:
        return call->by_column ? gather_columns(iris, call)
                               : gather_rows(iris, call);
    case IRIS_OPS_MATMUL_ALL_GATHER:
        return matmul_all_gather(iris, call);
    default:
        return matmul_reduce_scatter(iris, call);
    }
}

/* Makes the collective's members compare the whole operation: the collective's
 * count depends on M times N only, and not on K. */
static iris_status_t enqueue_compared(iris_t *iris, struct iris_ops_call *call)
{
    const struct iris_fused fused = {
        .compared = {.op = IRIS_COMPARED_MATMUL_ALL_REDUCE + (int)call->op,
                     .dtype = (int)call->b->dtype,
                     .root = call->plan.chunks,
                     .sizes = {(uint64_t)call->m, (uint64_t)call->n,
                               (uint64_t)call->k}},
        .stream = call->options.stream};
    iris_status_t status;

    iris_i_fused_set(&fused);
    status = iris_i_ops_first(iris, call);
    status =
        status == IRIS_OK ? enqueue(iris, call) : refuse(iris, call, status);
    iris_i_fused_set(NULL);
    return status;
}

static iris_status_t run(iris_t *iris, struct iris_ops_call *call,
                         const struct iris_ops_options *options)
{
    uint64_t fp = iris_i_fp_enter(); /* for the choice of a way */
    iris_status_t status = iris_i_ops_check(iris, call, options);

    if (status == IRIS_OK) {
        status = iris_i_ops_workspace(iris, call);
    }
    status = status == IRIS_OK ? enqueue_compared(iris, call) : status;
    iris_i_fp_leave(fp);
    return status;
}

/* Every rank has to be told if the arguments are wrong on one. A rank without
 * matrices needs no memory itself. */
static iris_status_t prepare(iris_t *iris, struct iris_ops_call *call,
                             const struct iris_ops_options *options,
                             iris_ops_workspace_t **workspace_p)
{
    iris_status_t status =
        iris_i_enter_output(iris, call->name, workspace_p, "workspace_p");
    uint64_t fp;

    if (status != IRIS_OK) {
        return status;
    }
    fp = iris_i_fp_enter();
    if (call->a != NULL || call->b != NULL || call->out != NULL) {
        status = iris_i_ops_check(iris, call, options);
    }
    status = iris_i_ops_make_workspace(iris, call, status, workspace_p);
    iris_i_fp_leave(fp);
    return status;
}

#define OPERATION(which, OP)                                              \
    iris_status_t iris_##which(                                           \
        iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,     \
        const iris_tensor_t *out, const struct iris_ops_options *options) \
    {                                                                     \
        struct iris_ops_call call = {.name = "iris_" #which,              \
                                     .op = IRIS_OPS_##OP,                 \
                                     .a = a,                              \
                                     .b = b,                              \
                                     .out = out};                         \
                                                                          \
        return run(iris, &call, options);                                 \
    }                                                                     \
                                                                          \
    iris_status_t iris_##which##_preamble(                                \
        iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,     \
        const iris_tensor_t *out, const struct iris_ops_options *options, \
        iris_ops_workspace_t **workspace_p)                               \
    {                                                                     \
        struct iris_ops_call call = {.name = "iris_" #which "_preamble",  \
                                     .op = IRIS_OPS_##OP,                 \
                                     .a = a,                              \
                                     .b = b,                              \
                                     .out = out};                         \
                                                                          \
        return prepare(iris, &call, options, workspace_p);                \
    }

OPERATION(matmul_all_reduce, MATMUL_ALL_REDUCE)
OPERATION(all_gather_matmul, ALL_GATHER_MATMUL)
OPERATION(matmul_all_gather, MATMUL_ALL_GATHER)
OPERATION(matmul_reduce_scatter, MATMUL_REDUCE_SCATTER)
