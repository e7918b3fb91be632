/* SPDX-License-Identifier: MIT
 *
 * What library.py has to know of the library's kernels: where the members of
 * their arguments are, values of enums, and how a workspace is laid out.
 */
#include <stddef.h>

#include <iris/device/kernels/ccl_fold.h>
#include <iris/device/kernels/ccl_space.h>
#include <iris/device/kernels/fill_args.h>
#include <iris/device/kernels/matmul_args.h>
#include <iris/device/kernels/ops_args.h>
#include <iris/device/kernels/random_args.h>
#include <iris/device/kernels/signal_args.h>

#include "wg_args.h"

struct emu_name {
    const char *name;
    size_t at; /* of a member; or the value */
    size_t bytes;
};

/* clang-format off */
#define MEMBER(type, member)                                                   \
    {#type "." #member, offsetof(struct type, member),                         \
     sizeof ((struct type *)0)->member}
#define ALL(type) {#type, 0, sizeof(struct type)}
#define START(type)                                                            \
    ALL(type), MEMBER(type, start.context), MEMBER(type, start.space),         \
    MEMBER(type, start.call), MEMBER(type, start.steps),                       \
    MEMBER(type, in), MEMBER(type, out), MEMBER(type, bytes)

const struct emu_name emu_members[] = {
    START(iris_ccl_reduce_args), MEMBER(iris_ccl_reduce_args, kind),
    MEMBER(iris_ccl_reduce_args, op), MEMBER(iris_ccl_reduce_args, shape),
    MEMBER(iris_ccl_reduce_args, rows), MEMBER(iris_ccl_reduce_args, in_pitch),
    MEMBER(iris_ccl_reduce_args, out_pitch),
    MEMBER(iris_ccl_reduce_args, striding),
    MEMBER(iris_ccl_reduce_args, own_rows), MEMBER(iris_ccl_reduce_args, rings),
    MEMBER(iris_ccl_reduce_args, root), MEMBER(iris_ccl_reduce_args, scale.f64),
    MEMBER(iris_ccl_reduce_args, scale.f32),
    MEMBER(iris_ccl_reduce_args, near), MEMBER(iris_ccl_move_args, near),
    MEMBER(iris_ccl_packet_args, near),
    MEMBER(iris_ccl_space, slots), MEMBER(iris_ccl_space, hellos),
    MEMBER(iris_ccl_space, byes), MEMBER(iris_ccl_space, call),
    MEMBER(iris_ccl_space, epochs), MEMBER(iris_ccl_space, slot_bytes),
    MEMBER(iris_ccl_space, max_wgs),

    START(iris_ccl_move_args), MEMBER(iris_ccl_move_args, in_of_peer),
    MEMBER(iris_ccl_move_args, in_of_self),
    MEMBER(iris_ccl_move_args, out_of_peer),
    MEMBER(iris_ccl_move_args, out_of_self), MEMBER(iris_ccl_move_args, rows),
    MEMBER(iris_ccl_move_args, in_pitch), MEMBER(iris_ccl_move_args, out_pitch),
    MEMBER(iris_ccl_move_args, pull), MEMBER(iris_ccl_move_args, root),

    START(iris_ccl_packet_args), MEMBER(iris_ccl_packet_args, piece),
    MEMBER(iris_ccl_packet_args, kind), MEMBER(iris_ccl_packet_args, op),
    MEMBER(iris_ccl_packet_args, exchange), MEMBER(iris_ccl_packet_args, root),
    MEMBER(iris_ccl_packet_args, to_root), MEMBER(iris_ccl_packet_args, scale.f64),
    MEMBER(iris_ccl_packet_args, scale.f32),

    ALL(iris_ccl_pairs_args), MEMBER(iris_ccl_pairs_args, start.context),
    MEMBER(iris_ccl_pairs_args, start.space),
    MEMBER(iris_ccl_pairs_args, start.call),
    MEMBER(iris_ccl_pairs_args, start.steps),
    MEMBER(iris_ccl_pairs_args, in), MEMBER(iris_ccl_pairs_args, out),
    MEMBER(iris_ccl_pairs_args, bytes_per_wg),
    MEMBER(iris_ccl_pairs_args, most_wgs), MEMBER(iris_ccl_pairs_args, first),
    MEMBER(iris_ccl_pairs_args, count), MEMBER(iris_ccl_pairs_args, meets),
    MEMBER(iris_ccl_pairs_args, checks), MEMBER(iris_ccl_pairs_args, reads),
    MEMBER(iris_ccl_pairs_args, routes),

    ALL(emu_wg_args), MEMBER(emu_wg_args, handle.context),
    MEMBER(emu_wg_args, handle.spaces), MEMBER(emu_wg_args, handle.stride),
    MEMBER(emu_wg_args, handle.piece), MEMBER(emu_wg_args, handle.max_wgs),
    MEMBER(emu_wg_args, in), MEMBER(emu_wg_args, out),
    MEMBER(emu_wg_args, count), MEMBER(emu_wg_args, rows),
    MEMBER(emu_wg_args, gaps),
    MEMBER(emu_wg_args, root),

    ALL(iris_fill_args), MEMBER(iris_fill_args, data),
    MEMBER(iris_fill_args, bytes), MEMBER(iris_fill_args, pattern),
    ALL(iris_fill_strided_args), MEMBER(iris_fill_strided_args, data),
    MEMBER(iris_fill_strided_args, shape.sizes),
    MEMBER(iris_fill_strided_args, shape.ndim),
    MEMBER(iris_fill_strided_args, shape.width),
    MEMBER(iris_fill_strided_args, shape.count),
    MEMBER(iris_fill_strided_args, strides),
    MEMBER(iris_fill_strided_args, element),
    ALL(iris_copy_strided_args), MEMBER(iris_copy_strided_args, to),
    MEMBER(iris_copy_strided_args, from),
    MEMBER(iris_copy_strided_args, shape.sizes),
    MEMBER(iris_copy_strided_args, shape.ndim),
    MEMBER(iris_copy_strided_args, shape.width),
    MEMBER(iris_copy_strided_args, shape.count),
    MEMBER(iris_copy_strided_args, to_strides),
    MEMBER(iris_copy_strided_args, from_strides),
    ALL(iris_row_args), MEMBER(iris_row_args, data),
    MEMBER(iris_row_args, count), MEMBER(iris_row_args, stride),
    MEMBER(iris_row_args, whole_start), MEMBER(iris_row_args, whole_step),
    MEMBER(iris_row_args, start), MEMBER(iris_row_args, step),
    MEMBER(iris_row_args, end),

    ALL(iris_random_args), MEMBER(iris_random_args, data),
    MEMBER(iris_random_args, count), MEMBER(iris_random_args, ndim),
    MEMBER(iris_random_args, half), MEMBER(iris_random_args, sizes),
    MEMBER(iris_random_args, strides), MEMBER(iris_random_args, seed),
    MEMBER(iris_random_args, sequence), MEMBER(iris_random_args, offset),
    MEMBER(iris_random_args, low), MEMBER(iris_random_args, range),
    MEMBER(iris_random_args, bias),

    ALL(iris_matmul_args), MEMBER(iris_matmul_args, a.data),
    MEMBER(iris_matmul_args, a.row), MEMBER(iris_matmul_args, a.col),
    MEMBER(iris_matmul_args, b.data), MEMBER(iris_matmul_args, b.row),
    MEMBER(iris_matmul_args, b.col), MEMBER(iris_matmul_args, bias.data),
    MEMBER(iris_matmul_args, bias.row), MEMBER(iris_matmul_args, bias.col),
    MEMBER(iris_matmul_args, out), MEMBER(iris_matmul_args, out_row),
    MEMBER(iris_matmul_args, m), MEMBER(iris_matmul_args, n),
    MEMBER(iris_matmul_args, k),
    ALL(iris_transfer_args), MEMBER(iris_transfer_args, context),
    MEMBER(iris_transfer_args, symmetric), MEMBER(iris_transfer_args, other),
    MEMBER(iris_transfer_args, bytes),
    MEMBER(iris_transfer_args, symmetric_step),
    MEMBER(iris_transfer_args, other_step), MEMBER(iris_transfer_args, rank),
    MEMBER(iris_transfer_args, gets),
    ALL(iris_ops_close_args), MEMBER(iris_ops_close_args, context),
    MEMBER(iris_ops_close_args, words), MEMBER(iris_ops_close_args, ranks),
    ALL(iris_ops_sum_args), MEMBER(iris_ops_sum_args, in),
    MEMBER(iris_ops_sum_args, out), MEMBER(iris_ops_sum_args, pitch),
    MEMBER(iris_ops_sum_args, members), MEMBER(iris_ops_sum_args, rows),
    MEMBER(iris_ops_sum_args, columns), MEMBER(iris_ops_sum_args, out_row),
    {NULL, 0, 0}};

