/* SPDX-License-Identifier: MIT
 *
 * The GPU code of iris probe: a kernel for each check, and the board on every
 * rank's heap that the kernels write.
 */
#ifndef IRIS_TOOLS_PROBE_KERNELS_H
#define IRIS_TOOLS_PROBE_KERNELS_H

#include <iris/device.h>
#include <iris/device/core/float8.h>
#include <iris/device/wg_ccl_tile.h>

#define PROBE_MOST_RANKS 64
#define PROBE_GRID 2u
#define PROBE_WORDS 2048u
#define PROBE_CELLS 3u /* of a type: add, compare-and-swap, maximum */
#define PROBE_UPDATES \
    64u /* updates of a cell by all ranks; bf16 counts to
                           * 256 */
/* Tries of a compare-and-swap that never succeeds. */
#define PROBE_TRIES 100000
#define PROBE_TILE_BYTES ((uint64_t)65536)
/* A word of memory that a stream has filled. */
#define PROBE_FILLED UINT64_C(0x5555555555555555)

/* The kinds of errors. */
enum probe_what {
    PROBE_RANK = 1,
    PROBE_NUM_RANKS,
    PROBE_BASE,
    PROBE_ID,
    PROBE_DATA,
    PROBE_PRODUCT,
    PROBE_FLOAT8,
    PROBE_ORDER,
    PROBE_NUM_WHATS
};

/* The errors that a rank's kernels found. */
struct probe_notes {
    uint64_t wrong; /* how often; then the first */
    uint64_t what;
    uint64_t expected;
    uint64_t seen;
};

/* One on each rank's heap. */
struct probe_board {
    struct probe_notes notes;
    uint64_t id;                      /* rank's, of this run */
    uint64_t bases[PROBE_MOST_RANKS]; /* every rank's board; 0: not mapped */
    uint64_t flag;
    uint64_t sent[PROBE_GRID];
    uint64_t taken[PROBE_GRID];
    uint64_t out[PROBE_GRID][PROBE_WORDS];
    uint64_t in[PROBE_GRID][PROBE_WORDS];
#define PROBE_CELLS_OF(name, c_type, arg) c_type name[PROBE_CELLS];
    IRIS_TYPES(PROBE_CELLS_OF, )
#undef PROBE_CELLS_OF
};

struct probe_args {
    const int64_t *context;
    struct probe_board *board;
    uint64_t *out; /* target of a large copy, symmetric */
    uint64_t *in;
    uint64_t bytes;
    uint64_t members; /* ranks that take part, a bit each */
    uint64_t rounds;
    uint64_t salt; /* varies the patterns, so that no old data is right */
    int32_t rank;
    int32_t num_ranks;
    int32_t peer;
    iris_ccl_device_t handle; /* for the check "tiles" */
};

/* Notes in this rank's board if the two differ. Any lane. */
IRIS_DEVICE void probe_expect(iris_dev_t dev, struct probe_board *board,
                              enum probe_what what, uint64_t expected,
                              uint64_t seen)
{
    struct probe_notes *notes = &board->notes;

    if (expected != seen &&
        iris_atomic_add_u64(dev, &notes->wrong, 1, dev.rank, IRIS_RELAXED,
                            IRIS_SCOPE_SYSTEM) == 0) {
        notes->what = (uint64_t)what;
        notes->expected = expected;
        notes->seen = seen;
    }
}

IRIS_HOST_DEVICE uint64_t probe_pattern(int from, uint64_t salt, uint64_t i)
{
    uint64_t bits = ((uint64_t)from + 1) * 0x9e3779b97f4a7c15u +
                    salt * 0xd1342543de82ef95u + i * 0xaf251af3b0f025b5u;

    return bits ^ bits >> 31;
}

/* Is what a kernel starts from what the host has, and the memory of the peer
 * the peer's? One workgroup. */
