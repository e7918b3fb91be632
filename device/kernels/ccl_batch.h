/* SPDX-License-Identifier: MIT
 *
 * Reductions by packets in one workgroup (ccl_exchange.h) whose lanes have many
 * units each. Several loads of a lane are in flight at a time: one after the
 * other, they would take the memory latency several times.
 *
 * The packets are the same, so members may use different code.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_BATCH_H
#define IRIS_DEVICE_KERNELS_CCL_BATCH_H

#include <iris/device/kernels/ccl_exchange.h>

/* With more lanes, a GPU's kernels have only 64 to 128 registers per lane, and
 * spill the rest to memory. On an H100 that took longer than this saved. */
#if !IRIS_ON_CPU && IRIS_MAX_LANES > 256
#define IRIS_CCL_WG_BATCHES 0
#else
#define IRIS_CCL_WG_BATCHES 1
#endif

/* Loads of a lane. */
#define IRIS_CCL_WG_BATCH 8

/* One lane processes the units u, u + groups, ... below `units`, at most
 * IRIS_CCL_WG_BATCH of them at a time. */
typedef struct iris_d_ccl_range {
    uint32_t units;
    uint32_t groups;
} iris_d_ccl_range_t;

/* The range of a lane for this number of whole units: `each` units per lane if
 * there are enough lanes. */
IRIS_DEVICE iris_d_ccl_range_t iris_d_ccl_range(iris_wg_t wg, size_t bytes,
                                                uint32_t each)
{
    iris_d_ccl_range_t range;
    uint32_t lanes = wg.num_lanes;

    range.units = (uint32_t)(bytes / IRIS_CCL_UNIT_BYTES);
    range.groups = (range.units + each - 1) / each;
    lanes = lanes < range.units ? lanes : range.units;
    range.groups = range.groups < lanes ? lanes : range.groups;
    return range;
}

/* Whether all of a step's parts consist of whole, aligned units. */
IRIS_DEVICE iris_bool_t iris_d_ccl_is_whole(const iris_d_ccl_step_t *step,
                                            int exchange)
{
    uintptr_t bits = (uintptr_t)step->in | (uintptr_t)step->out | step->bytes;

    if (exchange == IRIS_CCL_REDUCE_PARTS) {
        bits |= step->part;
    }
    return IRIS_CCL_WG_BATCHES && bits % IRIS_CCL_UNIT_BYTES == 0 &&
           step->ccl.count > 1 && step->ccl.count <= IRIS_CCL_WG_BATCH + 1 &&
           (exchange == IRIS_CCL_REDUCE_ONE ||
            exchange == IRIS_CCL_REDUCE_TWO ||
            exchange == IRIS_CCL_REDUCE_PARTS);
}

IRIS_DEVICE void iris_d_ccl_send_batch(const iris_d_ccl_step_t *step,
                                       iris_d_ccl_range_t range, uint32_t g,
                                       const iris_d_u64_t *from, char *slot)
{
    uint64_t data[IRIS_CCL_WG_BATCH];

    IRIS_D_UNROLL
    for (uint32_t j = 0; j < IRIS_CCL_WG_BATCH; j++) {
        uint32_t u = g + j * range.groups;

        data[j] = u < range.units ? from[u] : 0;
    }
    IRIS_D_UNROLL
    for (uint32_t j = 0; j < IRIS_CCL_WG_BATCH; j++) {
        uint32_t u = g + j * range.groups;

        if (u < range.units) {
            iris_d_ccl_send(step, slot, u, data[j]);
        }
    }
}

IRIS_DEVICE void iris_d_ccl_send_batches(iris_wg_t wg,
                                         const iris_d_ccl_step_t *step,
                                         int exchange)
{
    for (uint32_t i = 1; i < step->ccl.count; i++) {
        uint32_t peer = iris_d_ccl_after(&step->ccl, i);
        iris_d_ccl_share_t share = iris_d_ccl_meant(step, exchange, peer);
        iris_d_ccl_range_t range =
            iris_d_ccl_range(wg, share.bytes, IRIS_CCL_WG_BATCH);
        const iris_d_u64_t *from =
            (const iris_d_u64_t *)(step->in + share.begin);
        char *slot = iris_d_ccl_slots(step, peer) + step->mine;

        IRIS_WG_LANES (wg, g, range.groups) {
            iris_d_ccl_send_batch(step, range, (uint32_t)g, from, slot);
        }
    }
}

