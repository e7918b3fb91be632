/* SPDX-License-Identifier: MIT
 *
 * A product and its transport in one kernel, whose workgroups are divided
 * between them.
 *
 * The first workgroups push this member's share of `a` to all members, if there
 * is something to gather. The next ones multiply a tile in one part of k at a
 * time, when all of its rows have come, into `partial`. The last ones finish
 * tiles, when all of their parts are there: they add the parts and the bias,
 * and store the rounded sums to `out`, or push them to all members, whose
 * products they add when these have come.
 *
 * A workgroup waits only for workgroups with a lower number: its own rank's, or
 * the other members' of an earlier kind. GPUs and CPUs start workgroups in the
 * order of their numbers, so a call ends with any number of workgroups that run
 * at the same time.
 *
 * A member pushes to another one only when that one has begun the call: the
 * other's call before has then ended, and nothing reads the old contents.
 */
#ifndef IRIS_DEVICE_KERNELS_OPS_FUSED_H
#define IRIS_DEVICE_KERNELS_OPS_FUSED_H

#include <iris/device/wg/kernel.h>
#include <iris/device/core/signal.h>
#include <iris/device/kernels/ccl_space.h>
#include <iris/device/kernels/ops_args.h>
#include <iris/device/wg/tile_product.h>

/* A workgroup's part in a call. */
typedef struct iris_d_fused {
    iris_dev_t dev;
    const struct iris_ops_fused_args *args;
    iris_tile_sums_t *sums; /* in local memory, like `told` */
    uint32_t *told;         /* by the leader to the other lanes */
    iris_dtype_t dtype;
} iris_d_fused_t;

IRIS_DEVICE uint32_t iris_d_fused_blocks(uint32_t n, uint32_t size)
{
    return n == 0 ? 0 : (n - 1) / size + 1;
}

IRIS_DEVICE uint32_t iris_d_fused_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

IRIS_DEVICE uint32_t iris_d_fused_max(uint32_t a, uint32_t b)
{
    return a < b ? b : a;
}

/* The number of this call among those with that member. */
IRIS_DEVICE uint64_t iris_d_fused_number(const struct iris_ops_fused_args *args,
                                         size_t member)
{
    return args->meetings[args->ranks[member]].ended + 1;
}

IRIS_DEVICE iris_tile_t iris_d_fused_matrix(struct iris_d_matrix matrix,
                                            uint32_t rows, uint32_t cols,
                                            iris_dtype_t dtype)
{
    iris_tile_t tile = iris_tile(matrix.data, rows, cols, matrix.row,
                                 dtype == IRIS_DTYPE_F32 ? 4 : 2);

    tile.col_stride = matrix.col;
    return tile;
}

/* Rows and columns of a matrix, up to but not including the ends. */
typedef struct iris_d_fused_area {
    uint32_t row;
    uint32_t row_end;
    uint32_t col;
    uint32_t col_end;
} iris_d_fused_area_t;

IRIS_DEVICE iris_d_fused_area_t iris_d_fused_common(iris_d_fused_area_t a,
                                                    iris_d_fused_area_t b)
{
    a.row = iris_d_fused_max(a.row, b.row);
    a.row_end = iris_d_fused_min(a.row_end, b.row_end);
    a.col = iris_d_fused_max(a.col, b.col);
    a.col_end = iris_d_fused_min(a.col_end, b.col_end);
    return a;
}

IRIS_DEVICE iris_bool_t iris_d_fused_empty(iris_d_fused_area_t area)
{
    return area.row >= area.row_end || area.col >= area.col_end;
}

/* The area of a tile of elements, from (row, col) of a larger one on. */
IRIS_DEVICE iris_tile_t iris_d_fused_cut(iris_tile_t tile, uint32_t row,
                                         uint32_t col, iris_d_fused_area_t area)
{
    tile.data = iris_d_tile_at(&tile, area.row - row, area.col - col);
    tile.rows = area.row_end - area.row;
    tile.cols = area.col_end - area.col;
    return tile;
}

/* A member's share of the gathered `a`. */
IRIS_DEVICE iris_d_fused_area_t
iris_d_fused_share(const struct iris_ops_fused_args *args, uint32_t member)
{
    uint32_t whole = args->by_column ? args->k : args->m;
    uint32_t each = whole / args->members, more = whole % args->members;
    uint32_t begin = each * member + iris_d_fused_min(member, more);
    uint32_t end = begin + each + (member < more);
    iris_d_fused_area_t rows = {begin, end, 0, args->k};
    iris_d_fused_area_t columns = {0, args->m, begin, end};

    return args->by_column ? columns : rows;
}

