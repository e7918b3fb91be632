/* SPDX-License-Identifier: MIT
 *
 * The kernels that rma.c times: each operation, and the same work over plain
 * pointers by the same threads.
 */
#ifndef IRIS_BENCH_RMA_KERNELS_H
#define IRIS_BENCH_RMA_KERNELS_H

#include <string.h>

#include <iris/device.h>

/* Each workgroup's share begins on a cache line. */
#define RMA_LINE_BYTES 64

struct rma_args {
    const int64_t *context;
    uint64_t *src;
    uint64_t *dst; /* one slot, or one for each rank */
    uint64_t *sum; /* sum of the values that loads read */
    uint64_t base; /* first value to store; each next one is 1 larger */
    size_t bytes;
    size_t slot_words;    /* distance of slots; 0 if there is one */
    int32_t slot_by_peer; /* use the peer's slot, else the caller's */
    int32_t first_peer;
    int32_t num_peers;
    uint32_t reps;
};

/* One operation with one peer, and the number of operations left. */
struct rma_turn {
    uint64_t left;
    int32_t peer;
    int32_t next; /* the rank after the peer, where copy writes */
    size_t count; /* number of 8-byte elements */
    uint64_t *dst;
};

IRIS_DEVICE void rma_aim(const struct rma_args *args, iris_dev_t dev,
                         struct rma_turn *turn)
{
    int slot = args->slot_by_peer ? turn->peer : dev.rank;

    turn->next = turn->peer + 1 == dev.num_ranks ? 0 : turn->peer + 1;
    turn->dst = args->dst + (size_t)slot * args->slot_words;
}

IRIS_DEVICE struct rma_turn rma_first(const struct rma_args *args,
                                      iris_dev_t dev)
{
    struct rma_turn turn = {0};

    turn.left = (uint64_t)args->reps * (uint64_t)args->num_peers;
    turn.peer = args->first_peer;
    turn.count = args->bytes / sizeof(uint64_t);
    rma_aim(args, dev, &turn);
    return turn;
}

/* Ends a turn. Its accesses complete before the next turn begins, so the
 * compiler cannot merge turns. */
IRIS_DEVICE struct rma_turn rma_next(const struct rma_args *args,
                                     iris_dev_t dev, iris_wg_t wg,
                                     struct rma_turn turn)
{
    iris_fence(IRIS_ACQ_REL, IRIS_SCOPE_WG);
    iris_wg_barrier(wg);
    turn.left--;
    if (args->num_peers > 1) {
        int last = args->first_peer + args->num_peers - 1;

        last = last >= dev.num_ranks ? last - dev.num_ranks : last;
        turn.peer = turn.peer == last ? args->first_peer : turn.next;
        rma_aim(args, dev, &turn);
    }
    return turn;
}

/* A workgroup's next part of a bulk copy. Tiles go to the workgroups in turn,
 * so that all workgroups work in the same area. */
struct rma_part {
    size_t start;
    size_t bytes;
    size_t step; /* distance to the workgroup's next tile */
};

#if IRIS_ON_CPU
#define RMA_TILE_BYTES SIZE_MAX /* a CPU copies one large piece fastest */
#elif IRIS_D_BULK_DEPTH == 0
#define RMA_TILE_BYTES ((size_t)65536)
#else /* enough for the rounds of long copies */
#define RMA_TILE_BYTES ((size_t)524288)
#endif

IRIS_DEVICE struct rma_part rma_part_of(iris_wg_t wg, size_t bytes, size_t tile)
{
    size_t lines = (bytes + RMA_LINE_BYTES - 1) / RMA_LINE_BYTES;
    size_t share = (lines + wg.num_wgs - 1) / wg.num_wgs * RMA_LINE_BYTES;
    struct rma_part part;

    part.bytes = share < tile ? share : tile;
    part.start = wg.id * part.bytes;
    part.step = wg.num_wgs * part.bytes;
    return part;
}

/* The bytes of the tile that begins at `at`. */
IRIS_DEVICE size_t rma_tile(struct rma_part part, size_t bytes, size_t at)
{
    return bytes - at < part.bytes ? bytes - at : part.bytes;
}

/* ---- Lane loops ---- */

IRIS_KERNEL(rma_load, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint64_t *src = args->src;
    uint64_t sum = 0;

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        IRIS_LANES (wg, i, t.count)
            sum += iris_load(dev, &src[i], t.peer);
    }
    iris_atomic_add(dev, args->sum, sum, dev.rank, IRIS_RELAXED,
                    IRIS_SCOPE_AGENT);
}

IRIS_KERNEL(rma_load_plain, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t sum = 0;

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        const uint64_t *from =
            (const uint64_t *)iris_dev_as_remote(dev, args->src, t.peer);

        IRIS_LANES (wg, i, t.count)
            sum += from[i];
    }
    iris_atomic_add(dev, args->sum, sum, dev.rank, IRIS_RELAXED,
                    IRIS_SCOPE_AGENT);
}

IRIS_KERNEL(rma_store, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t base = args->base;

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        IRIS_LANES (wg, i, t.count)
            iris_store(dev, &t.dst[i], base + i, t.peer);
    }
}

