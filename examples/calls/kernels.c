/* SPDX-License-Identifier: MIT
 *
 * The calls of kernels: one workgroup on each of two ranks.
 */
#include "calls.h"

#include <iris/device/wg_ccl_tile.h>

struct kernel_args {
    const int64_t *context;
    iris_ccl_device_t ccl;        /* from iris_ccl_device_create() */
    struct iris_dev_group *group; /* from iris_group_device() */
    float *data, *inbox;          /* symmetric: 64 * 64 elements */
    uint64_t *signals;            /* symmetric: 8 words, each 0 */
    int32_t *counters;            /* symmetric: 8 words, each 0 */
    int rank, peer;
};

IRIS_KERNEL(access_elements, struct kernel_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    float *data = args->data, *inbox = args->inbox;
    int rank = args->rank, peer = args->peer;

    IRIS_LANES (wg, i, 64) {
        float theirs = iris_load(dev, &data[i], peer);
        iris_store(dev, &inbox[i], theirs + 1, peer);
    }

    IRIS_LANES (wg, i, 64) {
        float theirs = iris_load_masked(dev, &data[i], peer, i < 50, 0.0f);
        iris_store_masked(dev, &inbox[i], theirs, peer, i < 50);
    }

    IRIS_LANES (wg, i, 64)
        iris_get(dev, &data[i], &inbox[i], peer); /* theirs to mine */
    IRIS_LANES (wg, i, 64)
        iris_put(dev, &data[i], &inbox[i], peer); /* mine to theirs */
    IRIS_LANES (wg, i, 64)
        iris_copy(dev, &data[i], &inbox[i], rank, peer);

    if (iris_wg_leader(wg)) {
        float now = iris_load_volatile(dev, &data[0], peer);
        iris_store_volatile(dev, &inbox[0], now, peer);
    }

    IRIS_LANES (wg, i, 64) { /* each element is read once */
        float value = iris_load_hint(dev, &data[i], peer, IRIS_CACHE_STREAMING);
        iris_store_hint(dev, &inbox[i], value, peer, IRIS_CACHE_WRITE_BACK);
    }

    IRIS_LANES (wg, i, 16) { /* 16 bytes, four floats, at a time */
        iris_quad_t four = iris_load_quad(dev, &data[4 * i], peer);
        iris_store_quad(dev, &inbox[4 * i], four, peer);
    }

    const float *theirs = (const float *)iris_dev_as_remote(dev, data, peer);
    if (theirs != NULL) { /* NULL: the rank is on another node */
        IRIS_LANES (wg, i, 64)
            inbox[i] = theirs[i];
    }
}

