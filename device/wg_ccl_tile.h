/* SPDX-License-Identifier: MIT
 *
 * Collectives of workgroups on tiles.
 *
 * A tile is cut into blocks that one step can move. Each block is copied
 * through a stage, memory of the workspace in which the block is contiguous,
 * and moved as a range (wg_ccl.h). A block that is contiguous where it lies
 * needs no stage. The cut depends on the tile's rows, columns and size of
 * elements, which are the same on all members. It does not depend on strides
 * and addresses.
 */
#ifndef IRIS_DEVICE_WG_CCL_TILE_H
#define IRIS_DEVICE_WG_CCL_TILE_H

#include <iris/device/wg/tile.h>
#include <iris/device/wg_ccl.h>

/* One tile, or one for each member, stacked: tile i begins `rows` rows below
 * tile i - 1. */
typedef struct iris_d_wg_side {
    iris_tile_t tile;
    uint32_t parts; /* 0: this rank does not use this side */
    char *stage;
} iris_d_wg_side_t;

/* Both sides of a collective, and the current block. */
typedef struct iris_d_wg_tiles {
    iris_wg_t wg;
    iris_d_wg_side_t in;
    iris_d_wg_side_t out;
    uint32_t rows; /* of a tile */
    uint32_t cols;
    uint32_t elem_bytes;
    uint32_t block_rows;
    uint32_t block_cols;
} iris_d_wg_tiles_t;

/* A member's part of a side. */
IRIS_DEVICE iris_tile_t iris_d_wg_part(const iris_d_wg_tiles_t *tiles,
                                       const iris_d_wg_side_t *side,
                                       uint32_t part)
{
    iris_tile_t tile = side->tile;

    tile.data = (char *)tile.data + (int64_t)part * tiles->rows *
                                        tile.row_stride *
                                        (int64_t)tile.elem_bytes;
    tile.rows = tiles->rows;
    tile.cols = tiles->cols;
    return tile;
}

/* The address of block (m, n) of a side if it is contiguous there, one part
 * behind the other; NULL if it has to go through the stage. A side without
 * parts has nothing to copy: it gets the address of the stage. */
IRIS_DEVICE char *iris_d_wg_in_place(const iris_d_wg_tiles_t *tiles,
                                     const iris_d_wg_side_t *side, uint32_t m,
                                     uint32_t n)
{
    iris_tile_t block = iris_tile_block(iris_d_wg_part(tiles, side, 0), m, n,
                                        tiles->block_rows, tiles->block_cols);
    iris_bool_t line = block.cols == 1 || block.col_stride == 1;
    iris_bool_t gaps =
        block.rows * side->parts > 1 && block.row_stride != block.cols;

    if (side->parts == 0) {
        return side->stage;
    }
    if (!line || gaps || (side->parts > 1 && block.rows != tiles->rows)) {
        return NULL;
    }
    return (char *)block.data;
}

/* Copies block (m, n) of each part between a side and its stage. */
IRIS_DEVICE void iris_d_wg_stage(const iris_d_wg_tiles_t *tiles,
                                 const iris_d_wg_side_t *side, uint32_t m,
                                 uint32_t n, iris_bool_t load)
{
    char *stage = side->stage;

    for (uint32_t i = 0; i < side->parts; i++) {
        iris_tile_t block =
            iris_tile_block(iris_d_wg_part(tiles, side, i), m, n,
                            tiles->block_rows, tiles->block_cols);
        iris_tile_t range = iris_tile(stage, block.rows, block.cols, block.cols,
                                      block.elem_bytes);

        if (load) {
            iris_d_tile_pieces(tiles->wg, iris_d_tile_plan(block, range));
        } else {
            iris_d_tile_pieces(tiles->wg, iris_d_tile_plan(range, block));
        }
        stage += (size_t)block.rows * block.cols * block.elem_bytes;
    }
}

