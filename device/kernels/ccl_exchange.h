/* SPDX-License-Identifier: MIT
 *
 * Collectives by packets: data travels with its flag into the receivers'
 * workspaces, so no barrier comes before or after. Twice the bytes travel, but
 * small messages take the least time. The buffers may be any memory of the
 * rank.
 *
 * The packets are those of NCCL's low-latency protocol (LL). The exchanges are
 * those of mscclpp's allreduce_allpair_packet and allreduce_packet.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_EXCHANGE_H
#define IRIS_DEVICE_KERNELS_CCL_EXCHANGE_H

#include <iris/device/kernels/ccl_fold.h>
#include <iris/device/kernels/ccl_meet.h>
#include <iris/device/kernels/ccl_share.h>
#include <iris/device/core/vector.h>

/* Number of members whose packets a lane polls at a time. */
#if IRIS_ON_CPU
#define IRIS_CCL_POLLED 1
#else
#define IRIS_CCL_POLLED 4
#endif

/* One step. `in` and `out` are where its piece begins. */
typedef struct iris_d_ccl_step {
    iris_d_ccl_t ccl;
    const char *in;
    char *out;
    size_t bytes;      /* bytes of the piece */
    size_t units;      /* units of a part of a full piece */
    size_t part;       /* bytes from one member's part to the next */
    size_t slot_bytes; /* bytes of a slot's packets */
    char *slots;       /* this rank's slots for the step's parity */
    size_t mine;       /* offset of this rank's slot in a member's `slots` */
    iris_bool_t keeps; /* this rank writes `out` */
    iris_bool_t reduces;
    enum iris_d_kind kind;
    iris_reduce_op_t op;
    iris_d_ccl_flags_t flags;
    const struct iris_ccl_near *near; /* NULL: the workspace's header */
} iris_d_ccl_step_t;

IRIS_DEVICE size_t iris_d_ccl_units(size_t bytes)
{
    return (bytes + IRIS_CCL_UNIT_BYTES - 1) / IRIS_CCL_UNIT_BYTES;
}

/* Unit u of a part of this number of bytes. It begins before the part's end;
 * bytes behind the end are 0. Parts are aligned for their elements only. Loads
 * behind the end load the first byte again, and a mask removes it: with
 * conditional loads, ptxas 13.0 at -O3 made a wrong last byte. */
IRIS_DEVICE uint64_t iris_d_ccl_take(const char *part, size_t bytes, size_t u)
{
    const char *from = part + u * IRIS_CCL_UNIT_BYTES;
    size_t left = bytes - u * IRIS_CCL_UNIT_BYTES;
    uint64_t data = 0;

    if (left >= IRIS_CCL_UNIT_BYTES && ((uintptr_t)from & 7) == 0) {
        return *(const iris_d_u64_t *)from;
    }
    if (left >= IRIS_CCL_UNIT_BYTES && ((uintptr_t)from & 3) == 0) {
        data = ((const iris_d_u32_t *)from)[1];
        return data << 32 | ((const iris_d_u32_t *)from)[0];
    }
    IRIS_D_UNROLL
    for (unsigned i = 0; i < IRIS_CCL_UNIT_BYTES; i++) {
        data |= (uint64_t)(uint8_t)from[i < left ? i : 0] << (8 * i);
    }
    return left < IRIS_CCL_UNIT_BYTES ? data & (((uint64_t)1 << (8 * left)) - 1)
                                      : data;
}

IRIS_DEVICE void iris_d_ccl_give(char *part, size_t bytes, size_t u,
                                 uint64_t data)
{
    char *to = part + u * IRIS_CCL_UNIT_BYTES;
    size_t left = bytes - u * IRIS_CCL_UNIT_BYTES;

    if (left >= IRIS_CCL_UNIT_BYTES && ((uintptr_t)to & 7) == 0) {
        *(iris_d_u64_t *)to = data;
        return;
    }
    if (left >= IRIS_CCL_UNIT_BYTES && ((uintptr_t)to & 3) == 0) {
        ((iris_d_u32_t *)to)[0] = (uint32_t)data;
        ((iris_d_u32_t *)to)[1] = (uint32_t)(data >> 32);
        return;
    }
    left = left < IRIS_CCL_UNIT_BYTES ? left : IRIS_CCL_UNIT_BYTES;
    for (unsigned i = 0; i < (unsigned)left; i++) {
        to[i] = (char)data;
        data >>= 8;
    }
}