IRIS_KERNEL(update_counters, struct kernel_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int32_t *c = args->counters;
    int peer = args->peer;

    if (!iris_wg_leader(wg))
        return;
    int32_t ticket = iris_atomic_add(dev, &c[0], 1, peer, IRIS_RELAXED,
                                     IRIS_SCOPE_SYSTEM); /* the old value */
    iris_atomic_sub(dev, &c[1], 1, peer, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    iris_atomic_min(dev, &c[2], -5, peer, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    iris_atomic_max(dev, &c[3], 5, peer, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    iris_atomic_and(dev, &c[4], 7, peer, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    iris_atomic_or(dev, &c[4], 8, peer, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    iris_atomic_xor(dev, &c[4], 3, peer, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    iris_atomic_xchg(dev, &c[5], ticket, peer, IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM);

    while (iris_atomic_cas(dev, &c[6], 0, 1, peer, IRIS_ACQUIRE,
                           IRIS_SCOPE_SYSTEM) != 0) {
    } /* the lock is ours */
    iris_atomic_store(dev, &c[6], 0, peer, IRIS_RELEASE, IRIS_SCOPE_SYSTEM);

    int32_t seen =
        iris_atomic_load(dev, &c[7], peer, IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM);
    iris_atomic_add_masked(dev, &c[7], 1, peer, seen == 0, IRIS_RELAXED,
                           IRIS_SCOPE_SYSTEM);
}

IRIS_KERNEL(pass_messages, struct kernel_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *signals = args->signals;
    float *data = args->data, *inbox = args->inbox;
    int peer = args->peer;

    IRIS_LANES (wg, i, 64)
        iris_put(dev, &data[i], &inbox[i], peer);
    iris_wg_barrier(wg); /* one lane now releases for all */
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, &signals[0], 1, peer);
        iris_wait_until(dev, &signals[0], IRIS_CMP_GE, (uint64_t)1);
    }
    iris_wg_barrier(wg); /* all lanes now see the peer's elements */

    if (iris_wg_leader(wg)) {
        iris_signal_add(dev, &signals[1], 1, peer); /* of many senders */
        iris_put_signal(dev, &data[0], &inbox[0], &signals[2], 1, peer);
        iris_wait_until_all(dev, signals, 3, NULL, IRIS_CMP_GE, 1);
    }

    if (iris_wg_leader(wg)) {
        uint64_t now = iris_signal_fetch(dev, &signals[1]);
        iris_bool_t there = iris_test(dev, &signals[1], IRIS_CMP_GE, now);
        iris_bool_t all = iris_test_all(dev, signals, 3, NULL, IRIS_CMP_GE, 1);
        args->counters[0] = there && all;
    }

    if (iris_wg_leader(wg)) {
        size_t indices[3];
        size_t first =
            iris_wait_until_any(dev, signals, 3, NULL, IRIS_CMP_GE, 1);
        size_t count = iris_wait_until_some(dev, signals, 3, NULL, IRIS_CMP_GE,
                                            1, indices);
        args->counters[1] = (int)(first + count);
    }

    if (iris_wg_leader(wg)) {
        size_t indices[3];
        size_t any = iris_test_any(dev, signals, 3, NULL, IRIS_CMP_GE, 1);
        size_t some =
            iris_test_some(dev, signals, 3, NULL, IRIS_CMP_GE, 1, indices);
        args->counters[2] = (int)(any + some);
    }

    data[0] = 1; /* an ordinary write */
    iris_fence(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    iris_dev_barrier(wg, dev, args->group); /* one workgroup of each rank */
}

IRIS_KERNEL(copy_blocks, struct kernel_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *signals = args->signals;
    float *data = args->data, *inbox = args->inbox;
    int rank = args->rank, peer = args->peer;

    iris_wg_put(wg, dev, data, inbox, 1024, peer);
    iris_wg_get(wg, dev, data, inbox, 1024, peer);
    iris_wg_copy(wg, dev, data, inbox, 1024, rank, peer);
    iris_wg_flush_source(wg); /* lanes may overwrite `data` now */
    iris_wg_put_signal(wg, dev, data, inbox, 1024, &signals[3], 1, peer);
    iris_wg_put_signal_add(wg, dev, data, inbox, 1024, &signals[4], 1, peer);

    iris_tile_t all = iris_tile(data, 64, 64, 64, sizeof(float));
    iris_tile_t from = iris_tile_block(all, 0, 1, 32, 32); /* upper right */
    iris_tile_t to = iris_tile_transposed(iris_tile_block(
        iris_tile(inbox, 64, 64, 64, sizeof(float)), 1, 0, 32, 32));
    iris_wg_tile_put(wg, dev, from, to, peer);
    iris_wg_tile_get(wg, dev, from, to, peer);
    iris_wg_tile_put_signal(wg, dev, from, to, &signals[5], 1, peer);
    iris_wg_tile_put_signal_add(wg, dev, from, to, &signals[6], 1, peer);

    iris_wg_tile_load(wg, dev, from, inbox, peer); /* dense, 32 * 32 elements */
    iris_wg_tile_store(wg, dev, from, inbox, peer);
    iris_wg_tile_ready(wg, dev, &signals[7], 1); /* for this rank's kernels */
    iris_wg_tile_await(wg, dev, &signals[7], 1);

    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
    iris_wg_tile_sums_zero(wg, sums);
    iris_wg_tile_product(wg, sums, from, from, IRIS_DTYPE_F32);
    iris_wg_tile_product_in_order(wg, sums, from, from, IRIS_DTYPE_F32);
    iris_wg_tile_sums_put(wg, dev, sums, to, IRIS_DTYPE_F32, peer);
}

IRIS_KERNEL(use_waves, struct kernel_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const float *data = args->data;

    for (size_t row = iris_wave_id(wg); row < 64; row += iris_num_waves(wg)) {
        float sum = 0, least = 0, most = 0;
        IRIS_WAVE_LANES(wg, i, 64)
        sum += data[row * 64 + i];
        sum = iris_wave_sum_f32(wg, sum);
        least = iris_wave_min_f32(wg, least);
        most = iris_wave_max_f32(wg, most);
        if (iris_wave_leader(wg))
            args->inbox[row] = sum + least + most;
    }

    float mine = 0;
    IRIS_WG_LANES (wg, i, 64)
        mine += data[i];
    float sum = iris_wg_sum_f32(wg, mine), least = iris_wg_min_f32(wg, mine);
    float most = iris_wg_max_f32(wg, mine);
    if (iris_wg_leader(wg))
        args->inbox[64] = sum + least + most;

    if (iris_wave_id(wg) == 0)
        iris_wave_put(wg, dev, data, args->inbox, 1024, args->peer);

    iris_dev_trace_span_t span = iris_dev_trace_begin(dev, IRIS_TRACE_COMPUTE);
    iris_wg_barrier(wg);
    iris_dev_trace_end(dev, span);
}

IRIS_KERNEL(use_collectives, struct kernel_args)
{
    float *in = args->data, *out = args->inbox;

    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->ccl, wg.id);
    iris_wg_all_reduce(wg, &ccl, in, out, 64, IRIS_DTYPE_F32, IRIS_REDUCE_SUM);
    iris_wg_all_gather(wg, &ccl, in, out, 256); /* bytes */
    iris_wg_reduce_scatter(wg, &ccl, in, out, 64, IRIS_DTYPE_F32,
                           IRIS_REDUCE_SUM);
    iris_wg_all_to_all(wg, &ccl, in, out, 256);
    iris_wg_broadcast(wg, &ccl, in, out, 256, 0);
    iris_wg_gather(wg, &ccl, in, out, 256, 0);
    iris_wg_scatter(wg, &ccl, in, out, 256, 0);
    iris_wg_reduce(wg, &ccl, in, out, 64, IRIS_DTYPE_F32, IRIS_REDUCE_SUM, 0);
    iris_wg_ccl_end(wg, &ccl);

    ccl = iris_wg_ccl_begin(wg, &args->ccl, wg.id); /* by a given algorithm */
    iris_wg_all_reduce_one_shot(wg, &ccl, in, out, 64, IRIS_DTYPE_F32,
                                IRIS_REDUCE_SUM);
    iris_wg_all_reduce_two_shot(wg, &ccl, in, out, 64, IRIS_DTYPE_F32,
                                IRIS_REDUCE_SUM);
    iris_wg_all_reduce_ring(wg, &ccl, in, out, 64, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM);
    iris_wg_all_reduce_atomic(wg, &ccl, in, out, 64, IRIS_DTYPE_F32);
    iris_wg_ccl_end(wg, &ccl);

    iris_tile_t a = iris_tile(in, 8, 8, 64, sizeof(float));
    iris_tile_t b = iris_tile(out, 8, 8, 64, sizeof(float));
    iris_tile_t both_a = iris_tile(in, 16, 8, 64, sizeof(float));
    iris_tile_t both_b = iris_tile(out, 16, 8, 64, sizeof(float));
    ccl = iris_wg_ccl_begin(wg, &args->ccl, wg.id);
    iris_wg_tile_all_reduce(wg, &ccl, a, b, IRIS_DTYPE_F32, IRIS_REDUCE_SUM);
    iris_wg_tile_all_reduce_one_shot(wg, &ccl, a, b, IRIS_DTYPE_F32,
                                     IRIS_REDUCE_SUM);
    iris_wg_tile_all_reduce_two_shot(wg, &ccl, a, b, IRIS_DTYPE_F32,
                                     IRIS_REDUCE_SUM);
    iris_wg_tile_reduce_scatter(wg, &ccl, both_a, b, IRIS_DTYPE_F32,
                                IRIS_REDUCE_SUM);
    iris_wg_tile_all_gather(wg, &ccl, a, both_b);
    iris_wg_tile_gather(wg, &ccl, a, both_b, 0);
    iris_wg_tile_all_to_all(wg, &ccl, both_a, both_b);
    iris_wg_tile_broadcast(wg, &ccl, a, b, 0);
    iris_wg_tile_scatter(wg, &ccl, both_a, b, 0);
    iris_wg_tile_reduce(wg, &ccl, a, b, IRIS_DTYPE_F32, IRIS_REDUCE_SUM, 0);
    iris_wg_ccl_end(wg, &ccl);
}

static void convert(void)
{
    EXPECT(iris_f16_to_f32(iris_f16_from_f32(1.5f)) == 1.5f);
    EXPECT(iris_bf16_to_f32(iris_bf16_from_f32(1.5f)) == 1.5f);
    EXPECT(iris_f8e4m3_to_f32(iris_f8e4m3_from_f32(1.5f)) == 1.5f);
    EXPECT(iris_f8e5m2_to_f32(iris_f8e5m2_from_f32(1.5f)) == 1.5f);
}

static int rank_main(iris_t *iris, void *arg)
{
    const struct iris_kernel *kernels[] = {access_elements, update_counters,
                                           pass_messages,   copy_blocks,
                                           use_waves,       use_collectives};
    struct kernel_args args = {.context = iris_device_context(iris)};
    args.rank = iris_rank(iris);
    args.peer = 1 - args.rank;
    args.group = iris_group_device(iris, NULL);

    check(iris_ccl_device_create(iris, NULL, 1, 0, &args.ccl)); /* all ranks */
    check(iris_calloc_typed(iris, 64 * 64, &args.data));
    check(iris_calloc_typed(iris, 64 * 64, &args.inbox));
    check(iris_calloc_typed(iris, 8, &args.signals));
    check(iris_calloc_typed(iris, 8, &args.counters));
    for (int i = 0; i < 6; i++) {
        check(iris_launch(iris, kernels[i], 1, 64, &args, sizeof args, NULL));
        check(iris_barrier(iris, NULL, NULL));
    }
    check(iris_ccl_device_destroy(iris, &args.ccl));
    return arg == NULL ? 0 : 1;
}

int main(void)
{
    convert();
    check(iris_spawn(NULL, 2, rank_main, NULL));
    return 0;
}