IRIS_DEVICE iris_d_wg_tiles_t iris_d_wg_tiles(iris_wg_t wg,
                                              const iris_wg_ccl_t *wg_ccl,
                                              iris_tile_t in, uint32_t in_parts,
                                              iris_tile_t out,
                                              uint32_t out_parts)
{
    const iris_d_ccl_t *ccl = &wg_ccl->ccl;
    iris_tile_t one = in_parts == 1 ? in : out;
    uint32_t elems = (uint32_t)(wg_ccl->piece / one.elem_bytes);
    iris_d_wg_tiles_t tiles;

    tiles.wg = wg;
    tiles.in.tile = in;
    tiles.in.parts = in_parts;
    tiles.in.stage = iris_d_ccl_own(ccl, &ccl->space->stages);
    tiles.out.tile = out;
    tiles.out.parts = out_parts;
    tiles.out.stage =
        tiles.in.stage + iris_d_ccl_word(&ccl->space->stage_bytes);
    tiles.rows = one.rows;
    tiles.cols = one.cols;
    tiles.elem_bytes = one.elem_bytes;
    if (in_parts > 1 && out_parts > 1) {
        tiles.rows /= ccl->count;
    }
    tiles.block_cols = tiles.cols < elems ? tiles.cols : elems;
    tiles.block_rows = tiles.block_cols == 0 ? 0 : elems / tiles.block_cols;
    if (tiles.block_rows > tiles.rows) {
        tiles.block_rows = tiles.rows;
    }
    return tiles;
}

/* The collective, and its arguments. */
typedef struct iris_d_wg_which {
    int exchange; /* enum iris_ccl_exchange */
    iris_dtype_t dtype;
    iris_reduce_op_t op;
    uint32_t root;
} iris_d_wg_which_t;

/* The collective of a block that is a range: `count` elements of each part. */
IRIS_DEVICE void iris_d_wg_range(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                 iris_d_wg_which_t which, const char *in,
                                 char *out, size_t count, size_t bytes)
{
    switch (which.exchange) {
    case IRIS_CCL_REDUCE_ANY:
    case IRIS_CCL_REDUCE_ONE:
    case IRIS_CCL_REDUCE_TWO:
        iris_d_wg_all_reduce(wg, wg_ccl, (enum iris_ccl_exchange)which.exchange,
                             in, out, count, which.dtype, which.op);
        break;
    case IRIS_CCL_REDUCE_PARTS:
        iris_wg_reduce_scatter(wg, wg_ccl, in, out, count, which.dtype,
                               which.op);
        break;
    case IRIS_CCL_BRING_SUMS:
        iris_wg_reduce(wg, wg_ccl, in, out, count, which.dtype, which.op,
                       which.root);
        break;
    case IRIS_CCL_DEAL:
        iris_wg_scatter(wg, wg_ccl, in, out, bytes, which.root);
        break;
    case IRIS_CCL_GATHER:
        iris_wg_all_gather(wg, wg_ccl, in, out, bytes);
        break;
    case IRIS_CCL_SWAP:
        iris_wg_all_to_all(wg, wg_ccl, in, out, bytes);
        break;
    case IRIS_CCL_BRING:
        iris_wg_gather(wg, wg_ccl, in, out, bytes, which.root);
        break;
    default:
        iris_wg_broadcast(wg, wg_ccl, in, out, bytes, which.root);
    }
}

/* Block by block. A workgroup loads the next block once all its lanes have
 * ended the collective of this one. The collective's own barriers keep the
 * stores from `out`'s stage apart from its writes there. */