/* Member i's slots of this step, as this rank maps them. */
IRIS_DEVICE char *iris_d_ccl_slots(const iris_d_ccl_step_t *step, uint32_t i)
{
    const iris_d_ccl_t *ccl = &step->ccl;
    size_t parity = (size_t)(ccl->epoch & 1) * ccl->count * step->slot_bytes;

    if (step->near != NULL) {
        return iris_d_ccl_near_at(step->near, i, step->near->slots) + parity;
    }
    return iris_d_ccl_peer(ccl, i, &ccl->space->slots) + parity;
}

IRIS_DEVICE void iris_d_ccl_send(const iris_d_ccl_step_t *step, char *slot,
                                 size_t u, uint64_t data)
{
    iris_d_store_pair(
        (iris_d_u64_t *)(slot + u * IRIS_CCL_PACKET_BYTES),
        iris_d_ccl_half((uint32_t)data, step->flags.low),
        iris_d_ccl_half((uint32_t)(data >> 32), step->flags.high));
}

/* One poll of a packet. Returns NULL if both halves are of this call and this
 * step, else the half that is missing, or the first one of two. */
IRIS_DEVICE const char *iris_d_ccl_poll(const iris_d_ccl_step_t *step,
                                        const char *packet, uint64_t *data_p)
{
    uint64_t low, high;

    iris_d_load_pair((iris_d_u64_t *)packet, &low, &high);
    *data_p = high << 32 | (uint32_t)low;
    if ((uint32_t)(low >> 32) != step->flags.low) {
        return packet;
    }
    return (uint32_t)(high >> 32) == step->flags.high ? NULL : packet + 8;
}

/* Waits for a half of a packet of this step. It is the one that was missing:
 * halves of another call may have one of this call's flags, and a wait for that
 * one would end at once, each time, and never look at the peers' calls. */
IRIS_DEVICE void iris_d_ccl_await_packet(const iris_d_ccl_step_t *step,
                                         const char *half)
{
    iris_bool_t is_high = ((uintptr_t)half & 8) != 0;

    iris_d_ccl_wait_on(
        &step->ccl, half + 4,
        iris_d_ccl_condition(IRIS_D_KIND_u32, IRIS_CMP_EQ,
                             is_high ? step->flags.high : step->flags.low));
}

/* Waits for the packets of unit u in `count` slots from `slot` on, at most
 * IRIS_CCL_POLLED, except packet `skip`, which is this rank's own. Returns
 * NULL, or the half of a packet for which the caller has to wait out of line, and then
 * begin the unit anew: so no values have to be kept during the wait. */
IRIS_DEVICE const char *iris_d_ccl_receive(const iris_d_ccl_step_t *step,
                                           const char *slot, size_t u,
                                           uint32_t count, uint32_t skip,
                                           uint64_t *data)
{
    const char *missing, *packet = slot + u * IRIS_CCL_PACKET_BYTES;

    for (uint32_t polls = 0;; polls++) {
        missing = NULL;
        IRIS_D_UNROLL
        for (uint32_t k = 0; k < IRIS_CCL_POLLED; k++) {
            const char *half =
                k < count && k != skip
                    ? iris_d_ccl_poll(step, packet + k * step->slot_bytes,
                                      &data[k])
                    : NULL;

            missing = half != NULL ? half : missing;
        }
        if (missing == NULL ||
            (IRIS_D_CALLS && polls == IRIS_CCL_POLLS_AT_ONCE)) {
            return missing;
        }
        if (IRIS_D_CALLS) {
            iris_d_pause();
        } else {
            iris_d_ccl_await_packet(step, missing);
        }
    }
}

/* ---- Reductions ---------------------------------------------------------- */

/* Combines unit u of all members. *unit_p is this rank's unit, and receives the
 * sum. Returns the result of iris_d_ccl_receive(). */