IRIS_KERNEL(rma_store_plain, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t base = args->base;

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        uint64_t *to = (uint64_t *)iris_dev_as_remote(dev, t.dst, t.peer);

        IRIS_LANES (wg, i, t.count)
            to[i] = base + i;
    }
}

IRIS_KERNEL(rma_get, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint64_t *src = args->src;

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        IRIS_LANES (wg, i, t.count)
            iris_get(dev, &src[i], &t.dst[i], t.peer);
    }
}

IRIS_KERNEL(rma_get_plain, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        const uint64_t *from =
            (const uint64_t *)iris_dev_as_remote(dev, args->src, t.peer);

        IRIS_LANES (wg, i, t.count)
            t.dst[i] = from[i];
    }
}

IRIS_KERNEL(rma_put, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint64_t *src = args->src;

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        IRIS_LANES (wg, i, t.count)
            iris_put(dev, &src[i], &t.dst[i], t.peer);
    }
}

IRIS_KERNEL(rma_put_plain, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint64_t *src = args->src;

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        uint64_t *to = (uint64_t *)iris_dev_as_remote(dev, t.dst, t.peer);

        IRIS_LANES (wg, i, t.count)
            to[i] = src[i];
    }
}

IRIS_KERNEL(rma_copy, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint64_t *src = args->src;

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        IRIS_LANES (wg, i, t.count)
            iris_copy(dev, &src[i], &t.dst[i], t.peer, t.next);
    }
}

IRIS_KERNEL(rma_copy_plain, struct rma_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (struct rma_turn t = rma_first(args, dev); t.left != 0;
         t = rma_next(args, dev, wg, t)) {
        const uint64_t *from =
            (const uint64_t *)iris_dev_as_remote(dev, args->src, t.peer);
        uint64_t *to = (uint64_t *)iris_dev_as_remote(dev, t.dst, t.next);

        IRIS_LANES (wg, i, t.count)
            to[i] = from[i];
    }
}

/* ---- Bulk copies by workgroups ---- */

/* clang-format off */
/* For each turn and each tile: the statement, with `from` and `to` in this
 * rank's address space. */
#define RMA_BULK(name, statement) RMA_TILES(name, RMA_TILE_BYTES, statement)
#define RMA_TILES(name, tile, statement)                                       \
    IRIS_KERNEL(name, struct rma_args)                                         \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        struct rma_part part = rma_part_of(wg, args->bytes, tile);             \
        for (struct rma_turn t = rma_first(args, dev); t.left != 0;            \
             t = rma_next(args, dev, wg, t)) {                                 \
            for (size_t at = part.start; at < args->bytes; at += part.step) {  \
                size_t n = rma_tile(part, args->bytes, at);                    \
                const char *from = (const char *)args->src + at;               \
                char *to = (char *)t.dst + at;                                 \
                statement;                                                     \
            }                                                                  \
        }                                                                      \
    }

RMA_BULK(rma_wg_put, iris_wg_put(wg, dev, from, to, n, t.peer))
RMA_BULK(rma_wg_get, iris_wg_get(wg, dev, from, to, n, t.peer))
RMA_BULK(rma_wg_copy, iris_wg_copy(wg, dev, from, to, n, t.peer, t.next))
/* clang-format on */

/* The CPU's own memcpy, for comparison. */
IRIS_DEVICE void rma_memcpy(void *to, const void *from, size_t bytes)
{
#if IRIS_ON_CPU
    memcpy(to, from, bytes);
#else /* GPUs have no memcpy and do not launch these kernels */
    (void)to, (void)from, (void)bytes;
#endif
}

/* clang-format off */
RMA_BULK(rma_memcpy_put, rma_memcpy(iris_dev_as_remote(dev, to, t.peer), from, n))
RMA_BULK(rma_memcpy_get, rma_memcpy(to, iris_dev_as_remote(dev, from, t.peer), n))
RMA_BULK(rma_memcpy_copy, rma_memcpy(iris_dev_as_remote(dev, to, t.next),
                                     iris_dev_as_remote(dev, from, t.peer), n))
/* clang-format on */

/* A bulk copy with another depth than the target's default (device/wg/wg.h). CPUs
 * have no depth. */
IRIS_DEVICE void rma_deep(iris_wg_t wg, void *to, const void *from,
                          size_t bytes, unsigned depth)
{
#if IRIS_ON_CPU
    (void)depth;
    iris_d_wg_bytes(wg, to, from, bytes);
#else
    iris_d_team_t team = {iris_d_lane(), wg.num_lanes};

    iris_d_wg_bytes_deep(team, to, from, bytes, depth);
#endif
}

/* clang-format off */
#define RMA_DEPTH(depth)                                                       \
    RMA_TILES(rma_put_d##depth, SIZE_MAX,                                      \
              rma_deep(wg, iris_dev_as_remote(dev, to, t.peer), from, n, depth)) \
    RMA_TILES(rma_get_d##depth, SIZE_MAX,                                      \
              rma_deep(wg, to, iris_dev_as_remote(dev, from, t.peer), n, depth))
RMA_DEPTH(0)
RMA_DEPTH(4)
RMA_DEPTH(8)
RMA_DEPTH(12)
/* clang-format on */

#endif /* IRIS_BENCH_RMA_KERNELS_H */
