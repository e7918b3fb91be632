/* SPDX-License-Identifier: MIT
 *
 * The kernels of collectives (device/kernels/), for the CPU and, where iriscc
 * has a GPU compiler, for GPUs.
 */
#define IRIS_MAX_LANES 512 /* block size of their launches */
#include "ccl/kernels.h"

#include <iris/device/kernels/ccl_matrix.h>
#include <iris/device/kernels/ccl_move.h>
#include <iris/device/kernels/ccl_packet.h>
#include <iris/device/kernels/ccl_pairs.h>
#include <iris/device/kernels/ccl_reduce.h>
#include <iris/device/kernels/ccl_unordered.h>

const struct iris_kernel *const iris_i_ccl_move_kernel = iris_k_ccl_move;
const struct iris_kernel *const iris_i_ccl_move_near_kernel =
    iris_k_ccl_move_near;
const struct iris_kernel *const iris_i_ccl_packet_kernel = iris_k_ccl_packet;
const struct iris_kernel *const iris_i_ccl_pairs_kernel = iris_k_ccl_pairs;
const struct iris_kernel *const iris_i_ccl_unordered_kernel =
    iris_k_ccl_unordered;
const struct iris_kernel *const iris_i_ccl_matrix_kernel = iris_k_ccl_matrix;

/* Whether iris_d_ccl_once() makes the call. */
static int is_once(const struct iris_ccl_packet_args *args)
{
    return args->piece == args->bytes &&
           args->exchange != IRIS_CCL_REDUCE_TWO &&
           args->exchange != IRIS_CCL_SPREAD &&
           ((uintptr_t)args->in | (uintptr_t)args->out | args->bytes) %
                   IRIS_CCL_UNIT_BYTES ==
               0;
}

const struct iris_kernel *
iris_i_ccl_packet_near(const struct iris_ccl_packet_args *args)
{
    int once = is_once(args);

    if (args->exchange > IRIS_CCL_REDUCE_PARTS) {
        return once ? iris_k_ccl_once_move : iris_k_ccl_packet_move;
    }
#define ROW(name, row_kind, row_op)                                      \
    if (args->kind == (int)(row_kind) && args->op == (int)(row_op)) {    \
        return once ? iris_k_ccl_once_##name : iris_k_ccl_packet_##name; \
    }
    IRIS_CCL_FREQUENT_ROWS(ROW)
#undef ROW
    return iris_k_ccl_packet;
}

const struct iris_kernel *iris_i_ccl_reduce_kernel(int kind, int op,
                                                   int members)
{
    if (members > IRIS_CCL_NEAR) {
        return iris_k_ccl_reduce;
    }
#define ROW(name, row_kind, row_op)                       \
    if (kind == (int)(row_kind) && op == (int)(row_op)) { \
        return iris_k_ccl_reduce_##name;                  \
    }
    IRIS_CCL_FREQUENT_ROWS(ROW)
#undef ROW
    return iris_k_ccl_reduce;
}
