/* SPDX-License-Identifier: MIT
 *
 * The kernels of collectives by packets, and of groups of one member. The
 * kernel of a small call takes longer to fetch its instructions than to send
 * its packets, so the frequent reductions, and the moves, have kernels of their
 * own, in which types and operations are constants.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_PACKET_H
#define IRIS_DEVICE_KERNELS_CCL_PACKET_H

#include <iris/device/kernels/ccl_exchange.h>

/* A reduction with one member, which has no workspace. It multiplies the
 * elements by the call's factor, and replaces NaNs by those that results have. */
IRIS_DEVICE void iris_d_ccl_alone(iris_wg_t wg,
                                  const struct iris_ccl_packet_args *args)
{
    const void *in = iris_d_global((uintptr_t)args->in);
    void *out = iris_d_global((uintptr_t)args->out);

    switch (args->kind) {
/* clang-format off */
#define IRIS_D_QUIET(name, c_type, bits, infinity, quiet, factor)              \
    case IRIS_D_KIND_##name:                                                   \
        if (args->scale.factor != 1) {                                         \
            IRIS_LANES (wg, i, args->bytes / sizeof(c_type)) {                 \
                ((c_type *)out)[i] = iris_d_narrow_##name(IRIS_D_SCALE_##name( \
                    iris_d_widen_##name(((const c_type *)in)[i]),              \
                    args->scale));                                             \
            }                                                                  \
            break;                                                             \
        }                                                                      \
        IRIS_LANES (wg, i, args->bytes / sizeof(bits)) {                       \
            bits word = ((const bits *)in)[i];                                 \
            bits magnitude = (bits)(word << 1);                                \
            ((bits *)out)[i] = magnitude > (bits)((infinity) << 1) ? (quiet)   \
                                                                   : word;     \
        }                                                                      \
        break;
        /* clang-format on */
        IRIS_D_QUIET(f16, iris_f16_t, iris_d_u16_t, 0x7c00u, 0x7e00, f32)
        IRIS_D_QUIET(bf16, iris_bf16_t, iris_d_u16_t, 0x7f80u, 0x7fc0, f32)
        IRIS_D_QUIET(f32, float, iris_d_u32_t, 0x7f800000u, 0x7fc00000, f32)
        IRIS_D_QUIET(f64, double, iris_d_u64_t, (uint64_t)0x7ff << 52,
                     (uint64_t)0xfff << 51, f64)
#undef IRIS_D_QUIET
#define IRIS_D_ROW(name, c_type, arg)                                        \
    case IRIS_D_KIND_##name:                                                 \
        IRIS_LANES (wg, i, args->bytes / sizeof(c_type)) {                   \
            ((c_type *)out)[i] = iris_d_narrow_##name(IRIS_D_SCALE_##name(   \
                iris_d_widen_##name(((const c_type *)in)[i]), args->scale)); \
        }                                                                    \
        break;
        IRIS_FLOAT8_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW
    default: /* the host copies them */
        break;
    }
}

/* One workgroup processes unit u of each member's part, in every step of a
 * kernel and on every member. Therefore the rule about two parities
 * (iris_ccl_space) holds for each workgroup by itself. The next kernel divides
 * the units in another way, so all workgroups of a kernel with several end it
 * together. A kernel has reductions or moves. */
IRIS_DEVICE void iris_d_ccl_pieces(iris_wg_t wg, iris_d_ccl_step_t *step,
                                   const struct iris_ccl_packet_args *args)
{
    size_t done;

    for (done = 0; done < args->bytes; done += args->piece) {
        iris_d_ccl_next_piece(step, args, done);
        iris_d_ccl_one_step(wg, step, args);
    }
    if (done > args->piece) {
        iris_d_ccl_bye(wg, &step->ccl);
    }
}

/* Any reduction, any number of members, and groups of one member. */
IRIS_KERNEL(iris_k_ccl_packet, struct iris_ccl_packet_args)
{
    iris_d_ccl_step_t step;

    if (args->start.space == NULL) {
        iris_d_ccl_alone(wg, args);
        return;
    }
    step.ccl = iris_d_ccl_begin(wg, &args->start);
    iris_d_ccl_step_init(&step, args, NULL);
    iris_d_ccl_pieces(wg, &step, args);
    iris_d_ccl_end(wg, &step.ccl);
}

/* Reductions of one kind, or moves, in a group of at most IRIS_CCL_NEAR
 * members: the first packet waits for two loads only, the step's number and the
 * data. */
IRIS_DEVICE void iris_d_ccl_near(iris_wg_t wg,
                                 const struct iris_ccl_packet_args *args,
                                 iris_bool_t reduces, enum iris_d_kind kind,
                                 iris_reduce_op_t op)
{
    iris_d_u64_t *epochs =
        (iris_d_u64_t *)iris_d_global((uintptr_t)args->near.epochs);
    iris_d_ccl_step_t step;

    step.ccl = iris_d_ccl_of(&args->start, 0);
    step.ccl.count = args->near.count;
    step.ccl.index = args->near.index;
    iris_d_ccl_begin_at(wg, &step.ccl, epochs);
    iris_d_ccl_step_init(&step, args, &args->near);
    step.reduces = reduces;
    step.kind = kind;
    step.op = op;
    iris_d_ccl_pieces(wg, &step, args);
    iris_d_ccl_end_at(wg, &step.ccl, epochs, args->near.max_wgs);
}

/* Collectives that only move data. */
IRIS_KERNEL(iris_k_ccl_packet_move, struct iris_ccl_packet_args)
{
    iris_d_ccl_near(wg, args, 0, IRIS_D_KIND_u8, IRIS_REDUCE_SUM);
}

/* The frequent reductions: X(name, kind, op). */
#define IRIS_CCL_PACKET_ROWS(X)                    \
    X(f32_sum, IRIS_D_KIND_f32, IRIS_REDUCE_SUM)   \
    X(f32_max, IRIS_D_KIND_f32, IRIS_REDUCE_MAX)   \
    X(bf16_sum, IRIS_D_KIND_bf16, IRIS_REDUCE_SUM) \
    X(bf16_max, IRIS_D_KIND_bf16, IRIS_REDUCE_MAX) \
    X(f16_sum, IRIS_D_KIND_f16, IRIS_REDUCE_SUM)   \
    X(f16_max, IRIS_D_KIND_f16, IRIS_REDUCE_MAX)   \
    X(i32_sum, IRIS_D_KIND_i32, IRIS_REDUCE_SUM)   \
    X(i32_max, IRIS_D_KIND_i32, IRIS_REDUCE_MAX)

/* For f32_sum: IRIS_KERNEL(iris_k_ccl_packet_f32_sum, ...). */
#define IRIS_D_ROW(name, kind, op)                                     \
    IRIS_KERNEL(iris_k_ccl_packet_##name, struct iris_ccl_packet_args) \
    {                                                                  \
        iris_d_ccl_near(wg, args, 1, kind, op);                        \
    }
IRIS_CCL_PACKET_ROWS(IRIS_D_ROW)
#undef IRIS_D_ROW

#endif /* IRIS_DEVICE_KERNELS_CCL_PACKET_H */
