/* SPDX-License-Identifier: MIT
 *
 * An operation as one kernel, whose workgroups are divided between the product
 * and the transport of its tiles (device/kernels/ops_fused.h).
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>
#include <iris/device/wg/tile_sums.h>

#include "ops/kernels.h"
#include "queue/kernels.h"
#include "queue/queue.h"

#define LANES 256
/* Tiles in parts of k, so that there is work for all processors, and the least
 * depth and the most parts. */
#define ITEMS 1024
#define LEAST_DEPTH 256
#define MOST_PARTS 16

#define TILE (IRIS_SUMS_ROWS * IRIS_SUMS_COLS)

static uint32_t count_blocks(int64_t n, int64_t size)
{
    return (uint32_t)((n + size - 1) / size);
}

static uint64_t count_tiles(const struct iris_ops_call *call)
{
    return (uint64_t)count_blocks(call->m, IRIS_SUMS_ROWS) *
           count_blocks(call->n, IRIS_SUMS_COLS);
}

/* The parts of k, which depend on the sizes alone: so do the bits. */
static uint32_t count_parts(const struct iris_ops_call *call)
{
    uint64_t parts = ITEMS / count_tiles(call);
    uint64_t most = (uint64_t)call->k / LEAST_DEPTH;

    most = most < MOST_PARTS ? most : MOST_PARTS;
    parts = parts < most ? parts : most;
    return parts == 0 ? 1 : (uint32_t)parts;
}

/* The gathered matrix or the products, ahead of the parts of tiles. */
static size_t kept_bytes(const struct iris_ops_call *call)
{
    int64_t elements = call->op == IRIS_OPS_ALL_GATHER_MATMUL
                           ? call->m * call->k
                       : call->members == 1 ? 0
                                            : call->members * call->m * call->n;
    size_t bytes = (size_t)elements * iris_dtype_size(call->b->dtype);

    return (bytes + IRIS_ALIGNMENT - 1) / IRIS_ALIGNMENT * IRIS_ALIGNMENT;
}

size_t iris_i_ops_fused_bytes(const struct iris_ops_call *call)
{
    int is_one = (call->op == IRIS_OPS_MATMUL_ALL_REDUCE ||
                  call->op == IRIS_OPS_ALL_GATHER_MATMUL) &&
                 call->members <= IRIS_OPS_FUSED_MEMBERS &&
                 call->m <= INT32_MAX && call->n <= INT32_MAX &&
                 call->k <= INT32_MAX && call->m > 0 && call->n > 0 &&
                 call->k > 0;

    return is_one ? kept_bytes(call) + count_tiles(call) * count_parts(call) *
                                           TILE * sizeof(float)
                  : 0;
}

static struct iris_d_matrix view_matrix(const iris_tensor_t *tensor)
{
    struct iris_d_matrix matrix = {tensor->data, tensor->strides[0],
                                   tensor->strides[1]};

    return matrix;
}

/* Only member 0 adds its bias to a sum. */
static struct iris_d_matrix view_bias(const struct iris_ops_call *call)
{
    const iris_tensor_t *bias = call->options.bias;
    struct iris_d_matrix matrix = {NULL, 0, 0};

    if (bias != NULL &&
        (call->index == 0 || call->op == IRIS_OPS_ALL_GATHER_MATMUL)) {
        matrix.data = bias->data;
        *(call->options.bias_by_row ? &matrix.row : &matrix.col) =
            bias->strides[0];
    }
    return matrix;
}

/* Cuts k, the tiles and the rows of `a`, so that each member has a flag for
 * each part. */
static void cut_call(const struct iris_ops_call *call,
                     struct iris_ops_fused_args *args)
{
    uint32_t rows = IRIS_SUMS_ROWS;

    args->parts = args->in_order ? 1 : count_parts(call);
    args->depth = count_blocks(count_blocks(call->k, args->parts), 64) * 64;
    args->parts = count_blocks(call->k, args->depth);
    args->per_slot =
        (uint32_t)((count_tiles(call) - 1) / IRIS_OPS_FUSED_SLOTS + 1);
    args->block =
        rows * count_blocks(count_blocks(call->m, rows),
                            IRIS_OPS_FUSED_SLOTS / (int64_t)args->parts);
}

/* Divides the workgroups, at most four for each processor: returns their
 * number. */
static unsigned divide_workgroups(const iris_t *iris,
                                  const struct iris_ops_call *call,
                                  struct iris_ops_fused_args *args)
{
    uint64_t cus = (uint64_t)iris_i_device(iris)->num_cus;
    uint64_t items = count_tiles(call) * args->parts;
    uint64_t slots = (count_tiles(call) - 1) / args->per_slot + 1;

    args->pushers = call->op == IRIS_OPS_ALL_GATHER_MATMUL && call->members > 1
                        ? (uint32_t)(cus + 1) / 2
                        : 0;
    args->products = (uint32_t)(items < 2 * cus ? items : 2 * cus);
    slots = slots < cus ? slots : cus;
    return args->pushers + args->products + (unsigned)slots;
}

iris_status_t iris_i_ops_fused(iris_t *iris, const struct iris_ops_call *call)
{
    const struct iris_compared compared = {
        .op = IRIS_COMPARED_MATMUL_ALL_REDUCE + (int)call->op,
        .dtype = (int)call->b->dtype,
        .root = IRIS_OPS_KERNEL,
        .sizes = {(uint64_t)call->m, (uint64_t)call->n, (uint64_t)call->k}};
    struct iris_ops_fused_args args = {
        .context = iris_i_queue_context(iris_i_queue(iris)),
        .meetings = call->meetings,
        .progress =
            (struct iris_ops_progress *)(void *)(call->meetings +
                                                 iris_i_num_ranks(iris)),
        .call = iris_i_compared_pack(&compared),
        .a = view_matrix(call->a),
        .b = view_matrix(call->b),
        .bias = view_bias(call),
        .kept = call->memory,
        .partial = (float *)(void *)(call->memory + kept_bytes(call)),
        .out = call->out->data,
        .out_row = call->out->strides[0],
        .m = (uint32_t)call->m,
        .n = (uint32_t)call->n,
        .k = (uint32_t)call->k,
        .by_column = (uint32_t)call->by_column,
        .members = (uint32_t)call->members,
        .index = (uint32_t)call->index};
    struct iris_launch_request request = {
        iris_i_ops_fused_kernel(call->b->dtype),
        0,
        LANES,
        &args,
        sizeof args,
        true};
    const struct iris_blas *blas;
    void *state;
    iris_status_t status = iris_i_ops_blas(iris, &blas, &state);

    /* Without a library, the bits of the product that takes its place. */
    args.in_order = blas == NULL;
    for (int64_t i = 0; i < call->members; i++) {
        args.ranks[i] = call->group->ranks[i];
    }
    cut_call(call, &args);
    request.grid = divide_workgroups(iris, call, &args);
    return status == IRIS_OK ? iris_i_launch(iris_i_queue(iris), &request,
                                             call->options.stream)
                             : status;
}
