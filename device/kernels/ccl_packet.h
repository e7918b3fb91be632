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
    iris_d_ccl_step_t step;

    step.ccl = iris_d_ccl_begin_near(wg, &args->start, &args->near);
    iris_d_ccl_step_init(&step, args, &args->near);
    step.reduces = reduces;
    step.kind = kind;
    step.op = op;
    iris_d_ccl_pieces(wg, &step, args);
    iris_d_ccl_end_near(wg, &step.ccl, &args->near);
}

/* ---- In one step
 * ----------------------------------------------------------------- */

/* Unit u of the others goes to its place in `out`, and this rank's, too.
 * Returns the result of iris_d_ccl_receive(). */
IRIS_DEVICE const char *iris_d_ccl_once_move(const iris_d_ccl_step_t *step,
                                             size_t u, uint64_t own)
{
    uint32_t count = step->ccl.count, index = step->ccl.index;

    for (uint32_t first = 0; first < count; first += IRIS_CCL_POLLED) {
        uint64_t data[IRIS_CCL_POLLED] = {0};
        const char *missing =
            iris_d_ccl_receive(step, step->slots + first * step->slot_bytes, u,
                               count - first, index - first, data);

        if (IRIS_UNLIKELY(missing != NULL)) {
            return missing;
        }
        IRIS_D_UNROLL
        for (uint32_t k = 0; k < IRIS_CCL_POLLED; k++) {
            if (first + k < count) {
                ((iris_d_u64_t *)(step->out + (first + k) * step->part))[u] =
                    first + k == index ? own : data[k];
            }
        }
    }
    return NULL;
}

/* Receives unit u of all members, and writes the sum or the parts. */
IRIS_DEVICE void iris_d_ccl_once_unit(const iris_d_ccl_step_t *step,
                                      const struct iris_ccl_packet_args *args,
                                      const iris_d_u64_t *in, size_t u)
{
    const char *missing;
    uint64_t sum;

    for (;;) {
        sum = in[u];
        missing = step->reduces ? iris_d_ccl_sum(step, args, u, &sum)
                                : iris_d_ccl_once_move(step, u, sum);
        if (missing == NULL) {
            break;
        }
        iris_d_ccl_await_packet(step, missing);
    }
    if (step->reduces && step->keeps) {
        ((iris_d_u64_t *)step->out)[u] = sum;
    }
}

/* A call of one step in a group of at most IRIS_CCL_NEAR members, whose buffers
 * and bytes are multiples of a unit: each member sends each other its part, or
 * all, and keeps the sum, or the parts. A lane receives the units that it has
 * sent, so in and out may be the same. */
IRIS_DEVICE void iris_d_ccl_once(iris_wg_t wg,
                                 const struct iris_ccl_packet_args *args,
                                 iris_bool_t reduces, enum iris_d_kind kind,
                                 iris_reduce_op_t op)
{
    const char *in = (const char *)iris_d_global((uintptr_t)args->in);
    iris_bool_t parts = args->exchange == IRIS_CCL_REDUCE_PARTS ||
                        args->exchange == IRIS_CCL_SWAP;
    size_t in_part = parts ? (size_t)args->bytes : 0;
    size_t units = (size_t)args->bytes / IRIS_CCL_UNIT_BYTES;
    iris_d_ccl_step_t step;

    step.ccl = iris_d_ccl_begin_near(wg, &args->start, &args->near);
    iris_d_ccl_step_init(&step, args, &args->near);
    iris_d_ccl_next_piece(&step, args, 0);
    step.reduces = reduces;
    step.kind = kind;
    step.op = op;
    for (uint32_t i = 1; i < step.ccl.count; i++) {
        uint32_t to = iris_d_ccl_after(&step.ccl, i);
        char *slot = iris_d_ccl_slots(&step, to) + step.mine;
        const iris_d_u64_t *from = (const iris_d_u64_t *)(in + to * in_part);

        IRIS_LANES (wg, u, units) {
            iris_d_ccl_send(&step, slot, u, from[u]);
        }
    }
    in += step.ccl.index * in_part;
    IRIS_LANES (wg, u, units) {
        iris_d_ccl_once_unit(&step, args, (const iris_d_u64_t *)in, u);
    }
    iris_d_ccl_end_near(wg, &step.ccl, &args->near);
}

/* Collectives that only move data. */
IRIS_KERNEL(iris_k_ccl_packet_move, struct iris_ccl_packet_args)
{
    iris_d_ccl_near(wg, args, 0, IRIS_D_KIND_u8, IRIS_REDUCE_SUM);
}

IRIS_KERNEL(iris_k_ccl_once_move, struct iris_ccl_packet_args)
{
    iris_d_ccl_once(wg, args, 0, IRIS_D_KIND_u8, IRIS_REDUCE_SUM);
}

/* For f32_sum: iris_k_ccl_packet_f32_sum and iris_k_ccl_once_f32_sum. */
#define IRIS_D_ROW(name, kind, op)                                     \
    IRIS_KERNEL(iris_k_ccl_packet_##name, struct iris_ccl_packet_args) \
    {                                                                  \
        iris_d_ccl_near(wg, args, 1, kind, op);                        \
    }                                                                  \
    IRIS_KERNEL(iris_k_ccl_once_##name, struct iris_ccl_packet_args)   \
    {                                                                  \
        iris_d_ccl_once(wg, args, 1, kind, op);                        \
    }
IRIS_CCL_FREQUENT_ROWS(IRIS_D_ROW)
#undef IRIS_D_ROW

#endif /* IRIS_DEVICE_KERNELS_CCL_PACKET_H */