/* ---- The begin and the end of a call ---- */

/* Tells the other members of this call. One workgroup. */
IRIS_DEVICE void iris_d_fused_announce(iris_wg_t wg, iris_d_fused_t call)
{
    const struct iris_ops_fused_args *args = call.args;
    struct iris_ops_meeting *mine = &args->meetings[call.dev.rank];

    IRIS_WG_LANES (wg, i, args->members) {
        uint64_t number = iris_d_fused_number(args, i);
        uint64_t *words = &mine->call[number & 1].what;

        if (i != args->index) {
            iris_store_u64(call.dev, words, args->call.what, args->ranks[i]);
            for (int s = 0; s < 3; s++) {
                iris_store_u64(call.dev, words + 1 + s, args->call.sizes[s],
                               args->ranks[i]);
            }
            iris_signal_set(call.dev, &mine->begun, number, args->ranks[i]);
        }
    }
}

IRIS_DEVICE iris_bool_t iris_d_fused_same(const struct iris_dev_call *a,
                                          const struct iris_dev_call *b)
{
    return a->what == b->what && a->sizes[0] == b->sizes[0] &&
           a->sizes[1] == b->sizes[1] && a->sizes[2] == b->sizes[2];
}

/* Waits until all members have begun this call. 0: one of them has begun
 * another one, and the host is told. A member that is a call further has found
 * this one to be the same. */
IRIS_DEVICE iris_bool_t iris_d_fused_meet(iris_wg_t wg, iris_d_fused_t call)
{
    const struct iris_ops_fused_args *args = call.args;
    struct iris_dev_mismatch mismatch;

    if (iris_wg_leader(wg)) {
        *call.told = args->members;
        for (uint32_t i = 0; i < args->members; i++) {
            struct iris_ops_meeting *theirs = &args->meetings[args->ranks[i]];
            uint64_t number = theirs->ended + 1;

            if (i != args->index &&
                iris_wait_until_u64(call.dev, &theirs->begun, IRIS_CMP_GE,
                                    number) == number &&
                !iris_d_fused_same(&theirs->call[number & 1], &args->call)) {
                *call.told = i;
                mismatch.rank = (int32_t)call.dev.rank;
                mismatch.other = args->ranks[i];
                mismatch.count = number;
                mismatch.own = args->call;
                mismatch.theirs = theirs->call[number & 1];
            }
        }
    }
    iris_wg_barrier(wg);
    if (*call.told == args->members) {
        return 1;
    }
    if (iris_wg_leader(wg)) {
        iris_d_mismatch_tell(call.dev, mismatch);
    }
    return 0;
}

/* The last workgroup prepares the words for the next call. */
IRIS_DEVICE void iris_d_fused_end(iris_wg_t wg, iris_d_fused_t call)
{
    const struct iris_ops_fused_args *args = call.args;

    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        *call.told =
            iris_atomic_add_u64(call.dev, &args->progress->left, 1,
                                call.dev.rank, IRIS_ACQ_REL, IRIS_SCOPE_AGENT) +
                1 ==
            wg.num_wgs;
    }
    iris_wg_barrier(wg);
    if (*call.told) {
        args->progress->left = 0;
        IRIS_WG_LANES (wg, i, IRIS_OPS_FUSED_SLOTS) {
            args->progress->ready[i] = 0;
        }
        IRIS_WG_LANES (wg, i, args->members) {
            args->meetings[args->ranks[i]].ended++;
        }
    }
}

/* ---- The three kinds of workgroups ---- */

/* Sends block `block` of this member's rows, in that part of k, to a member. */
IRIS_DEVICE void iris_d_fused_push(iris_wg_t wg, iris_d_fused_t call,
                                   uint32_t block, uint32_t part,
                                   uint32_t member)
{
    const struct iris_ops_fused_args *args = call.args;
    struct iris_d_matrix kept = {args->kept, args->k, 1};
    iris_d_fused_area_t share = iris_d_fused_share(args, args->index);
    uint32_t row = share.row + block * args->block, col = part * args->depth;
    iris_d_fused_area_t area = {row, row + args->block, col, col + args->depth};
    uint64_t *arrived = args->meetings[call.dev.rank].arrived;

    area = iris_d_fused_common(area, share);
    if (!iris_d_fused_empty(area)) {
        iris_wg_tile_put_signal(
            wg, call.dev,
            iris_d_fused_cut(iris_d_fused_matrix(args->a, 0, 0, call.dtype),
                             share.row, share.col, area),
            iris_d_fused_cut(iris_d_fused_matrix(kept, 0, 0, call.dtype), 0, 0,
                             area),
            &arrived[block * args->parts + part],
            iris_d_fused_number(args, member), args->ranks[member]);
    }
}

