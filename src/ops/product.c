/* SPDX-License-Identifier: MIT
 *
 * The product of two matrices on a stream.
 */
#include "config.h"

#include "ops/ops.h"

#include <iris/constants.h>
#include <iris/device/kernels/matmul_args.h>

#include "ops/kernels.h"
#include "queue/kernels.h"

#define LANES 256
#define WGS_PER_CU 8
/* Elements of the result that are worth a workgroup: on a GPU those of its
 * lanes, on the CPU a tile. */
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
        matrix.data = (const char *)product->bias->data +
                      product->bias_begin * stride *
                          (int64_t)iris_dtype_size(product->bias->dtype);
        matrix.row = product->bias_by_row ? stride : 0;
        matrix.col = product->bias_by_row ? 0 : stride;
    }
    return matrix;
}

static unsigned grid_for(const iris_t *iris, uint64_t elements)
{
    uint64_t each = iris->device.wavefront > 1 ? LANES : CPU_ELEMENTS_PER_WG;
    uint64_t grid = (elements + each - 1) / each;
    uint64_t most = (uint64_t)iris->device.num_cus * WGS_PER_CU;

    return (unsigned)(grid < most ? grid : most);
}

iris_status_t iris_i_ops_product(iris_t *iris,
                                 const struct iris_ops_product *product,
                                 iris_stream_t *stream)
{
    const struct iris_kernel *kernel = iris_i_matmul_kernel(product->out.dtype);
    struct iris_matmul_args args = {
        .a = matrix_of(&product->a),
        .b = matrix_of(&product->b),
        .bias = bias_of(product),
        .out = product->out.data,
        .out_row = product->out.strides[0],
        .m = (uint64_t)product->out.shape[0],
        .n = (uint64_t)product->out.shape[1],
        .k = (uint64_t)product->a.shape[1],
    };
    struct iris_launch_request request = {
        kernel, grid_for(iris, args.m * args.n), LANES, &args, sizeof args,
        true};

    return args.m == 0 ? IRIS_OK
                       : iris_i_launch(&iris->queue, &request, stream);
}
