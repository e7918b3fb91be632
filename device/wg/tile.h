/* SPDX-License-Identifier: MIT
 *
 * Tiles: blocks of matrices, which a workgroup copies to and from peers.
 */
#ifndef IRIS_DEVICE_TILE_H
#define IRIS_DEVICE_TILE_H

#include <iris/device/wg/tile_view.h>
#include <iris/device/wg/wg.h>

/* A copy of a tile as pieces of contiguous bytes: `across` pieces in each of
 * `down` lines. Strides are in bytes. */
typedef struct iris_d_tile_copy {
    char *to;
    const char *from;
    size_t bytes;
    uint32_t down;
    uint32_t across;
    int64_t to_line;
    int64_t from_line;
    int64_t to_piece;
    int64_t from_piece;
} iris_d_tile_copy_t;

/* Copies the rows and columns that both tiles have. Pieces are as long as the
 * strides allow: one element, one row (or column), or all. */
IRIS_DEVICE iris_d_tile_copy_t iris_d_tile_plan(iris_tile_t from,
                                                iris_tile_t to)
{
    iris_d_tile_copy_t copy;
    int64_t elem = (int64_t)from.elem_bytes;

    if (from.row_stride == 1 && to.row_stride == 1) {
        from = iris_tile_transposed(from);
        to = iris_tile_transposed(to);
    }
    copy.to = (char *)to.data;
    copy.from = (const char *)from.data;
    copy.down = from.rows < to.rows ? from.rows : to.rows;
    copy.across = from.cols < to.cols ? from.cols : to.cols;
    copy.bytes = (size_t)elem;
    copy.to_line = to.row_stride * elem;
    copy.from_line = from.row_stride * elem;
    copy.to_piece = to.col_stride * elem;
    copy.from_piece = from.col_stride * elem;
    if (copy.down == 0 || copy.across == 0) {
        copy.down = copy.across = 0;
    } else if (from.col_stride == 1 && to.col_stride == 1) {
        copy.bytes *= copy.across;
        copy.across = 1;
        if (copy.to_line == (int64_t)copy.bytes &&
            copy.from_line == (int64_t)copy.bytes) {
            copy.bytes *= copy.down;
            copy.down = 1;
        }
    }
    return copy;
}

#if IRIS_ON_CPU
/* Both sides are memory of this rank. Tells no observer. */
IRIS_DEVICE void iris_d_tile_pieces(iris_wg_t wg, iris_d_tile_copy_t copy)
{
    (void)wg;
    for (uint32_t r = 0; r < copy.down; r++) {
        for (uint32_t p = 0; p < copy.across; p++) {
            iris_d_copy_bytes(copy.to + r * copy.to_line + p * copy.to_piece,
                              copy.from + r * copy.from_line +
                                  p * copy.from_piece,
                              copy.bytes);
        }
    }
}

/* If `put` is true, `to` is on the other rank, otherwise `from`. The near side
 * is used as it is. */
IRIS_DEVICE void iris_d_tile_move(iris_wg_t wg, iris_dev_t dev,
                                  iris_d_tile_copy_t copy, iris_bool_t put,
                                  int rank)
{
    for (uint32_t r = 0; r < copy.down; r++) {
        for (uint32_t p = 0; p < copy.across; p++) {
            char *to = copy.to + r * copy.to_line + p * copy.to_piece;
            const char *from =
                copy.from + r * copy.from_line + p * copy.from_piece;

            if (put) {
                iris_wg_put(wg, dev, from, to, copy.bytes, rank);
            } else {
                iris_wg_get(wg, dev, from, to, copy.bytes, rank);
            }
        }
    }
}
#else
/* Number of lanes that share a piece. Each has up to four words of 16 bytes in
 * flight at once. With fewer pieces than teams, the teams become larger. */
IRIS_DEVICE uint32_t iris_d_tile_lanes(iris_wg_t wg,
                                       const iris_d_tile_copy_t *copy)
{
    uint64_t pieces = (uint64_t)copy->down * copy->across;
    uint32_t lanes = copy->bytes > 16 ? 4 : 1;

    while (2 * lanes <= wg.num_lanes &&
           (lanes * 64 < copy->bytes || wg.num_lanes > lanes * pieces)) {
        lanes *= 2;
    }
    return lanes < wg.num_lanes ? lanes : wg.num_lanes;
}

/* Teams of lanes take the pieces in turn. A team steps from piece to piece by
 * additions, since GPUs have no instruction for a division. */
IRIS_DEVICE_LARGE void iris_d_tile_pieces(iris_wg_t wg, iris_d_tile_copy_t copy)
{
    uint32_t lanes = iris_d_tile_lanes(wg, &copy);
    uint32_t teams = wg.num_lanes / lanes;
    iris_d_team_t team = {iris_d_lane() % lanes, lanes};
    uint32_t first = iris_d_lane() / lanes;
    uint32_t p = first % copy.across, r = first / copy.across;
    uint32_t step_p = teams % copy.across, step_r = teams / copy.across;

    if (first >= teams) {
        return;
    }
    while (r < copy.down) {
        iris_d_wg_bytes_deep(
            team, copy.to + r * copy.to_line + p * copy.to_piece,
            copy.from + r * copy.from_line + p * copy.from_piece, copy.bytes,
            0);
        p += step_p;
        r += step_r;
        if (p >= copy.across) {
            p -= copy.across;
            r++;
        }
    }
}