IRIS_DEVICE void iris_d_fused_push_all(iris_wg_t wg, iris_d_fused_t call)
{
    const struct iris_ops_fused_args *args = call.args;
    iris_d_fused_area_t share = iris_d_fused_share(args, args->index);
    size_t each = (size_t)args->parts * args->members;
    size_t items =
        each * iris_d_fused_blocks(share.row_end - share.row, args->block);

    for (size_t i = wg.id; i < items; i += args->pushers) {
        iris_d_fused_push(wg, call, (uint32_t)(i / each),
                          (uint32_t)(i % each / args->members),
                          (uint32_t)(i + args->index) % args->members);
    }
}

/* Waits until all members' shares of that area of `a`, in one part of k, have
 * come. */
IRIS_DEVICE void iris_d_fused_await(iris_wg_t wg, iris_d_fused_t call,
                                    iris_d_fused_area_t area, uint32_t part)
{
    const struct iris_ops_fused_args *args = call.args;

    IRIS_WG_LANES (wg, i, args->members) {
        iris_d_fused_area_t share = iris_d_fused_share(args, (uint32_t)i);
        iris_d_fused_area_t own = iris_d_fused_common(area, share);
        uint64_t *arrived = args->meetings[args->ranks[i]].arrived;

        uint32_t b = (own.row - share.row) / args->block;

        while (!iris_d_fused_empty(own) &&
               share.row + b * args->block < own.row_end) {
            (void)iris_wait_until_u64(
                call.dev, &arrived[b * args->parts + part], IRIS_CMP_GE,
                iris_d_fused_number(args, i));
            b++;
        }
    }
    iris_wg_barrier(wg);
}

/* Multiplies a tile in one part of k. */
IRIS_DEVICE void iris_d_fused_multiply(iris_wg_t wg, iris_d_fused_t call,
                                       size_t tile, uint32_t part)
{
    const struct iris_ops_fused_args *args = call.args;
    uint32_t across = iris_d_fused_blocks(args->n, IRIS_SUMS_COLS);
    uint32_t down = (uint32_t)(tile / across);
    uint32_t row = down * IRIS_SUMS_ROWS, col = part * args->depth;
    struct iris_d_matrix kept = {args->kept, args->k, 1};
    iris_tile_t a = iris_d_fused_matrix(args->pushers != 0 ? kept : args->a,
                                        args->m, args->k, call.dtype);
    iris_tile_t b = iris_d_fused_matrix(args->b, args->k, args->n, call.dtype);
    float *to = args->partial +
                (tile * args->parts + part) * IRIS_SUMS_ROWS * IRIS_SUMS_COLS;

    a = iris_tile_block(a, down, part, IRIS_SUMS_ROWS, args->depth);
    b = iris_tile_block(b, part, (uint32_t)(tile % across), args->depth,
                        IRIS_SUMS_COLS);
    if (args->pushers != 0) {
        iris_d_fused_area_t area = {row, row + a.rows, col, col + a.cols};

        iris_d_fused_await(wg, call, area, part);
    }
    iris_wg_tile_sums_zero(wg, call.sums);
    iris_d_tile_product(wg, call.sums, a, b, call.dtype, args->in_order != 0);
    IRIS_WG_LANES (wg, i, a.rows * IRIS_SUMS_COLS) {
        to[i] = call.sums->values[i / IRIS_SUMS_COLS][i % IRIS_SUMS_COLS];
    }
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_add(call.dev, &args->progress->ready[tile / args->per_slot],
                        1, call.dev.rank);
    }
}