IRIS_DEVICE const char *iris_d_ccl_sum(const iris_d_ccl_step_t *step,
                                       const struct iris_ccl_packet_args *args,
                                       size_t u, uint64_t *unit_p)
{
    enum iris_d_kind kind = step->kind;
    iris_reduce_op_t op = step->op;
    uint32_t count = step->ccl.count, index = step->ccl.index;
    iris_d_block_t block;
    iris_d_sums_t sums;

    for (uint32_t first = 0; first < count; first += IRIS_CCL_POLLED) {
        uint64_t data[IRIS_CCL_POLLED] = {0};
        const char *missing =
            iris_d_ccl_receive(step, step->slots + first * step->slot_bytes, u,
                               count - first, index - first, data);

        if (IRIS_UNLIKELY(missing != NULL)) {
            return missing;
        }
        for (uint32_t k = 0; k < IRIS_CCL_POLLED && first + k < count; k++) {
            uint64_t unit = first + k == index ? *unit_p : data[0];

            block.words[0] = (uint32_t)unit;
            block.words[1] = (uint32_t)(unit >> 32);
            if (first + k == 0) {
                iris_d_fold_begin(kind, &sums, &block, IRIS_CCL_UNIT_BYTES);
            } else {
                iris_d_fold(kind, op, &sums, &block, IRIS_CCL_UNIT_BYTES);
            }
            IRIS_D_UNROLL
            for (uint32_t j = 1; j < IRIS_CCL_POLLED; j++) {
                data[j - 1] = data[j]; /* registers cannot be indexed */
            }
        }
    }
    iris_d_fold_finish(kind, &block, &sums, args->scale, IRIS_CCL_UNIT_BYTES);
    *unit_p = (uint64_t)block.words[1] << 32 | block.words[0];
    return NULL;
}

/* The bytes that this rank sends to member i: all, a share, or a part. */
IRIS_DEVICE iris_d_ccl_share_t iris_d_ccl_meant(const iris_d_ccl_step_t *step,
                                                int exchange, uint32_t i)
{
    iris_d_ccl_share_t all = {0, step->bytes};

    if (exchange == IRIS_CCL_REDUCE_TWO) {
        return iris_d_ccl_share(i, step->ccl.count, step->bytes);
    }
    if (exchange == IRIS_CCL_REDUCE_PARTS) {
        all.begin = i * step->part;
    }
    return all;
}

/* Combines unit u of this rank's share or part. Sends the sum of a share to
 * all. */
IRIS_DEVICE void
iris_d_ccl_exchange_unit(const iris_d_ccl_step_t *step,
                         const struct iris_ccl_packet_args *args,
                         iris_d_ccl_share_t mine, size_t u)
{
    iris_bool_t shares = args->exchange == IRIS_CCL_REDUCE_TWO;
    uint32_t count = shares ? step->ccl.count : 1;
    const char *missing;
    uint64_t sum;

    for (;;) {
        sum = iris_d_ccl_take(step->in + mine.begin, mine.bytes, u);
        missing = iris_d_ccl_sum(step, args, u, &sum);
        if (missing == NULL) {
            break;
        }
        iris_d_ccl_await_packet(step, missing);
    }
    if (step->keeps) {
        iris_d_ccl_give(step->out + (shares ? mine.begin : 0), mine.bytes, u,
                        sum);
    }
    for (uint32_t i = 1; i < count; i++) {
        uint32_t peer = iris_d_ccl_after(&step->ccl, i);
        char *slot = iris_d_ccl_slots(step, peer) + step->mine;

        iris_d_ccl_send(step, slot + step->slot_bytes / 2, u, sum);
    }
}

/* A lane combines the units that it has sent, so it reads no unit of `in` after
 * another lane wrote it. Therefore in and out may be the same. */
IRIS_DEVICE void iris_d_ccl_exchange(iris_wg_t wg,
                                     const iris_d_ccl_step_t *step,
                                     const struct iris_ccl_packet_args *args)
{
    uint32_t count = step->ccl.count;
    iris_d_ccl_share_t mine =
        iris_d_ccl_meant(step, args->exchange, step->ccl.index);

    for (uint32_t i = 1; i < count; i++) {
        uint32_t peer = iris_d_ccl_after(&step->ccl, i);
        iris_d_ccl_share_t share = iris_d_ccl_meant(step, args->exchange, peer);
        char *slot = iris_d_ccl_slots(step, peer) + step->mine;

        IRIS_LANES (wg, u, step->units) {
            if (u < iris_d_ccl_units(share.bytes)) {
                iris_d_ccl_send(
                    step, slot, u,
                    iris_d_ccl_take(step->in + share.begin, share.bytes, u));
            }
        }
    }
    IRIS_LANES (wg, u, step->units) {
        if (u < iris_d_ccl_units(mine.bytes)) {
            iris_d_ccl_exchange_unit(step, args, mine, u);
        }
    }
}

