/* SPDX-License-Identifier: MIT
 *
 * Cases of fused operations and of collectives.
 */
#include "config.h"

#include "fuzz/structs.h"

#define EXPECT(call, status, right) fuzz_expect(fuzz, right, call, status)

/* ---- struct iris_ops_options, matrices ---- */

static iris_tensor_t matrix(struct fuzz *fuzz, int64_t rows, int64_t columns,
                            size_t at)
{
    iris_tensor_t matrix;

    (void)iris_tensor_wrap(fuzz->block + at, IRIS_DTYPE_F32,
                           IRIS_SHAPE(rows, columns), &matrix);
    if (fuzz_one_in(fuzz, 3)) {
        fuzz_spoil(fuzz, &matrix);
    }
    return matrix;
}

typedef iris_status_t operation(iris_t *iris, const iris_tensor_t *a,
                                const iris_tensor_t *b,
                                const iris_tensor_t *out,
                                const struct iris_ops_options *options);

static operation *const operations[] = {
    iris_matmul_all_reduce, iris_all_gather_matmul, iris_matmul_all_gather,
    iris_matmul_reduce_scatter};

/* As of a newer header, whose struct may have so many bytes. */
union ops_options {
    struct iris_ops_options known;
    char bytes[4096];
};

/* Returns whether the options are wrong. */
static int spoil_ops(struct fuzz *fuzz, union ops_options *all)
{
    struct iris_ops_options *options = &all->known;

    switch (fuzz_choose(fuzz, 12)) {
    case 0:
        options->size = (size_t)fuzz_edge(fuzz);
        return options->size < sizeof options->size ||
               options->size > sizeof *all ||
               options->size % sizeof(void *) != 0;
    case 4:
        options->size = sizeof *all; /* a field that is not known is set */
        all->bytes[sizeof *options + fuzz_choose(fuzz, 64)] = 1;
        return 1;
    case 1:
        options->bias_by_row = 2;
        return 1;
    case 2:
        options->workspace = (iris_ops_workspace_t *)fuzz->host;
        return 1;
    case 3:
        options->group = (iris_group_t *)fuzz->host;
        return 1;
    default:
        return 0;
    }
}

void fuzz_ops(struct fuzz *fuzz)
{
    int64_t n = iris_num_ranks(fuzz->iris);
    unsigned which = fuzz_choose(fuzz, 4);
    int64_t a_rows = which == 1 || which == 2 ? 3 : 3 * n;
    int64_t out_rows = which == 3 ? 3 : 3 * n;
    iris_tensor_t a = matrix(fuzz, a_rows, 4, 0);
    iris_tensor_t b = matrix(fuzz, 4, 5, 1024);
    iris_tensor_t out = matrix(fuzz, out_rows, 5, 2048);
    iris_tensor_t bias = fuzz_tensor(fuzz);
    union ops_options options = {.bytes = {0}};
    enum verdict verdict;
    iris_status_t status;
    int bad;

    if (which == 0) {
        a.shape[0] = out.shape[0]; /* of any number of rows */
    }
    verdict = fuzz_worse(fuzz_worse(fuzz_judge(fuzz, &a), fuzz_judge(fuzz, &b)),
                         fuzz_judge(fuzz, &out));
    iris_ops_options_init(&options.known);
    bad = spoil_ops(fuzz, &options);
    if (fuzz_one_in(fuzz, 4) && options.known.size == sizeof options.known) {
        options.known.bias = &bias;
        verdict = fuzz_worse(verdict, fuzz_judge(fuzz, &bias));
    }
    bad |= fuzz_is_bad(verdict);
    if (verdict == UNKNOWN) {
        return;
    }
    status = operations[which](fuzz->iris, &a, &b, &out, &options.known);
    EXPECT("a fused operation", status, !bad || status == IRIS_ERR_INVALID);
    fuzz_wait(fuzz);
}

/* ---- struct iris_ccl_options ---- */

static int spoil_ccl(struct fuzz *fuzz, struct iris_ccl_options *options)
{
    switch (fuzz_choose(fuzz, 10)) {
    case 0:
        options->size = fuzz_choose(fuzz, 8);
        return 1;
    case 1:
        options->async = 2;
        return 1;
    case 2:
        options->distribution = (iris_ccl_distribution_t)-1;
        return 1;
    case 3:
        options->own_rows = -1;
        return 1;
    case 4:
        options->num_rings = 3;
        return 1;
    case 5:
        options->in_stride = 1; /* without rows */
        return 1;
    case 6:
        options->rows = (size_t)INT64_MAX;
        return 1;
    case 7:
        options->workspace = (iris_ccl_workspace_t *)fuzz->host;
        return iris_num_ranks(fuzz->iris) > 1;
    default:
        return 0;
    }
}

