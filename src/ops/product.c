/* SPDX-License-Identifier: MIT
 *
 * The product of two matrices on a stream.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>
#include <iris/device/kernels/matmul_args.h>

#include "context/context.h"
#include "ops/kernels.h"
#include "queue/kernels.h"
#include "queue/queue.h"

#include <stdatomic.h>

#define LANES 256
#define WGS_PER_CU 8
/* Number of elements of the result that justify a workgroup: on a GPU those of
 * its lanes, on the CPU a tile. */
#define CPU_ELEMENTS_PER_WG 2048

static struct iris_d_matrix matrix_of(const iris_tensor_t *tensor)
{
    struct iris_d_matrix matrix = {tensor->data, tensor->strides[0],
                                   tensor->strides[1]};

    return matrix;
}

static struct iris_d_matrix bias_of(const struct iris_ops_product *product)
{
    struct iris_d_matrix matrix = {0};
    int64_t stride;

    if (product->bias != NULL) {
        stride = product->bias->strides[0];
        matrix.row = product->bias_by_row ? stride : 0;
        matrix.data = product->bias->data;
        matrix.col = product->bias_by_row ? 0 : stride;
    }
    return matrix;
}

static unsigned grid_for(const iris_t *iris, uint64_t elements)
{
    uint64_t each =
        iris_i_device(iris)->wavefront > 1 ? LANES : CPU_ELEMENTS_PER_WG;
    uint64_t grid = (elements + each - 1) / each;
    uint64_t most = (uint64_t)iris_i_device(iris)->num_cus * WGS_PER_CU;

    return (unsigned)(grid < most ? grid : most);
}

/* Multiplies by the library's own kernels. */
static iris_status_t launch_plain(iris_t *iris,
                                  const struct iris_blas_product *what,
                                  iris_stream_t *stream)
{
    struct iris_matmul_args args = {.a = what->a,
                                    .b = what->b,
                                    .bias = what->bias,
                                    .out = what->out,
                                    .out_row = what->out_row,
                                    .m = (uint64_t)what->m,
                                    .n = (uint64_t)what->n,
                                    .k = (uint64_t)what->k};
    struct iris_launch_request request = {iris_i_matmul_kernel(what->dtype),
                                          grid_for(iris, args.m * args.n),
                                          LANES,
                                          &args,
                                          sizeof args,
                                          true};

    return iris_i_launch(iris_i_queue(iris), &request, stream);
}

static iris_status_t launch_on_cpu(iris_t *iris,
                                   const struct iris_blas_cpu_args *args,
                                   iris_stream_t *stream)
{
    /* Not as a kernel of the library: a waiting host may run those itself. A
     * third party's library may never return, and the deadline has to pass
     * then. */
    struct iris_launch_request request = {iris_i_blas_kernel(), 1,    1, args,
                                          sizeof *args,         false};

    return iris_i_launch(iris_i_queue(iris), &request, stream);
}

/* ---- By a GPU's library ---- */

struct gpu_call {
    const struct iris_blas_cpu_args *args;
    char why[IRIS_BLAS_WHY_BYTES]; /* empty: the library was not called */
};

static iris_status_t call_library(void *native, void *what)
{
    struct gpu_call *call = what;

    return call->args->blas->product(call->args->state, &call->args->what,
                                     native, call->why);
}

static void say_own(const iris_t *iris, const struct gpu_call *call)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const struct iris_blas_product *what = &call->args->what;

    if (!atomic_flag_test_and_set(&said)) {
        iris_i_debug(iris_i_log(iris),
                     "a product of %lld by %lld by %lld takes the library's "
                     "own kernel, which is slow: %s: %s",
                     (long long)what->m, (long long)what->n, (long long)what->k,
                     call->args->blas->name, call->why);
    }
}

static int library_adds(const struct iris_blas_product *what)
{
    return what->bias.row == 0 && (what->bias.col == 1 || what->n == 1) &&
           (uintptr_t)what->bias.data % IRIS_BLAS_ALIGNMENT == 0;
}

/* Copies any other bias to out ahead of the sums, which are added to it in
 * f32. */
static iris_status_t put_bias(iris_t *iris, struct iris_blas_product *what,
                              iris_stream_t *stream)
{
    iris_tensor_t bias = {.data = (void *)(uintptr_t)what->bias.data,
                          .dtype = what->dtype,
                          .ndim = 2,
                          .shape = {what->m, what->n},
                          .strides = {what->bias.row, what->bias.col}};
    iris_tensor_t out = {.data = what->out,
                         .dtype = what->dtype,
                         .ndim = 2,
                         .shape = {what->m, what->n},
                         .strides = {what->out_row, 1}};

    what->bias.data = NULL;
    what->adds = 1;
    return iris_tensor_copy(iris, &out, &bias, stream);
}