/* ---- Collectives that only move data
 * ----------------------------------------- */

/* Member i's bytes: its part or, with `shares`, its share of one. */
IRIS_DEVICE iris_d_ccl_share_t iris_d_ccl_part(const iris_d_ccl_step_t *step,
                                               iris_bool_t shares, uint32_t i)
{
    iris_d_ccl_share_t part = {i * step->part, step->bytes};

    return shares ? iris_d_ccl_share(i, step->ccl.count, step->bytes) : part;
}

/* Writes unit u of the other members to its place in `out`. With shares, the
 * last members may have no such unit. Returns the result of
 * iris_d_ccl_receive(). */
IRIS_DEVICE const char *iris_d_ccl_collect_unit(const iris_d_ccl_step_t *step,
                                                size_t u, iris_bool_t shares)
{
    uint32_t count = step->ccl.count;

    while (u >=
           iris_d_ccl_units(iris_d_ccl_part(step, shares, count - 1).bytes)) {
        count--;
    }
    for (uint32_t first = 0; first < count; first += IRIS_CCL_POLLED) {
        const char *slot = step->slots + first * step->slot_bytes +
                           (shares ? step->slot_bytes / 2 : 0);
        uint64_t data[IRIS_CCL_POLLED] = {0};
        const char *missing = iris_d_ccl_receive(step, slot, u, count - first,
                                                 step->ccl.index - first, data);

        if (IRIS_UNLIKELY(missing != NULL)) {
            return missing;
        }
        IRIS_D_UNROLL
        for (uint32_t k = 0; k < IRIS_CCL_POLLED; k++) {
            iris_d_ccl_share_t part = iris_d_ccl_part(step, shares, first + k);

            if (first + k < count && first + k != step->ccl.index &&
                step->keeps) {
                iris_d_ccl_give(step->out + part.begin, part.bytes, u, data[k]);
            }
        }
    }
    return NULL;
}

IRIS_DEVICE void iris_d_ccl_collect(iris_wg_t wg, const iris_d_ccl_step_t *step,
                                    iris_bool_t shares)
{
    size_t most = iris_d_ccl_units(iris_d_ccl_part(step, shares, 0).bytes);
    const char *missing;

    IRIS_LANES (wg, u, step->units) {
        while (u < most) {
            missing = iris_d_ccl_collect_unit(step, u, shares);
            if (missing == NULL) {
                break;
            }
            iris_d_ccl_await_packet(step, missing);
        }
    }
}

/* Sends each other member its part, or all members the only part (`part` is 0).
 * Keeps this rank's own part. */
IRIS_DEVICE void iris_d_ccl_deal(iris_wg_t wg, const iris_d_ccl_step_t *step,
                                 size_t part)
{
    uint32_t index = step->ccl.index, count = step->ccl.count;
    size_t units = iris_d_ccl_units(step->bytes);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = iris_d_ccl_after(&step->ccl, i);
        const char *from = step->in + to * part;
        char *slot = iris_d_ccl_slots(step, to) + step->mine;

        IRIS_LANES (wg, u, step->units) {
            if (u < units && i == 0) {
                iris_d_ccl_give(step->out + index * step->part, step->bytes, u,
                                iris_d_ccl_take(from, step->bytes, u));
            } else if (u < units) {
                iris_d_ccl_send(step, slot, u,
                                iris_d_ccl_take(from, step->bytes, u));
            }
        }
    }
}

/* Waits for unit u of the root, and writes it to its place. */
IRIS_DEVICE void iris_d_ccl_spread_unit(const iris_d_ccl_step_t *step,
                                        uint32_t root, size_t u)
{
    const char *slot = step->slots + root * step->slot_bytes, *missing;
    uint64_t data;

    for (;;) {
        missing = iris_d_ccl_receive(step, slot, u, 1, IRIS_CCL_POLLED, &data);
        if (missing == NULL) {
            break;
        }
        iris_d_ccl_await_packet(step, missing);
    }
    iris_d_ccl_give(step->out, step->bytes, u, data);
}