/* Adds a tile's parts and the bias. `at` is the tile of the whole product. */
IRIS_DEVICE void iris_d_fused_add(iris_wg_t wg, iris_d_fused_t call,
                                  size_t tile, iris_d_fused_area_t at)
{
    const struct iris_ops_fused_args *args = call.args;
    const size_t size = IRIS_SUMS_ROWS * IRIS_SUMS_COLS;
    const float *from = args->partial + tile * args->parts * size;
    uint32_t cols = at.col_end - at.col;
    iris_tile_t bias =
        iris_d_fused_matrix(args->bias, args->m, args->n, call.dtype);

    iris_wg_barrier(wg); /* the last tile's sums have been used */
    IRIS_WG_LANES (wg, e, (at.row_end - at.row) * cols) {
        uint32_t r = (uint32_t)e / cols, c = (uint32_t)e % cols;
        float sum = from[r * IRIS_SUMS_COLS + c];

        for (uint32_t p = 1; p < args->parts; p++) {
            sum += from[p * size + r * IRIS_SUMS_COLS + c];
        }
        if (bias.data != NULL) {
            sum += iris_d_sums_element(
                iris_d_tile_at(&bias, at.row + r, at.col + c), call.dtype);
        }
        call.sums->values[r][c] = sum;
    }
    iris_wg_barrier(wg);
}

/* The tile of the whole product. */
IRIS_DEVICE iris_d_fused_area_t
iris_d_fused_place(const struct iris_ops_fused_args *args, size_t tile)
{
    uint32_t across = iris_d_fused_blocks(args->n, IRIS_SUMS_COLS);
    uint32_t row = (uint32_t)(tile / across) * IRIS_SUMS_ROWS;
    uint32_t col = (uint32_t)(tile % across) * IRIS_SUMS_COLS;
    iris_d_fused_area_t area = {
        row, row + iris_d_fused_min(args->m - row, IRIS_SUMS_ROWS), col,
        col + iris_d_fused_min(args->n - col, IRIS_SUMS_COLS)};

    return area;
}

/* Where a member's rounded product is, on each rank. */
IRIS_DEVICE iris_tile_t iris_d_fused_inbox(iris_d_fused_t call, uint32_t member)
{
    const struct iris_ops_fused_args *args = call.args;
    struct iris_d_matrix kept = {args->kept, args->n, 1};
    iris_tile_t inbox = iris_d_fused_matrix(kept, args->m, args->n, call.dtype);

    inbox.data = (char *)inbox.data +
                 (size_t)member * args->m * args->n * inbox.elem_bytes;
    return inbox;
}

/* Finishes a tile of this rank's product: stores it to `out`, or to each
 * member. */
IRIS_DEVICE void iris_d_fused_finish(iris_wg_t wg, iris_d_fused_t call,
                                     size_t tile)
{
    const struct iris_ops_fused_args *args = call.args;
    iris_d_fused_area_t at = iris_d_fused_place(args, tile);
    struct iris_d_matrix whole = {args->out, args->out_row, 1};
    iris_tile_t out = iris_d_fused_cut(
        iris_d_fused_matrix(whole, 0, 0, call.dtype), 0, 0, at);
    iris_tile_t inbox =
        iris_d_fused_cut(iris_d_fused_inbox(call, args->index), 0, 0, at);

    iris_d_fused_add(wg, call, tile, at);
    if (args->pushers != 0 || args->members == 1) {
        IRIS_WG_LANES (wg, e, out.rows * out.cols) {
            uint32_t r = (uint32_t)e / out.cols, c = (uint32_t)e % out.cols;

            iris_d_sums_to_element(iris_d_tile_at(&out, r, c),
                                   call.sums->values[r][c], call.dtype);
        }
        return;
    }
    for (uint32_t i = 1; i <= args->members; i++) {
        iris_wg_tile_sums_put(wg, call.dev, call.sums, inbox, call.dtype,
                              args->ranks[(args->index + i) % args->members]);
    }
}

/* Adds the members' products of a tile in the group's order. */
IRIS_DEVICE void iris_d_fused_sum(iris_wg_t wg, iris_d_fused_t call,
                                  size_t tile)
{
    const struct iris_ops_fused_args *args = call.args;
    iris_d_fused_area_t at = iris_d_fused_place(args, tile);
    struct iris_d_matrix out = {args->out, args->out_row, 1};
    iris_tile_t to =
        iris_d_fused_cut(iris_d_fused_matrix(out, 0, 0, call.dtype), 0, 0, at);

    IRIS_WG_LANES (wg, e, to.rows * to.cols) {
        uint32_t r = (uint32_t)e / to.cols, c = (uint32_t)e % to.cols;
        float sum = 0;

        for (uint32_t i = 0; i < args->members; i++) {
            iris_tile_t from = iris_d_fused_inbox(call, i);
            float value = iris_d_sums_element(
                iris_d_tile_at(&from, at.row + r, at.col + c), call.dtype);

            sum = i == 0 ? value : sum + value;
        }
        iris_d_sums_to_element(iris_d_tile_at(&to, r, c), sum, call.dtype);
    }
}