void fuzz_ccl(struct fuzz *fuzz)
{
    int is_broadcast = fuzz_one_in(fuzz, 2),
        root = (int)fuzz_choose(fuzz, 4) - 1;
    int64_t count =
        fuzz_one_in(fuzz, 3) ? fuzz_edge(fuzz) : fuzz_choose(fuzz, 64);
    iris_dtype_t dtype =
        fuzz_one_in(fuzz, 4) ? (iris_dtype_t)fuzz_edge(fuzz) : IRIS_DTYPE_I32;
    void *in =
        fuzz_one_in(fuzz, 2) ? fuzz_place(fuzz, fuzz->block) : fuzz->block;
    void *out = fuzz->block + FUZZ_BYTES / 2;
    iris_tensor_t in_tensor = fuzz_buffer(in, dtype, count);
    iris_tensor_t out_tensor = fuzz_buffer(out, dtype, count);
    struct iris_ccl_options options;
    enum verdict verdict;
    iris_status_t status;
    int bad;

    if (fuzz_one_in(fuzz, 4)) {
        out_tensor.data = out = fuzz_place(fuzz, out);
    }
    if (is_broadcast) { /* in place, so that no error is the root's alone */
        in = out;
        in_tensor.data = out;
    }
    verdict =
        fuzz_worse(fuzz_judge(fuzz, &in_tensor), fuzz_judge(fuzz, &out_tensor));
    iris_ccl_options_init(&options);
    bad = spoil_ccl(fuzz, &options);
    if (verdict == UNKNOWN || count == 0) {
        return;
    }
    bad |= fuzz_is_bad(verdict) || count < 0;
    if (is_broadcast) {
        bad |= root < 0 || root >= iris_num_ranks(fuzz->iris);
        status = iris_ccl_broadcast(fuzz->iris, in, out, (size_t)count, dtype,
                                    root, &options);
    } else {
        status = iris_all_reduce(fuzz->iris, in, out, (size_t)count, dtype,
                                 IRIS_REDUCE_SUM, &options);
    }
    EXPECT("a collective", status,
           bad ? status == IRIS_ERR_INVALID
               : status == IRIS_OK || status == IRIS_ERR_INVALID);
    fuzz_wait(fuzz);
}

/* ---- struct iris_plan_segment, iris_plan_options ---- */

/* Returns whether one of both is wrong. */
static int spoil_plan(struct fuzz *fuzz, struct iris_plan_segment *segment,
                      struct iris_plan_options *options)
{
    switch (fuzz_choose(fuzz, 8)) {
    case 0:
        options->size = fuzz_choose(fuzz, 8);
        return 1;
    case 1:
        options->first_epoch = (uint32_t)fuzz_edge(fuzz);
        return 0;
    case 2:
        segment->from_rank = -1;
        return 1;
    case 3:
        segment->to_rank = iris_num_ranks(fuzz->iris);
        return 1;
    case 4:
        segment->bytes = fuzz_one_in(fuzz, 2) ? 0 : ((size_t)1 << 30) + 1;
        return 1;
    case 5:
        segment->batch = fuzz_one_in(fuzz, 2) ? -1 : 32;
        return 1;
    case 6:
        segment->dst = fuzz->host;
        return 1;
    default:
        return 0;
    }
}

void fuzz_plans(struct fuzz *fuzz)
{
    struct iris_plan_segment segment = {.to_rank =
                                            iris_num_ranks(fuzz->iris) - 1,
                                        .src = fuzz->block,
                                        .dst = fuzz->block + FUZZ_BYTES / 2,
                                        .bytes = 64};
    struct iris_plan_options options;
    iris_plan_t *plan;
    iris_status_t status;
    int bad;

    iris_plan_options_init(&options);
    bad = spoil_plan(fuzz, &segment, &options);
    status = iris_plan_create(fuzz->iris, &segment, 1, &options, &plan);
    EXPECT("iris_plan_create", status,
           status == (bad ? IRIS_ERR_INVALID : IRIS_OK));
    if (status == IRIS_OK) {
        status = iris_plan_destroy(fuzz->iris, plan);
        EXPECT("iris_plan_destroy", status, status == IRIS_OK);
    }
}