/* The packets that a lane waits for. Packet p is in slot p mod 2^shift, counted
 * from `slot` and leaving out slot `skip`. Its unit is g + p / 2^shift *
 * groups. */
typedef struct iris_d_ccl_polled {
    iris_d_ccl_range_t range;
    const char *slot;
    uint32_t slots;
    uint32_t skip;
    uint32_t shift;
} iris_d_ccl_polled_t;

/* Polls a lane's packets until all have arrived. Returns NULL, or the packet
 * for which the caller has to wait. */
IRIS_DEVICE const char *iris_d_ccl_poll_batch(const iris_d_ccl_step_t *step,
                                              const iris_d_ccl_polled_t *polled,
                                              uint32_t g, uint64_t *data)
{
    const char *missing;

    for (uint32_t polls = 0;; polls++) {
        missing = NULL;
        IRIS_D_UNROLL
        for (uint32_t p = 0; p < IRIS_CCL_WG_BATCH; p++) {
            uint32_t k = p & ((1u << polled->shift) - 1);
            uint32_t u = g + (p >> polled->shift) * polled->range.groups;
            const char *packet = polled->slot +
                                 (k + (k >= polled->skip)) * step->slot_bytes +
                                 (size_t)u * IRIS_CCL_PACKET_BYTES;

            const char *half = k < polled->slots && u < polled->range.units
                                   ? iris_d_ccl_poll(step, packet, &data[p])
                                   : NULL;

            missing = half != NULL ? half : missing;
        }
        if (missing == NULL || !IRIS_D_CALLS ||
            polls == IRIS_CCL_POLLS_AT_ONCE) {
            return missing;
        }
        iris_d_pause();
    }
}

/* Takes the first received word and moves the others down: registers cannot be
 * indexed. */
IRIS_DEVICE uint64_t iris_d_ccl_next(uint64_t *data)
{
    uint64_t first = data[0];

    IRIS_D_UNROLL
    for (uint32_t p = 1; p < IRIS_CCL_WG_BATCH; p++) {
        data[p - 1] = data[p];
    }
    return first;
}

/* Combines all members' unit, in the group's order. `own` is this rank's. */
IRIS_DEVICE uint64_t iris_d_ccl_fold_unit(
    const iris_d_ccl_step_t *step, const struct iris_ccl_packet_args *args,
    uint64_t own, uint64_t *data)
{
    enum iris_d_kind kind = (enum iris_d_kind)args->kind;
    iris_d_block_t block;
    iris_d_sums_t sums;

    for (uint32_t i = 0; i < step->ccl.count; i++) {
        uint64_t unit = i == step->ccl.index ? own : iris_d_ccl_next(data);

        block.words[0] = (uint32_t)unit;
        block.words[1] = (uint32_t)(unit >> 32);
        if (i == 0) {
            iris_d_fold_begin(kind, &sums, &block, IRIS_CCL_UNIT_BYTES);
        } else {
            iris_d_fold(kind, (iris_reduce_op_t)args->op, &sums, &block,
                        IRIS_CCL_UNIT_BYTES);
        }
    }
    iris_d_fold_finish(kind, &block, &sums, args->scale, IRIS_CCL_UNIT_BYTES);
    return (uint64_t)block.words[1] << 32 | block.words[0];
}

/* Combines the units of a lane. If they are units of shares, sends the sums to
 * all members. */