IRIS_KERNEL(probe_context, struct probe_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct probe_board *board = args->board;

    if (iris_wg_leader(wg)) {
        probe_expect(dev, board, PROBE_RANK, (uint64_t)args->rank,
                     (uint64_t)dev.rank);
        probe_expect(dev, board, PROBE_NUM_RANKS, (uint64_t)args->num_ranks,
                     (uint64_t)dev.num_ranks);
        for (int rank = 0; rank < args->num_ranks; rank++) {
            if (board->bases[rank] != 0) {
                probe_expect(
                    dev, board, PROBE_BASE, board->bases[rank],
                    (uint64_t)(uintptr_t)iris_dev_as_remote(dev, board, rank));
            }
        }
        probe_expect(dev, board, PROBE_ID, args->salt + (uint64_t)args->peer,
                     iris_load_volatile_u64(dev, &board->id, args->peer));
    }
}

/* A number goes to the peer and comes again, while both kernels run. The lower
 * rank begins. One workgroup. */
IRIS_KERNEL(probe_flag, struct probe_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *flag = &args->board->flag;

    for (uint64_t round = 1; round <= args->rounds; round++) {
        if (iris_wg_leader(wg)) {
            if (dev.rank < args->peer) {
                iris_signal_set(dev, flag, round, args->peer);
            }
            (void)iris_wait_until_u64(dev, flag, IRIS_CMP_GE, round);
            if (dev.rank > args->peer) {
                iris_signal_set(dev, flag, round, args->peer);
            }
        }
    }
}

/* All lanes: writes a round's words to the peer, then the signal. By a bulk
 * copy, or each lane by stores. */
IRIS_DEVICE void probe_send(iris_wg_t wg, iris_dev_t dev,
                            const struct probe_args *args, uint64_t round)
{
    struct probe_board *board = args->board;
    uint64_t *out = board->out[wg.id], *in = board->in[wg.id];

    if (iris_wg_leader(wg) && round > 1) {
        (void)iris_wait_until_u64(dev, &board->taken[wg.id], IRIS_CMP_GE,
                                  round - 1);
    }
    iris_wg_barrier(wg);
    if (round % 2 == 0) {
        IRIS_WG_LANES (wg, i, PROBE_WORDS) {
            iris_store_u64(dev, &in[i], probe_pattern(dev.rank, round, i),
                           args->peer);
        }
        iris_wg_barrier(wg);
        if (iris_wg_leader(wg)) {
            iris_signal_set(dev, &board->sent[wg.id], round, args->peer);
        }
        return;
    }
    IRIS_WG_LANES (wg, i, PROBE_WORDS) {
        out[i] = probe_pattern(dev.rank, round, i);
    }
    iris_wg_barrier(wg);
    iris_wg_put_signal(wg, dev, out, in, PROBE_WORDS * sizeof *out,
                       &board->sent[wg.id], round, args->peer);
}

/* Workgroup k of each rank sends to the other rank's workgroup k, and checks
 * the data that it gets. */
IRIS_KERNEL(probe_data, struct probe_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct probe_board *board = args->board;
    const uint64_t *in = board->in[wg.id];

    for (uint64_t round = 1; round <= args->rounds; round++) {
        probe_send(wg, dev, args, round);
        if (iris_wg_leader(wg)) {
            (void)iris_wait_until_u64(dev, &board->sent[wg.id], IRIS_CMP_GE,
                                      round);
        }
        iris_wg_barrier(wg);
        IRIS_WG_LANES (wg, i, PROBE_WORDS) {
            probe_expect(dev, board, PROBE_DATA,
                         probe_pattern(args->peer, round, i), in[i]);
        }
        iris_wg_barrier(wg);
        if (iris_wg_leader(wg)) {
            iris_signal_set(dev, &board->taken[wg.id], round, args->peer);
        }
    }
}

/* ---- Atomics ---- */

/* clang-format off */
#define PROBE_INTEGER(name, c_type, arg)                                       \
    IRIS_HOST_DEVICE c_type probe_number_##name(int n) { return (c_type)n; }   \
    IRIS_HOST_DEVICE float probe_float_##name(c_type x) { return (float)x; }
#define PROBE_HALF(name)                                                       \
    IRIS_HOST_DEVICE iris_##name##_t probe_number_##name(int n)                \
    {                                                                          \
        return iris_##name##_from_f32((float)n);                               \
    }                                                                          \
    IRIS_HOST_DEVICE float probe_float_##name(iris_##name##_t x)               \
    {                                                                          \
        return iris_##name##_to_f32(x);                                        \
    }
