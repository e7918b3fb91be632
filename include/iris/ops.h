/* SPDX-License-Identifier: MIT
 *
 * Fused operations: products of matrices, combined with a collective between
 * the members of a group. docs/fused.md says how they overlap.
 *
 *     struct iris_ops_options options;
 *
 *     iris_ops_options_init(&options);
 *     options.stream = stream;
 *     status = iris_matmul_all_reduce(iris, &x, &weights, &y, &options);
 *
 * @use local; never blocks; apart
 * @param a, b  the factors, matrices
 * @param out  the result, a matrix
 */
#ifndef IRIS_OPS_H
#define IRIS_OPS_H

#include <iris/group.h>
#include <iris/stream.h>
#include <iris/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Memory on the heap that a fused operation works in. Opaque. */
typedef struct iris_ops_workspace iris_ops_workspace_t;

/** Options of a call. All members pass the same options, except stream,
 *  workspace and the contents of bias. Later versions add fields at the end. */
struct iris_ops_options {
    size_t size;                     /**< Set by iris_ops_options_init(). */
    iris_stream_t *stream;           /**< NULL: the default stream. */
    iris_group_t *group;             /**< NULL: all ranks. */
    iris_ops_workspace_t *workspace; /**< NULL: the job's own. */
    const iris_tensor_t *bias;       /**< Added to the result; NULL: no bias. */
    int bias_by_row; /**< 0: bias has an element for each column of the product.
                          1: it has one for each row. */
    int chunks;      /**< Number of parts of a product that overlap with the
                          transport, 1 to 8; at least one for each member's
                          share of its rows. 1: nothing overlaps. 0: the number
                          in IRIS_OPS_CHUNKS; without it the library chooses. */
};

/** Sets the defaults. Local, cannot fail.
 *  @param options  the struct to set */
#define iris_ops_options_init(options) \
    iris_ops_options_init_sized((options), sizeof *(options))

/** iris_ops_options_init() for a struct of `size` bytes, which is the size in
 *  the caller's header. See iris_config_init_sized(). */
IRIS_API void iris_ops_options_init_sized(struct iris_ops_options *options,
                                          size_t size);

/* ---- The operations --------------------------------------------------------
 *
 * a, b and out are matrices: tensors of two dimensions and of the same dtype,
 * f32, f16 or bf16, with any strides. A transposed matrix is a view of another
 * (iris_tensor_permute()). In `out` the elements of a row are dense. Its rows
 * may have gaps between them, on all members or on none. The matrices may be in
 * any memory that the device reaches; the call is faster if all members' `out`
 * are on the heap. `out` overlaps neither a nor b. Sizes are 1 or more; a share
 * of a matrix may have no rows or columns.
 *
 * Products are summed in f32 and rounded once. The result has the same bits as
 * the product followed by the collective (iris/ccl.h), on every rank and in
 * every run.
 *
 * If a matrix is divided between n members, each has a share of its rows (or
 * columns). The shares of the first (rows mod n) members have one row more.
 *
 * Collective over the group: every member makes the same call, with the same
 * sizes. The call enqueues on the stream. It blocks if it makes a workspace. If
 * the members are threads of one process and a GPU's library multiplies, the
 * first call with these sizes also blocks until all members have made it
 * (docs/fused.md). A graph can capture a call once the workspace exists.
 *
 * workspace  Holds data that an operation keeps besides `out`. A workspace from
 *            a preamble serves every operation that fits. A call that needs
 *            more memory fails, and says how much it needs. If a call of all
 *            ranks names no workspace, it uses the one that the library keeps.
 *            The first call that needs more memory makes or enlarges that
 *            workspace, as iris_malloc() does, and blocks meanwhile. A group of
 *            fewer ranks needs a workspace from a preamble. Two streams that
 *            run at the same time need one each.
 *
 * bias       A tensor of one dimension and the dtype of `out`. If products are
 *            summed, member 0's bias is added, once.
 *
 * IRIS_ERR_INVALID      a tensor is NULL, has another dtype, does not have two
 *                       dimensions, has sizes that do not fit the others',
 *                       overlaps out, or is out and has rows that are not
 *                       dense, or is host memory that the GPU cannot access;
 *                       there is no such group, stream or workspace; or
 *                       options without iris_ops_options_init()
 * IRIS_ERR_STATE        a group of fewer than all ranks without a workspace; or
 *                       a first product in a capture, which would open
 *                       hipBLASLt there: call a preamble before
 * IRIS_ERR_NO_MEMORY    the workspace is too small, or the heap has no space
 *                       for one
 *
 * Also returns the statuses of iris_all_reduce(). If the call fails
 * on one member while it enqueues, for example in a GPU's library, it ends on all
 * members: those that wait for that member's data get its status, at the latest
 * from iris_stream_synchronize(). After such an error, or another one of the
 * stream, the workspace of the call and that of the group's collectives cannot
 * be used again: make others.
 *
 * @use group; blocks at first; captured; CPU nodes */

/** `out` (M, N) is the sum over the members of a (M, K) times b (K, N). */
IRIS_API iris_status_t iris_matmul_all_reduce(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options);

/** `out` (M, N) is the product of an (M, K) matrix and this rank's b (K, N).
 *  The members' `a` form the (M, K) matrix: `a` is this rank's share of its rows
 *  or, if `a` has M rows, of its columns. In a group of one member `a` is the
 *  whole matrix. */
IRIS_API iris_status_t iris_all_gather_matmul(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options);

/** `out` (M, N) consists of the members' products a times b, one below the
 *  other. `a` is this rank's share of the M rows. */
IRIS_API iris_status_t iris_matmul_all_gather(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options);

/** `out` is this rank's share of the rows of the sum over the members of
 *  a (M, K) times b (K, N). */
IRIS_API iris_status_t iris_matmul_reduce_scatter(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options);

/* ---- Workspaces ------------------------------------------------------------
 */

/** Makes a workspace that is large enough for the call of that name with these
 *  arguments. It ignores the tensors' data. Collective over the job, like
 *  iris_malloc(), for every options.group. Ranks may pass different groups and
 *  sizes: all get as many bytes as the rank that needs most. A rank that needs
 *  no workspace, for example because it is not in the group, passes NULL for a,
 *  b and out. The caller owns the workspace until iris_ops_workspace_destroy().
 *  Returns the statuses of iris_matmul_all_reduce() and of iris_malloc().
 *  @use job; blocks; refused */
IRIS_API iris_status_t iris_matmul_all_reduce_preamble(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options,
    iris_ops_workspace_t **workspace_p);
IRIS_API iris_status_t iris_all_gather_matmul_preamble(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options,
    iris_ops_workspace_t **workspace_p);
IRIS_API iris_status_t iris_matmul_all_gather_preamble(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options,
    iris_ops_workspace_t **workspace_p);
IRIS_API iris_status_t iris_matmul_reduce_scatter_preamble(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options,
    iris_ops_workspace_t **workspace_p);

/** Frees a workspace; no stream and no graph may use it afterwards. Collective
 *  over the job; blocks. NULL does nothing. Returns the statuses of
 *  iris_free().
 *  @use job; blocks; apart */
IRIS_API iris_status_t
iris_ops_workspace_destroy(iris_t *iris, iris_ops_workspace_t *workspace);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_OPS_H */
