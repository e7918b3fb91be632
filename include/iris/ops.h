/* SPDX-License-Identifier: MIT
 *
 * Fused operations: products of matrices that are summed, gathered or scattered
 * between the members of a group.
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

/** What a call may say beyond its arguments. All members say the same, but for
 *  stream, workspace and the contents of bias. New fields come at the end. */
struct iris_ops_options {
    size_t size;                     /**< Set by iris_ops_options_init(). */
    iris_stream_t *stream;           /**< NULL: the default stream. */
    iris_group_t *group;             /**< NULL: all ranks. */
    iris_ops_workspace_t *workspace; /**< NULL: the job's own. */
    const iris_tensor_t *bias;       /**< Added to the result; NULL: none. */
    int bias_by_row; /**< 0: bias has an element for each column of the product,
                          1: for each row. */
    int chunks;      /**< Number of chunks of rows that overlap, 1 to 8. 0: that
                          of IRIS_OPS_CHUNKS; without it the library chooses. */
};

/** Asks for nothing. Local, cannot fail. */
#define iris_ops_options_init(options) \
    iris_ops_options_init_sized((options), sizeof *(options))

/** iris_ops_options_init() for a struct of `size` bytes, as the caller's header
 *  has it. See iris_config_init_sized(). */
IRIS_API void iris_ops_options_init_sized(struct iris_ops_options *options,
                                          size_t size);

/* ---- The operations --------------------------------------------------------
 *
 * a, b and out are matrices: tensors of two dimensions, of the same dtype, f32,
 * f16 or bf16, with any strides; a transposed matrix is a view of one
 * (iris_tensor_permute()). In `out` the elements of a row are dense; its rows
 * may be apart, on all members or on none. `a` and `b` may be any memory that
 * the device reaches; `out`, too, but on the heap, on all members, it is
 * faster. `out` overlaps neither. Any size from 1 on; a share of a matrix may
 * have none.
 *
 * Products are summed in f32 and rounded once. The result has the same bits as
 * the product followed by the collective (iris/ccl.h), on every rank and in
 * every run.
 *
 * Where a matrix is divided between members, member i of n has a share of its
 * rows (or columns): one more than the others for the first (rows mod n).
 *
 * Collective over the group: every member makes the same call, with the same
 * sizes. Enqueued on the stream; does not block, but where said so below.
 * Captured in a graph once the workspace is there.
 *
 * workspace  Holds the data that an operation keeps besides `out`. A workspace
 *            that a preamble made serves every operation that fits; a call that
 *            needs more is an error that says how much. Without a workspace,
 *            calls of all ranks share one that the library keeps. The first
 *            call that needs more memory makes that workspace, or a larger one,
 *            as iris_malloc() does, and blocks meanwhile. A group of fewer
 *            ranks needs a workspace of the preamble. Two streams that run at
 *            the same time need one each.
 *
 * bias       A tensor of one dimension and the dtype of `out`. Where products
 *            are summed, member 0's bias is added, once.
 *
 * IRIS_ERR_INVALID      a tensor is NULL, has another dtype, does not have two
 *                       dimensions, has sizes that do not fit the others',
 *                       overlaps out, or is out and has rows that are not
 *                       dense; no such group, stream or workspace; options that
 *                       iris_ops_options_init() has not seen
 * IRIS_ERR_STATE        a group of fewer than all ranks without a workspace
 * IRIS_ERR_NO_MEMORY    the workspace is too small, or the heap has no space
 *                       for one
 *
 * Also returns the statuses of the collective, see iris/ccl.h. */

/** out (M, N) is the sum over the members of a (M, K) times b (K, N). */
IRIS_API iris_status_t iris_matmul_all_reduce(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options);

/** out (M, N) is the members' `a`, put together, times this rank's b (K, N).
 *  `a` is this rank's share of the rows of an (M, K) matrix, or, if it has M
 *  rows, of its columns. In a group of one member `a` is the whole matrix. */
IRIS_API iris_status_t iris_all_gather_matmul(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options);

/** out (M, N) has the members' a times b, one below the other. `a` is a share
 *  of M rows. */
IRIS_API iris_status_t iris_matmul_all_gather(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options);

/** out is this rank's share of the rows of the sum over the members of a (M, K)
 *  times b (K, N). */
IRIS_API iris_status_t iris_matmul_reduce_scatter(
    iris_t *iris, const iris_tensor_t *a, const iris_tensor_t *b,
    const iris_tensor_t *out, const struct iris_ops_options *options);

/* ---- Workspaces ------------------------------------------------------------
 *
 * Each makes a workspace that is enough for the call of that name with such
 * arguments; their data is not looked at. Collective over the job, whatever
 * options.group is, as iris_malloc(). Ranks may pass other groups and sizes than
 * each other: all get as many bytes as the rank that needs most. A rank that
 * needs none, such as one that is not in the group, passes NULL as a, b and out.
 * Blocks. The caller's until iris_ops_workspace_destroy(). Statuses as of the
 * call, and those of iris_malloc(). */
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

/** Frees a workspace that no stream and no graph uses any more. Collective over
 *  the job; blocks. NULL is fine. Statuses as iris_free(). */
IRIS_API iris_status_t
iris_ops_workspace_destroy(iris_t *iris, iris_ops_workspace_t *workspace);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_OPS_H */