static iris_status_t enqueue_on_gpu(iris_t *iris,
                                    struct iris_blas_cpu_args *args,
                                    iris_stream_t *stream)
{
    struct iris_blas_product plain = args->what;
    struct gpu_call call = {.args = args};
    struct iris_stream *resolved;
    iris_status_t status =
        iris_i_stream_resolve(iris_i_queue(iris), stream, &resolved);

    if (status == IRIS_OK && plain.bias.data != NULL && !library_adds(&plain)) {
        status = put_bias(iris, &args->what, stream);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_queue_call(resolved, call_library, &call);
    if (status == IRIS_ERR_UNSUPPORTED) {
        say_own(iris, &call);
        return launch_plain(iris, &plain, stream);
    }
    return call.why[0] == '\0'
               ? iris_i_fail_on(iris_i_log(iris), status)
               : iris_i_fail(iris_i_log(iris), status, "a product by %s: %s",
                             args->blas->name, call.why);
}

/* ---- The choice ---- */

/* Multiplies by a GPU's library or the core's own kernels. Their bits do not
 * depend on how rows are cut. */
static iris_status_t enqueue_rows(iris_t *iris, struct iris_blas_cpu_args *args,
                                  iris_stream_t *stream)
{
    return args->blas != NULL && args->blas->on_gpu
               ? enqueue_on_gpu(iris, args, stream)
               : launch_plain(iris, &args->what, stream);
}

/* Number of rows from `row` on without a gap in between. */
static int64_t run_of(struct iris_blas_gaps gaps, int64_t row)
{
    return row < gaps.first ? gaps.first - row
                            : gaps.each - (row - gaps.first) % gaps.each;
}

/* A product for each run of rows without a gap. */
static iris_status_t enqueue_runs(iris_t *iris,
                                  const struct iris_blas_cpu_args *args,
                                  iris_stream_t *stream)
{
    const struct iris_blas_product *what = &args->what;
    int64_t size = (int64_t)iris_dtype_size(what->dtype);
    iris_status_t status = IRIS_OK;

    for (int64_t row = 0; row < what->m && status == IRIS_OK;) {
        struct iris_blas_cpu_args run = *args;
        int64_t rows = run_of(what->gaps, row);

        run.what.begin = what->begin + row;
        run.what.m = rows < what->m - row ? rows : what->m - row;
        run.what.a.data = (const char *)what->a.data + row * what->a.row * size;
        run.what.out = (char *)what->out + iris_i_blas_place(what->gaps, row) *
                                               what->out_row * size;
        if (what->bias.data != NULL) {
            run.what.bias.data =
                (const char *)what->bias.data + row * what->bias.row * size;
        }
        status = enqueue_rows(iris, &run, stream);
        row += run.what.m;
    }
    return status;
}

iris_status_t iris_i_ops_product(iris_t *iris,
                                 const struct iris_ops_product *product,
                                 iris_stream_t *stream)
{
    struct iris_blas_cpu_args args = {
        .backend = iris_i_backend(iris),
        .what = {.a = matrix_of(&product->a),
                 .b = matrix_of(&product->b),
                 .bias = bias_of(product),
                 .out = product->out.data,
                 .out_row = product->out.strides[0],
                 .m = product->out.shape[0],
                 .n = product->out.shape[1],
                 .k = product->a.shape[1],
                 .begin = product->begin,
                 .whole = product->whole == 0 ? product->out.shape[0]
                                              : product->whole,
                 .dtype = product->out.dtype,
                 .gaps = product->gaps}};
    iris_status_t status = IRIS_OK;

    if (args.what.m == 0 || args.what.n == 0) {
        return IRIS_OK;
    }
    status = iris_i_ops_blas(iris, &args.blas, &args.state);
    if (status != IRIS_OK) {
        return status;
    }
    /* Libraries need not write sums of nothing. */
    if (args.blas != NULL &&
        (args.what.k == 0 || !iris_i_blas_takes(&args.what))) {
        args.blas = NULL;
    }
    return args.blas != NULL && !args.blas->on_gpu
               ? launch_on_cpu(iris, &args, stream)
               : enqueue_runs(iris, &args, stream);
}
