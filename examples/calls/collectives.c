/* SPDX-License-Identifier: MIT
 *
 * Collectives on streams, messages, and fused operations.
 */
#include "calls.h"

static void use_collectives(iris_t *iris, float *in, float *out)
{
    int rank = iris_rank(iris);

    check(iris_ccl_prepare(iris)); /* all ranks, once; then no call blocks */
    check(iris_all_reduce_preamble(iris, NULL));

    struct iris_ccl_options options;
    iris_ccl_options_init(&options);
    options.all_reduce = IRIS_CCL_TWO_SHOT;
    check(iris_all_reduce(iris, in, out, 1024, IRIS_DTYPE_F32, IRIS_REDUCE_SUM,
                          &options));
    printf("by %s\n", iris_ccl_variant_name(options.all_reduce));

    check(iris_all_gather(iris, in, out, 512, IRIS_DTYPE_F32, NULL));
    check(iris_reduce_scatter(iris, in, out, 512, IRIS_DTYPE_F32,
                              IRIS_REDUCE_MAX, NULL));
    check(iris_all_to_all(iris, in, out, 512, IRIS_DTYPE_F32, NULL));
    check(iris_ccl_broadcast(iris, in, out, 1024, IRIS_DTYPE_F32, 0, NULL));
    check(iris_reduce(iris, in, out, 1024, IRIS_DTYPE_F32, IRIS_REDUCE_SUM, 0,
                      NULL));
    check(iris_gather(iris, in, out, 512, IRIS_DTYPE_F32, 0, NULL));
    check(iris_scatter(iris, in, out, 512, IRIS_DTYPE_F32, 0, NULL));
    check(iris_stream_synchronize(iris, NULL)); /* the results are there */

    size_t counts[2] = {100, 200}; /* elements of rank 0, of rank 1 */
    check(iris_all_gatherv(iris, in, out, counts, NULL, IRIS_DTYPE_F32, NULL));

    size_t sent[2] = {10, 10}, got[2] = {10, 10};
    check(iris_all_to_allv(iris, in, sent, NULL, out, got, NULL, IRIS_DTYPE_F32,
                           NULL));

    if (rank == 0)
        check(iris_send(iris, in, 64, IRIS_DTYPE_F32, 1, NULL));
    else
        check(iris_recv(iris, out, 64, IRIS_DTYPE_F32, 0, NULL));

    check(iris_send_recv(iris, in, 64, 1 - rank, out, 64, 1 - rank,
                         IRIS_DTYPE_F32, NULL)); /* exchanges with the peer */

    iris_ccl_workspace_t *workspace; /* for a second stream */
    check(iris_ccl_workspace_create(iris, NULL, &workspace));
    check(iris_stream_synchronize(iris, NULL));
    check(iris_ccl_workspace_destroy(iris, workspace));
}

static void use_fused(iris_t *iris)
{
    iris_tensor_t a, b, c, share;
    check(iris_ones(iris, IRIS_SHAPE(8, 16), NULL, &a));
    check(iris_ones(iris, IRIS_SHAPE(16, 4), NULL, &b));
    check(iris_zeros(iris, IRIS_SHAPE(8, 4), NULL, &c));
    check(iris_matmul_all_reduce(iris, &a, &b, &c, NULL));

    check(iris_zeros(iris, IRIS_SHAPE(4, 4), NULL, &share));
    check(iris_matmul_reduce_scatter(iris, &a, &b, &share, NULL));

    iris_tensor_t rows; /* this rank's half of a */
    check(iris_tensor_slice(&a, 0, 0, 4, 1, &rows));
    check(iris_all_gather_matmul(iris, &rows, &b, &c, NULL));
    check(iris_matmul_all_gather(iris, &rows, &b, &c, NULL));

    iris_ops_workspace_t *w[4]; /* for groups, or a second stream */
    check(iris_matmul_all_reduce_preamble(iris, &a, &b, &c, NULL, &w[0]));
    check(iris_all_gather_matmul_preamble(iris, &rows, &b, &c, NULL, &w[1]));
    check(iris_matmul_all_gather_preamble(iris, &rows, &b, &c, NULL, &w[2]));
    check(
        iris_matmul_reduce_scatter_preamble(iris, &a, &b, &share, NULL, &w[3]));

    struct iris_ops_options options;
    iris_ops_options_init(&options);
    options.workspace = w[0];
    check(iris_matmul_all_reduce(iris, &a, &b, &c, &options));
    check(iris_stream_synchronize(iris, NULL));
    for (int i = 0; i < 4; i++)
        check(iris_ops_workspace_destroy(iris, w[i]));
}

static int rank_main(iris_t *iris, void *arg)
{
    float *in, *out;

    check(iris_calloc_typed(iris, 1024, &in));
    check(iris_calloc_typed(iris, 1024, &out));
    use_collectives(iris, in, out);
    use_fused(iris);
    return arg == NULL ? 0 : 1;
}

int main(void)
{
    check(iris_spawn(NULL, 2, rank_main, NULL));
    return 0;
}