/* The root sends each other member its part, or all of them the only one (`part`
 * is 0). The members have to meet: otherwise the root would hear from nobody,
 * and the others from the root alone. In a kernel of one workgroup, the
 * workgroup always waits for a packet of the root, so that packet serves as the
 * root's greeting. With several workgroups, one may have no unit.
 *
 * A workgroup that ends a step has heard in it from all others. Two parities
 * need this (iris_ccl_space): before it overwrites a slot, it has heard from
 * the slot's reader in the step between. It waits for its late lanes: none may
 * still await a packet when another lane greets in the next step. */
IRIS_DEVICE void iris_d_ccl_spread(iris_wg_t wg, const iris_d_ccl_step_t *step,
                                   uint32_t root, size_t part)
{
    if (step->ccl.index == root) {
        iris_d_ccl_deal(wg, step, part);
    }
    iris_d_ccl_greet(wg, &step->ccl, wg.num_wgs == 1 ? root : step->ccl.count);
    if (step->ccl.index == root) {
        return;
    }
    IRIS_LANES (wg, u, step->units) {
        if (u < iris_d_ccl_units(step->bytes)) {
            iris_d_ccl_spread_unit(step, root, u);
        }
    }
    iris_wg_barrier(wg);
}

/* A step of a reduction. */
IRIS_DEVICE void iris_d_ccl_reduce_step(iris_wg_t wg,
                                        const iris_d_ccl_step_t *step,
                                        const struct iris_ccl_packet_args *args)
{
    iris_d_ccl_exchange(wg, step, args);
    if (args->exchange == IRIS_CCL_REDUCE_TWO) {
        iris_d_ccl_collect(wg, step, 1);
    }
}

/* A step of a collective that only moves data. */
IRIS_DEVICE void iris_d_ccl_move_step(iris_wg_t wg, iris_d_ccl_step_t *step,
                                      const struct iris_ccl_packet_args *args)
{
    if (args->exchange == IRIS_CCL_SPREAD) {
        step->part = 0;
        iris_d_ccl_spread(wg, step, (uint32_t)args->root, 0);
        return;
    }
    iris_d_ccl_deal(wg, step,
                    args->exchange == IRIS_CCL_GATHER ? 0 : step->part);
    iris_d_ccl_collect(wg, step, 0);
}

IRIS_DEVICE void iris_d_ccl_one_step(iris_wg_t wg, iris_d_ccl_step_t *step,
                                     const struct iris_ccl_packet_args *args)
{
    if (step->reduces) {
        iris_d_ccl_reduce_step(wg, step, args);
    } else {
        iris_d_ccl_move_step(wg, step, args);
    }
}

/* Begins the next step: the piece after `done` bytes of each part. */
IRIS_DEVICE void iris_d_ccl_next_piece(iris_d_ccl_step_t *step,
                                       const struct iris_ccl_packet_args *args,
                                       size_t done)
{
    step->in = (const char *)iris_d_global((uintptr_t)args->in) + done;
    step->out = (char *)iris_d_global((uintptr_t)args->out) + done;
    step->bytes =
        args->bytes - done < args->piece ? args->bytes - done : args->piece;
    step->ccl.epoch++;
    step->slots = iris_d_ccl_slots(step, step->ccl.index);
    step->flags = iris_d_ccl_flags(&step->ccl);
}

/* Sets the values that all steps of a call share; step->ccl is filled in. */
IRIS_DEVICE void iris_d_ccl_step_init(iris_d_ccl_step_t *step,
                                      const struct iris_ccl_packet_args *args,
                                      const struct iris_ccl_near *near)
{
    step->near = near;
    step->reduces = args->exchange <= IRIS_CCL_REDUCE_PARTS;
    step->kind = (enum iris_d_kind)args->kind;
    step->op = (iris_reduce_op_t)args->op;
    step->part = args->bytes;
    step->slot_bytes =
        2 * (near != NULL
                 ? (size_t)near->slot_bytes
                 : (size_t)iris_d_ccl_word(&step->ccl.space->slot_bytes));
    step->mine = step->ccl.index * step->slot_bytes;
    step->keeps = !args->to_root || step->ccl.index == (uint32_t)args->root;
    step->units = iris_d_ccl_units(
        args->exchange == IRIS_CCL_REDUCE_TWO
            ? iris_d_ccl_share(0, step->ccl.count, args->piece).bytes
            : args->piece);
}

#endif /* IRIS_DEVICE_KERNELS_CCL_EXCHANGE_H */