IRIS_DEVICE void iris_d_wg_tile_ccl(iris_wg_ccl_t *wg_ccl,
                                    iris_d_wg_tiles_t tiles,
                                    iris_d_wg_which_t which)
{
    if (tiles.rows == 0 || tiles.cols == 0) {
        iris_d_wg_range(tiles.wg, wg_ccl, which, NULL, NULL, 0, 0);
        return;
    }
    for (uint32_t row = 0, m = 0; row < tiles.rows;
         row += tiles.block_rows, m++) {
        for (uint32_t col = 0, n = 0; col < tiles.cols;
             col += tiles.block_cols, n++) {
            uint32_t rows = tiles.rows - row < tiles.block_rows
                                ? tiles.rows - row
                                : tiles.block_rows;
            uint32_t cols = tiles.cols - col < tiles.block_cols
                                ? tiles.cols - col
                                : tiles.block_cols;
            char *in = iris_d_wg_in_place(&tiles, &tiles.in, m, n);
            char *out = iris_d_wg_in_place(&tiles, &tiles.out, m, n);
            size_t count = (size_t)rows * cols;

            if (in == NULL) {
                iris_wg_barrier(tiles.wg); /* other lanes' writes are visible */
                iris_d_wg_stage(&tiles, &tiles.in, m, n, 1);
            }
            iris_d_wg_range(tiles.wg, wg_ccl, which,
                            in == NULL ? tiles.in.stage : in,
                            out == NULL ? tiles.out.stage : out, count,
                            count * tiles.elem_bytes);
            if (out == NULL) {
                iris_d_wg_stage(&tiles, &tiles.out, m, n, 0);
            }
        }
    }
    iris_wg_barrier(tiles.wg);
}

/* ---- Collectives of tiles --------------------------------------------------
 *
 * The rules above the collectives in wg_ccl.h hold for these, too. Members'
 * tiles have the same rows, columns and size of elements; each has its own
 * strides. If a tile has a part for each member, the parts are stacked by rows:
 * the tile has the rows of all parts, and member i's part is the i-th. (For
 * parts side by side, transpose both tiles.) Members whose tiles have no elements
 * only meet. `in` and `out` do not overlap, or are the same
 * view.
 *
 * @use workgroup; blocks
 * @param wg_ccl  result of iris_wg_ccl_begin()
 * @param in  elements that the call reads
 * @param out  elements that the call writes */

/** Combines all members' tiles in the group's order. Sends them in one shot or
 *  in two, as their bytes and the number of members make it faster; the bits
 *  are the same. */
IRIS_DEVICE void iris_wg_tile_all_reduce(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                         iris_tile_t in, iris_tile_t out,
                                         iris_dtype_t dtype,
                                         iris_reduce_op_t op)
{
    iris_d_wg_which_t which = {IRIS_CCL_REDUCE_ANY, dtype, op, 0};

    iris_d_wg_tile_ccl(wg_ccl, iris_d_wg_tiles(wg, wg_ccl, in, 1, out, 1),
                       which);
}

/** iris_wg_tile_all_reduce() in one shot. */
IRIS_DEVICE void
iris_wg_tile_all_reduce_one_shot(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                 iris_tile_t in, iris_tile_t out,
                                 iris_dtype_t dtype, iris_reduce_op_t op)
{
    iris_d_wg_which_t which = {IRIS_CCL_REDUCE_ONE, dtype, op, 0};

    iris_d_wg_tile_ccl(wg_ccl, iris_d_wg_tiles(wg, wg_ccl, in, 1, out, 1),
                       which);
}

/** iris_wg_tile_all_reduce() in two shots. */
IRIS_DEVICE void
iris_wg_tile_all_reduce_two_shot(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                 iris_tile_t in, iris_tile_t out,
                                 iris_dtype_t dtype, iris_reduce_op_t op)
{
    iris_d_wg_which_t which = {IRIS_CCL_REDUCE_TWO, dtype, op, 0};

    iris_d_wg_tile_ccl(wg_ccl, iris_d_wg_tiles(wg, wg_ccl, in, 1, out, 1),
                       which);
}

/** `in` has a part for each member. `out` gets this member's parts of all
 *  members, combined. */
IRIS_DEVICE void iris_wg_tile_reduce_scatter(iris_wg_t wg,
                                             iris_wg_ccl_t *wg_ccl,
                                             iris_tile_t in, iris_tile_t out,
                                             iris_dtype_t dtype,
                                             iris_reduce_op_t op)
{
    iris_d_wg_which_t which = {IRIS_CCL_REDUCE_PARTS, dtype, op, 0};

    iris_d_wg_tile_ccl(
        wg_ccl, iris_d_wg_tiles(wg, wg_ccl, in, wg_ccl->ccl.count, out, 1),
        which);
}