#define VALUE(name) {#name, (size_t)name, 0}
#define KIND(name, T, arg) VALUE(IRIS_D_KIND_##name),
const struct emu_name emu_values[] = {
    IRIS_TYPES(KIND, ) VALUE(IRIS_D_KIND_f8e4m3), VALUE(IRIS_D_KIND_f8e5m2),
    VALUE(IRIS_REDUCE_SUM), VALUE(IRIS_REDUCE_PRODUCT), VALUE(IRIS_REDUCE_MIN),
    VALUE(IRIS_REDUCE_MAX), VALUE(IRIS_REDUCE_BAND), VALUE(IRIS_REDUCE_BOR),
    VALUE(IRIS_REDUCE_BXOR), VALUE(IRIS_REDUCE_AVG),
    VALUE(IRIS_CCL_WHOLE), VALUE(IRIS_CCL_TO_ALL), VALUE(IRIS_CCL_SCATTER),
    VALUE(IRIS_CCL_ADDED), VALUE(IRIS_CCL_LOCKED), VALUE(IRIS_CCL_RINGED),
    VALUE(IRIS_CCL_REDUCE_ONE), VALUE(IRIS_CCL_REDUCE_TWO),
    VALUE(IRIS_CCL_REDUCE_PARTS), VALUE(IRIS_CCL_GATHER),
    VALUE(IRIS_CCL_SWAP), VALUE(IRIS_CCL_SPREAD),
    VALUE(IRIS_OP_STORE), VALUE(IRIS_OP_ATOMIC_ADD), VALUE(IRIS_OP_WAIT),
    VALUE(IRIS_OP_PUT), VALUE(IRIS_OP_GET), VALUE(IRIS_OP_FENCE),
    VALUE(IRIS_OP_ATOMIC_CAS), VALUE(IRIS_CONTEXT_OWN_RING),
    VALUE(IRIS_OP_BARRIER), VALUE(IRIS_CONTEXT_OWN_WATCH),
    VALUE(IRIS_CONTEXT_OWN_TIMEOUT), VALUE(IRIS_CONTEXT_OWN_CLAIM),
    VALUE(IRIS_CONTEXT_OWN_TRACE), VALUE(IRIS_CONTEXT_OWN_WORDS),
    VALUE(IRIS_CONTEXT_TRACE_ENABLED), VALUE(IRIS_CONTEXT_TRACE_MAX_EVENTS),
    VALUE(IRIS_CONTEXT_TRACE_COUNTER), VALUE(IRIS_CONTEXT_TRACE_OP_INDEX),
    VALUE(IRIS_CONTEXT_TRACE_BUFFERS), VALUE(IRIS_CONTEXT_TRACE_NUM_BUFFERS),
    VALUE(IRIS_CONTEXT_TAIL_WORDS),
    {NULL, 0, 0}};