IRIS_INTEGER_TYPES(PROBE_INTEGER, )
PROBE_INTEGER(f32, float, )
PROBE_INTEGER(f64, double, )
PROBE_HALF(f16)
PROBE_HALF(bf16)
#undef PROBE_INTEGER
#undef PROBE_HALF

/* Adds 1 by compare-and-swap. For f32:
 * void probe_count_f32(iris_dev_t dev, float *cell, int rank). */
#define PROBE_COUNT(name, c_type, arg)                                         \
    IRIS_DEVICE void probe_count_##name(iris_dev_t dev, c_type *cell, int rank)\
    {                                                                          \
        int seen = 0, old = -1;                                                \
        for (int i = 0; old != seen && i < PROBE_TRIES; i++) {                 \
            seen = old < 0 ? 0 : old;                                          \
            old = (int)probe_float_##name(iris_atomic_cas_##name(              \
                dev, cell, probe_number_##name(seen),                          \
                probe_number_##name(seen + 1), rank, IRIS_RELAXED,             \
                IRIS_SCOPE_SYSTEM));                                           \
        }                                                                      \
    }
IRIS_TYPES(PROBE_COUNT, )
#undef PROBE_COUNT

/* Every member updates the cells of every member, all at once. For f32:
 * IRIS_KERNEL(probe_atomic_f32, struct probe_args). */
#define PROBE_ATOMIC(name, c_type, arg)                                        \
    IRIS_KERNEL(probe_atomic_##name, struct probe_args)                        \
    {                                                                          \
        iris_dev_t dev = iris_dev_init(args->context);                         \
        c_type *cell = args->board->name;                                      \
        for (int rank = 0; rank < dev.num_ranks; rank++) {                     \
            IRIS_LANES(wg, i, args->members >> rank & 1 ? args->rounds : 0) {  \
                (void)iris_atomic_add_##name(                                  \
                    dev, &cell[0], probe_number_##name(1), rank, IRIS_RELAXED, \
                    IRIS_SCOPE_SYSTEM);                                        \
                probe_count_##name(dev, &cell[1], rank);                       \
                (void)iris_atomic_max_##name(                                  \
                    dev, &cell[2], probe_number_##name(dev.rank + 1), rank,    \
                    IRIS_RELAXED, IRIS_SCOPE_SYSTEM);                          \
            }                                                                  \
        }                                                                      \
    }
IRIS_TYPES(PROBE_ATOMIC, )
#undef PROBE_ATOMIC
/* clang-format on */

/* ---- Work of one workgroup ---- */

/* clang-format off */
/* A product of tiles, by matrix instructions where the GPU has them. For f32:
 * void probe_product_f32(...). */