/* The tiles of one flag. */
IRIS_DEVICE size_t iris_d_fused_first(const struct iris_ops_fused_args *args,
                                      size_t slot)
{
    size_t tiles = (size_t)iris_d_fused_blocks(args->m, IRIS_SUMS_ROWS) *
                   iris_d_fused_blocks(args->n, IRIS_SUMS_COLS);
    size_t first = slot * args->per_slot;

    return first < tiles ? first : tiles;
}

IRIS_DEVICE void iris_d_fused_finish_all(iris_wg_t wg, iris_d_fused_t call,
                                         uint32_t begin, uint32_t step)
{
    const struct iris_ops_fused_args *args = call.args;
    iris_bool_t sends = args->pushers == 0 && args->members > 1;
    struct iris_ops_meeting *meetings = args->meetings;
    size_t slot, first, end;

    for (slot = begin; (first = iris_d_fused_first(args, slot)) <
                       (end = iris_d_fused_first(args, slot + 1));
         slot += step) {
        if (iris_wg_leader(wg)) {
            (void)iris_wait_until_u64(call.dev, &args->progress->ready[slot],
                                      IRIS_CMP_GE, (end - first) * args->parts);
        }
        iris_wg_barrier(wg);
        for (size_t tile = first; tile < end; tile++) {
            iris_d_fused_finish(wg, call, tile);
        }
        iris_wg_barrier(wg);
        IRIS_WG_LANES (wg, i, sends ? args->members : 0) {
            iris_signal_set(call.dev, &meetings[call.dev.rank].arrived[slot],
                            iris_d_fused_number(args, i), args->ranks[i]);
        }
    }
    for (slot = begin; sends && (first = iris_d_fused_first(args, slot)) <
                                    (end = iris_d_fused_first(args, slot + 1));
         slot += step) {
        IRIS_WG_LANES (wg, i, args->members) {
            (void)iris_wait_until_u64(
                call.dev, &meetings[args->ranks[i]].arrived[slot], IRIS_CMP_GE,
                iris_d_fused_number(args, i));
        }
        iris_wg_barrier(wg);
        for (size_t tile = first; tile < end; tile++) {
            iris_d_fused_sum(wg, call, tile);
        }
    }
}

IRIS_DEVICE void iris_d_fused_run(iris_wg_t wg, iris_d_fused_t call)
{
    const struct iris_ops_fused_args *args = call.args;
    uint32_t others = args->pushers + args->products;
    size_t items = iris_d_fused_first(args, IRIS_OPS_FUSED_SLOTS) * args->parts;
    iris_bool_t meets =
        args->pushers != 0 ? wg.id < args->pushers : wg.id >= others;

    if (wg.id == 0) {
        iris_d_fused_announce(wg, call);
    }
    if (meets && !iris_d_fused_meet(wg, call)) {
        return;
    }
    if (wg.id < args->pushers) {
        iris_d_fused_push_all(wg, call);
    } else if (wg.id < others) {
        for (size_t i = wg.id - args->pushers; i < items; i += args->products) {
            iris_d_fused_multiply(wg, call, i / args->parts,
                                  (uint32_t)(i % args->parts));
        }
    } else {
        iris_d_fused_finish_all(wg, call, wg.id - others, wg.num_wgs - others);
    }
    iris_d_fused_end(wg, call);
}

#define IRIS_D_FUSED(name, DTYPE)                                              \
    IRIS_KERNEL(iris_k_ops_fused_##name, struct iris_ops_fused_args)           \
    {                                                                          \
        IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);                              \
        IRIS_WG_LOCAL(uint32_t, told, 1);                                      \
        iris_d_fused_t call = {iris_dev_init(args->context), args, sums, told, \
                               DTYPE};                                         \
                                                                               \
        iris_d_fused_run(wg, call);                                            \
    }
IRIS_D_FUSED(f32, IRIS_DTYPE_F32)
IRIS_D_FUSED(f16, IRIS_DTYPE_F16)
IRIS_D_FUSED(bf16, IRIS_DTYPE_BF16)

#endif /* IRIS_DEVICE_KERNELS_OPS_FUSED_H */