/** iris_wg_tile_all_reduce() to member `root` only. The other members' `out` is
 *  not looked at. */
IRIS_DEVICE void iris_wg_tile_reduce(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                     iris_tile_t in, iris_tile_t out,
                                     iris_dtype_t dtype, iris_reduce_op_t op,
                                     uint32_t root)
{
    iris_d_wg_which_t which = {IRIS_CCL_BRING_SUMS, dtype, op, root};
    uint32_t parts = wg_ccl->ccl.index == root ? 1 : 0;

    iris_d_wg_tile_ccl(wg_ccl, iris_d_wg_tiles(wg, wg_ccl, in, 1, out, parts),
                       which);
}

/** Member `root`'s `in` has a part for each member; `out` gets this member's.
 *  The other members' `in` is not looked at. */
IRIS_DEVICE void iris_wg_tile_scatter(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                      iris_tile_t in, iris_tile_t out,
                                      uint32_t root)
{
    iris_d_wg_which_t which = {IRIS_CCL_DEAL, IRIS_DTYPE_U8, IRIS_REDUCE_SUM,
                               root};
    uint32_t parts = wg_ccl->ccl.index == root ? wg_ccl->ccl.count : 0;

    iris_d_wg_tile_ccl(wg_ccl, iris_d_wg_tiles(wg, wg_ccl, in, parts, out, 1),
                       which);
}

/** `out`, which has a part for each member, gets the tiles of all of them. */
IRIS_DEVICE void iris_wg_tile_all_gather(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                         iris_tile_t in, iris_tile_t out)
{
    iris_d_wg_which_t which = {IRIS_CCL_GATHER, IRIS_DTYPE_U8, IRIS_REDUCE_SUM,
                               0};

    iris_d_wg_tile_ccl(
        wg_ccl, iris_d_wg_tiles(wg, wg_ccl, in, 1, out, wg_ccl->ccl.count),
        which);
}

/** iris_wg_tile_all_gather() to member `root` only. The other members' `out` is
 *  not looked at. */
IRIS_DEVICE void iris_wg_tile_gather(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                     iris_tile_t in, iris_tile_t out,
                                     uint32_t root)
{
    iris_d_wg_which_t which = {IRIS_CCL_BRING, IRIS_DTYPE_U8, IRIS_REDUCE_SUM,
                               root};
    uint32_t parts = wg_ccl->ccl.index == root ? wg_ccl->ccl.count : 0;

    iris_d_wg_tile_ccl(wg_ccl, iris_d_wg_tiles(wg, wg_ccl, in, 1, out, parts),
                       which);
}

/** Both tiles have a part for each member: member i gets part i of every
 *  member's. */
IRIS_DEVICE void iris_wg_tile_all_to_all(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                         iris_tile_t in, iris_tile_t out)
{
    iris_d_wg_which_t which = {IRIS_CCL_SWAP, IRIS_DTYPE_U8, IRIS_REDUCE_SUM,
                               0};

    iris_d_wg_tile_ccl(wg_ccl,
                       iris_d_wg_tiles(wg, wg_ccl, in, wg_ccl->ccl.count, out,
                                       wg_ccl->ccl.count),
                       which);
}

/** `out` gets member `root`'s `in`. The other members' `in` is not looked
 *  at. */
IRIS_DEVICE void iris_wg_tile_broadcast(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                        iris_tile_t in, iris_tile_t out,
                                        uint32_t root)
{
    iris_d_wg_which_t which = {IRIS_CCL_SPREAD, IRIS_DTYPE_U8, IRIS_REDUCE_SUM,
                               root};

    iris_d_wg_tile_ccl(wg_ccl,
                       iris_d_wg_tiles(wg, wg_ccl, in,
                                       wg_ccl->ccl.index == root ? 1 : 0, out,
                                       1),
                       which);
}

#endif /* IRIS_DEVICE_WG_CCL_TILE_H */