/* iris_d_tile_move() on GPUs: one record for the whole tile. */
IRIS_DEVICE void iris_d_tile_move(iris_wg_t wg, iris_dev_t dev,
                                  iris_d_tile_copy_t copy, iris_bool_t put,
                                  int rank)
{
    if (copy.down == 0) {
        return;
    }
    IRIS_D_HOOK(dev.watched,
                IRIS_D_CALL(before_both, dev, copy.from, put ? dev.rank : rank,
                            copy.to, put ? rank : dev.rank,
                            iris_d_bulk(put ? IRIS_OP_PUT : IRIS_OP_GET,
                                        copy.bytes * copy.across * copy.down)));
    if (put) {
        copy.to = (char *)iris_d_translate(dev, copy.to, rank);
    } else {
        copy.from = (const char *)iris_d_translate(dev, copy.from, rank);
    }
    iris_d_tile_pieces(wg, copy);
    IRIS_D_HOOK(dev.watched, IRIS_D_CALL(after_both, dev, 0));
}
#endif

/* ---- Copies of tiles -------------------------------------------------------
 *
 * All lanes of the workgroup call the functions below together, with the same
 * arguments, outside lane loops. Both tiles have elements of the same size. The
 * rows and columns that both tiles have are copied, so either tile may be cut
 * off at an edge.
 *
 * Tiles whose columns (or rows) are adjacent on both sides move by rows (or
 * columns), with accesses of 16 bytes where both sides have the same alignment.
 * Other tiles move by elements. Observers on the CPU see one access for each
 * row, column or element that moves. Gaps between rows are neither read nor
 * written.
 *
 * Like iris_wg_put(), these functions order nothing. The two sides may not
 * overlap.
 *
 * @use workgroup; never blocks; CPU nodes
 * @param from  source, a tile
 * @param to  target, a tile
 * @param value  number that the signal is set to, increased by or compared with
 * @param values  rows * cols elements, dense */

/** Copies this rank's `from`, used as it is, to where to_rank keeps `to`. */
IRIS_DEVICE void iris_wg_tile_put(iris_wg_t wg, iris_dev_t dev,
                                  iris_tile_t from, iris_tile_t to, int to_rank)
{
    iris_d_tile_move(wg, dev, iris_d_tile_plan(from, to), 1, to_rank);
}

/** Copies from where from_rank keeps `from` to this rank's `to`, used as it is.
 */
IRIS_DEVICE void iris_wg_tile_get(iris_wg_t wg, iris_dev_t dev,
                                  iris_tile_t from, iris_tile_t to,
                                  int from_rank)
{
    iris_d_tile_move(wg, dev, iris_d_tile_plan(from, to), 0, from_rank);
}

/** Loads the tile that from_rank keeps at `tile` into `values`, global memory
 *  of this rank: row by row, tile.cols elements each, without gaps. */
IRIS_DEVICE void iris_wg_tile_load(iris_wg_t wg, iris_dev_t dev,
                                   iris_tile_t tile, void *values,
                                   int from_rank)
{
    iris_wg_tile_get(
        wg, dev, tile,
        iris_tile(values, tile.rows, tile.cols, tile.cols, tile.elem_bytes),
        from_rank);
}

/** Stores `values`, which are as iris_wg_tile_load() leaves them, to the tile
 *  that to_rank keeps at `tile`. */
IRIS_DEVICE void iris_wg_tile_store(iris_wg_t wg, iris_dev_t dev,
                                    iris_tile_t tile, const void *values,
                                    int to_rank)
{
    iris_wg_tile_put(
        wg, dev,
        iris_tile(values, tile.rows, tile.cols, tile.cols, tile.elem_bytes),
        tile, to_rank);
}

/** iris_wg_tile_put(), iris_wg_barrier(), then one lane's iris_signal_set(): a
 *  lane that acquires `value` on to_rank sees the tile, and everything that any
 *  lane of this workgroup wrote before. `from` may be overwritten on return. A
 *  tile without elements signals, too. */
IRIS_DEVICE void iris_wg_tile_put_signal(iris_wg_t wg, iris_dev_t dev,
                                         iris_tile_t from, iris_tile_t to,
                                         uint64_t *signal, uint64_t value,
                                         int to_rank)
{
    iris_wg_tile_put(wg, dev, from, to, to_rank);
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, signal, value, to_rank);
    }
}

/** iris_wg_tile_put_signal() with iris_signal_add(): a lane that acquires the
 *  total of many tiles sees all of them. */
IRIS_DEVICE void iris_wg_tile_put_signal_add(iris_wg_t wg, iris_dev_t dev,
                                             iris_tile_t from, iris_tile_t to,
                                             uint64_t *signal, uint64_t value,
                                             int to_rank)
{
    iris_wg_tile_put(wg, dev, from, to, to_rank);
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_add(dev, signal, value, to_rank);
    }
}

/** Marks a tile of this rank as ready by setting its signal to `value`. A
 *  workgroup that awaits `value` sees everything that lanes of this workgroup
 *  wrote before. Pass a greater value for each use of the tile: nothing needs a
 *  reset. */
IRIS_DEVICE void iris_wg_tile_ready(iris_wg_t wg, iris_dev_t dev,
                                    uint64_t *signal, uint64_t value)
{
    iris_wg_barrier(wg);
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, signal, value, dev.rank);
    }
}

/** Waits until iris_wg_tile_ready() has set `value` or more, in this kernel or
 *  in another kernel of this rank. All lanes then see the tile.
 *  @use blocks */
IRIS_DEVICE void iris_wg_tile_await(iris_wg_t wg, iris_dev_t dev,
                                    const uint64_t *signal, uint64_t value)
{
    if (iris_wg_leader(wg)) {
        (void)iris_wait_until_u64(dev, signal, IRIS_CMP_GE, value);
    }
    iris_wg_barrier(wg);
}

#endif /* IRIS_DEVICE_TILE_H */