#define PROBE_PRODUCT_OF(name, c_type, DTYPE)                                  \
    IRIS_DEVICE void probe_product_##name(iris_wg_t wg, iris_dev_t dev,        \
                                          struct probe_board *board,           \
                                          iris_tile_sums_t *sums)              \
    {                                                                          \
        c_type *a = (c_type *)board->in, *c = a + 512;                         \
        iris_tile_t tile = iris_tile(a, 16, 32, 32, sizeof *a);                \
        iris_wg_barrier(wg);                                                   \
        IRIS_WG_LANES (wg, i, 512) { a[i] = probe_number_##name(2); }          \
        iris_wg_barrier(wg);                                                   \
        iris_wg_tile_sums_zero(wg, sums);                                      \
        iris_wg_tile_product(wg, sums, tile,                                   \
                             iris_tile(a, 32, 16, 16, sizeof *a), DTYPE);      \
        iris_wg_tile_sums_put(wg, dev, sums,                                   \
                              iris_tile(c, 16, 16, 16, sizeof *c), DTYPE,      \
                              dev.rank);                                       \
        iris_wg_barrier(wg);                                                   \
        IRIS_WG_LANES (wg, i, 256) {                                           \
            probe_expect(dev, board, PROBE_PRODUCT, 128,                       \
                         (uint64_t)probe_float_##name(c[i]));                  \
        }                                                                      \
    }
PROBE_PRODUCT_OF(f16, iris_f16_t, IRIS_DTYPE_F16)
PROBE_PRODUCT_OF(bf16, iris_bf16_t, IRIS_DTYPE_BF16)
PROBE_PRODUCT_OF(f32, float, IRIS_DTYPE_F32)
#undef PROBE_PRODUCT_OF

/* All numbers of the 8-bit types, to float and back. */
#define PROBE_FLOAT8_OF(name)                                                  \
    IRIS_WG_LANES (wg, i, 256) {                                               \
        iris_##name##_t x;                                                     \
        float value;                                                           \
        x.bits = (uint8_t)i;                                                   \
        value = iris_##name##_to_f32(x);                                       \
        probe_expect(dev, args->board, PROBE_FLOAT8, value == value ? i : 0,   \
                     value == value ? iris_##name##_from_f32(value).bits : 0); \
    }
/* clang-format on */

/* Makes products, converts 8-bit floats, and combines the first half of `in` as a
 * range, and the other as two tiles with gaps. One workgroup. */
IRIS_KERNEL(probe_tiles, struct probe_args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
    iris_dev_t dev = iris_dev_init(args->context);
    float *in = (float *)args->in, *out = (float *)args->out;
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, 0);

    probe_product_f16(wg, dev, args->board, sums);
    probe_product_bf16(wg, dev, args->board, sums);
    probe_product_f32(wg, dev, args->board, sums);
    PROBE_FLOAT8_OF(f8e4m3)
    PROBE_FLOAT8_OF(f8e5m2)
    iris_wg_all_reduce(wg, &ccl, in, out, 256, IRIS_DTYPE_F32, IRIS_REDUCE_SUM);
    for (int half = 0; half < 2; half++) {
        size_t at = 256 + 16 * (size_t)half;

        iris_wg_tile_all_reduce(wg, &ccl, iris_tile(in + at, 8, 16, 32, 4),
                                iris_tile(out + at, 8, 16, 32, 4),
                                IRIS_DTYPE_F32, IRIS_REDUCE_SUM);
    }
    iris_wg_ccl_end(wg, &ccl);
}

/* ---- Copies ---- */

/* Waits for the flag, while a stream copies. */
IRIS_KERNEL(probe_hold, struct probe_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        (void)iris_wait_until_u64(dev, &args->board->flag, IRIS_CMP_GE, 1);
    }
}

/* Waits until `rounds` other streams have come, each by probe_come. */
IRIS_KERNEL(probe_await, struct probe_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        (void)iris_wait_until_u64(dev, &args->board->flag, IRIS_CMP_GE,
                                  args->rounds);
    }
}

IRIS_KERNEL(probe_come, struct probe_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        iris_signal_add(dev, &args->board->flag, 1, dev.rank);
    }
}

/* `in` was filled, and then the host's words were copied over its first half. */
IRIS_KERNEL(probe_order, struct probe_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const uint64_t *in = args->board->in[0];

    IRIS_WG_LANES (wg, i, 2 * PROBE_WORDS) {
        probe_expect(dev, args->board, PROBE_ORDER,
                     i < PROBE_WORDS ? probe_pattern(args->rank, args->salt, i)
                                     : PROBE_FILLED,
                     in[i]);
    }
}

IRIS_KERNEL(probe_fill, struct probe_args)
{
    IRIS_LANES (wg, i, args->bytes / sizeof *args->out) {
        args->out[i] = probe_pattern(args->rank, args->salt, i);
    }
}

IRIS_KERNEL(probe_put, struct probe_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t step = wg.num_wgs * PROBE_TILE_BYTES;

    for (uint64_t at = wg.id * PROBE_TILE_BYTES; at < args->bytes; at += step) {
        uint64_t left = args->bytes - at;

        iris_wg_put(
            wg, dev, (const char *)args->out + at, (char *)args->in + at,
            left < PROBE_TILE_BYTES ? left : PROBE_TILE_BYTES, args->peer);
    }
}

IRIS_KERNEL(probe_verify, struct probe_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, i, args->bytes / sizeof *args->in) {
        probe_expect(dev, args->board, PROBE_DATA,
                     probe_pattern(args->peer, args->salt, i), args->in[i]);
    }
}

#endif /* IRIS_TOOLS_PROBE_KERNELS_H */