/* clang-format on */

/* The workspace of member `index` of two at `space`, with one workgroup at
 * most: laid out, every word of the part that changes 0. Returns its bytes.
 * With stages it is for collectives of workgroups, else for messages, too. */
size_t emu_lay_out(struct iris_ccl_space *space, int64_t index,
                   int64_t slot_bytes, int64_t stage_bytes)
{
    struct iris_ccl_space laid = {.count = 2,
                                  .index = index,
                                  .max_wgs = 1,
                                  .slot_bytes = slot_bytes,
                                  .stage_bytes = stage_bytes,
                                  .pair_wgs = stage_bytes == 0};

    iris_i_ccl_lay_out(&laid);
    for (int64_t i = 0; i < laid.bytes; i++) {
        ((char *)space)[i] = 0;
    }
    *space = laid;
    return (size_t)laid.bytes;
}

/* Tells the workspace where the members' are, by address 0 nothing; then it
 * forgets the addresses that it has heard of as well. */
void emu_members_are(struct iris_ccl_space *space, int64_t first, int64_t other)
{
    int64_t *members = iris_i_ccl_members(space);

    members[0] = first;
    members[1] = other;
    members[2] = 0;
    members[3] = 1;
    for (int64_t at = space->hellos; first == 0 && at < space->byes; at++) {
        ((char *)space)[at] = 0;
    }
    /* And what a rank says of its call once it has waited for long. */
    for (int64_t at = space->call; first == 0 && at < space->epochs; at++) {
        ((char *)space)[at] = 0;
    }
}