IRIS_DEVICE void iris_d_ccl_fold_batch(const iris_d_ccl_step_t *step,
                                       const struct iris_ccl_packet_args *args,
                                       const iris_d_ccl_polled_t *polled,
                                       iris_d_ccl_share_t mine, uint32_t g)
{
    iris_bool_t shares = args->exchange == IRIS_CCL_REDUCE_TWO;
    const iris_d_u64_t *in = (const iris_d_u64_t *)(step->in + mine.begin);
    iris_d_u64_t *out = (iris_d_u64_t *)(step->out + (shares ? mine.begin : 0));
    uint32_t units = polled->range.units, groups = polled->range.groups;
    uint32_t each = IRIS_CCL_WG_BATCH >> polled->shift;
    uint64_t data[IRIS_CCL_WG_BATCH] = {0};
    const char *missing = iris_d_ccl_poll_batch(step, polled, g, data);

    while (missing != NULL) {
        iris_d_ccl_await_packet(step, missing);
        missing = iris_d_ccl_poll_batch(step, polled, g, data);
    }
    for (uint32_t j = 0, u = g; j < each && u < units; j++, u += groups) {
        uint64_t sum = iris_d_ccl_fold_unit(step, args, in[u], data);

        for (uint32_t k = polled->slots; k < 1u << polled->shift; k++) {
            (void)iris_d_ccl_next(data);
        }
        out[u] = sum;
        for (uint32_t i = 1; i <= polled->slots && shares; i++) {
            uint32_t peer = iris_d_ccl_after(&step->ccl, i);
            char *slot = iris_d_ccl_slots(step, peer) + step->mine;

            iris_d_ccl_send(step, slot + step->slot_bytes / 2, u, sum);
        }
    }
}

IRIS_DEVICE void
iris_d_ccl_fold_batches(iris_wg_t wg, const iris_d_ccl_step_t *step,
                        const struct iris_ccl_packet_args *args)
{
    iris_d_ccl_share_t mine =
        iris_d_ccl_meant(step, args->exchange, step->ccl.index);
    iris_d_ccl_polled_t polled;

    polled.slot = step->slots;
    polled.slots = step->ccl.count - 1;
    polled.skip = step->ccl.index;
    polled.shift = 0;
    while (1u << polled.shift < polled.slots) {
        polled.shift++;
    }
    polled.range =
        iris_d_ccl_range(wg, mine.bytes, IRIS_CCL_WG_BATCH >> polled.shift);
    IRIS_WG_LANES (wg, g, polled.range.groups) {
        iris_d_ccl_fold_batch(step, args, &polled, mine, (uint32_t)g);
    }
}

/* Receives the sums of member `peer`'s share. */
IRIS_DEVICE void iris_d_ccl_collect_batches(iris_wg_t wg,
                                            const iris_d_ccl_step_t *step,
                                            uint32_t peer)
{
    iris_d_ccl_share_t share = iris_d_ccl_part(step, 1, peer);
    iris_d_u64_t *out = (iris_d_u64_t *)(step->out + share.begin);
    iris_d_ccl_polled_t polled;

    polled.slot = step->slots + peer * step->slot_bytes + step->slot_bytes / 2;
    polled.slots = 1;
    polled.skip = 1;
    polled.shift = 0;
    polled.range = iris_d_ccl_range(wg, share.bytes, IRIS_CCL_WG_BATCH);
    IRIS_WG_LANES (wg, g, polled.range.groups) {
        uint64_t data[IRIS_CCL_WG_BATCH] = {0};
        const char *missing =
            iris_d_ccl_poll_batch(step, &polled, (uint32_t)g, data);

        while (missing != NULL) {
            iris_d_ccl_await_packet(step, missing);
            missing = iris_d_ccl_poll_batch(step, &polled, (uint32_t)g, data);
        }
        IRIS_D_UNROLL
        for (uint32_t j = 0; j < IRIS_CCL_WG_BATCH; j++) {
            uint32_t u = (uint32_t)g + j * polled.range.groups;

            if (u < polled.range.units) {
                out[u] = data[j];
            }
        }
    }
}

/* iris_d_ccl_exchange() and iris_d_ccl_collect() for a workgroup. Lanes combine
 * other units than they have sent. Therefore all units are sent before the
 * first sum is written, and in and out may be the same. */
IRIS_DEVICE void
iris_d_ccl_exchange_batches(iris_wg_t wg, const iris_d_ccl_step_t *step,
                            const struct iris_ccl_packet_args *args)
{
    iris_d_ccl_send_batches(wg, step, args->exchange);
    iris_wg_barrier(wg);
    iris_d_ccl_fold_batches(wg, step, args);
    for (uint32_t i = 1;
         i < step->ccl.count && args->exchange == IRIS_CCL_REDUCE_TWO; i++) {
        iris_d_ccl_collect_batches(wg, step, iris_d_ccl_after(&step->ccl, i));
    }
}

#endif /* IRIS_DEVICE_KERNELS_CCL_BATCH_H */
