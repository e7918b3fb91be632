/* SPDX-License-Identifier: MIT
 *
 * Tiles: views of matrices and of their blocks, for host and kernels.
 *
 * @use host or lane; never blocks; apart
 * @param data  address of the first element
 * @param rows, cols  size of the matrix
 * @param row_stride  elements from one row to the next
 * @param elem_bytes  bytes of an element
 * @param view  the matrix
 * @param m, n  row and column of the block, in blocks
 * @param block_rows, block_cols  size of a block
 */
#ifndef IRIS_DEVICE_TILE_VIEW_H
#define IRIS_DEVICE_TILE_VIEW_H

#include <iris/device/core/compat.h>

/** A view of a matrix or of a block of one; it owns no memory. Element (r, c)
 *  is r * row_stride + c * col_stride elements from `data`. Strides may be
 *  negative, and `data` is aligned for its elements. */
typedef struct iris_tile {
    void *data;
    uint32_t rows;
    uint32_t cols;
    int64_t row_stride;
    int64_t col_stride;
    uint32_t elem_bytes; /**< As iris_dtype_size() gives it. */
} iris_tile_t;

/** A view with neighbouring columns. Set col_stride afterwards for another
 *  layout. Host or any lane. */
IRIS_HOST_DEVICE iris_tile_t iris_tile(const void *data, uint32_t rows,
                                       uint32_t cols, int64_t row_stride,
                                       uint32_t elem_bytes)
{
    iris_tile_t tile = {
        (void *)(uintptr_t)data, rows, cols, row_stride, 1, elem_bytes};

    return tile;
}

/** The block (m, n) of `view`, of blocks of block_rows * block_cols elements.
 *  A block at the lower or right edge ends with the view, and a block beyond
 *  it has no elements. Host or any lane. */
IRIS_HOST_DEVICE iris_tile_t iris_tile_block(iris_tile_t view, uint32_t m,
                                             uint32_t n, uint32_t block_rows,
                                             uint32_t block_cols)
{
    uint64_t row = (uint64_t)m * block_rows, col = (uint64_t)n * block_cols;
    iris_tile_t tile = view;

    if (row >= view.rows || col >= view.cols) {
        tile.rows = tile.cols = 0;
        return tile;
    }
    tile.data = (char *)view.data + ((int64_t)row * view.row_stride +
                                     (int64_t)col * view.col_stride) *
                                        (int64_t)view.elem_bytes;
    tile.rows = view.rows - (uint32_t)row;
    tile.cols = view.cols - (uint32_t)col;
    tile.rows = tile.rows < block_rows ? tile.rows : block_rows;
    tile.cols = tile.cols < block_cols ? tile.cols : block_cols;
    return tile;
}

/** The same elements with rows and columns exchanged. Host or any lane. */
IRIS_HOST_DEVICE iris_tile_t iris_tile_transposed(iris_tile_t tile)
{
    iris_tile_t other = {tile.data,       tile.cols,       tile.rows,
                         tile.col_stride, tile.row_stride, tile.elem_bytes};

    return other;
}

#endif /* IRIS_DEVICE_TILE_VIEW_H */
