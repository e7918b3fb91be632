/* SPDX-License-Identifier: MIT
 *
 * Reductions of matrices in place: members divide the rows, and each combines
 * whole rows. It is a separate kernel, since the computation of the rows would
 * cost the other kernel registers.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_MATRIX_H
#define IRIS_DEVICE_KERNELS_CCL_MATRIX_H

#include <iris/device/kernels/ccl_reduce.h>

/* Only this rank reads and writes its rows in the members' buffers. Therefore
 * in and out may be the same. */
IRIS_KERNEL(iris_k_ccl_matrix, struct iris_ccl_reduce_args)
{
    size_t pieces = (args->bytes + IRIS_CCL_PIECE - 1) / IRIS_CCL_PIECE;
    iris_d_ccl_rows_t rows = {0, 1, args->rows};
    size_t in_first = 0; /* first row of this rank's part, in `in` */
    iris_d_ccl_work_t work;

    work.ccl = iris_d_ccl_begin(wg, &args->start);
    work.ccl.epoch++;
    work.turn = 0;
    work.kind = (enum iris_d_kind)args->kind;
    work.op = (iris_reduce_op_t)args->op;
    work.copies =
        args->shape == IRIS_CCL_TO_ALL && !args->own_rows ? work.ccl.count : 1;
    if (args->shape == IRIS_CCL_SCATTER) {
        in_first = work.ccl.index * args->rows;
    } else {
        rows = iris_d_ccl_rows_of(work.ccl.index, work.ccl.count, args->rows,
                                  args->striding);
    }
    work.tables = iris_d_ccl_meet(wg, &work.ccl, args->in, args->out);
    /* A workgroup has whole rows, so it needs no division to find an element's
     * row. */
    for (size_t k = wg.id; k < rows.count; k += wg.num_wgs) {
        size_t row = rows.first + k * rows.step;

        work.share.begin = (in_first + row) * args->in_pitch;
        work.to = row * args->out_pitch;
        IRIS_WG_LANES (wg, piece, pieces) {
            size_t at = piece * IRIS_CCL_PIECE, left = args->bytes - at;

            iris_d_ccl_reduce(&work, args, at,
                              left < IRIS_CCL_PIECE ? left : IRIS_CCL_PIECE);
        }
    }
    if (work.copies != 1 || !args->async) {
        iris_d_ccl_bye(wg, &work.ccl);
    }
    iris_d_ccl_end(wg, &work.ccl);
}

#endif /* IRIS_DEVICE_KERNELS_CCL_MATRIX_H */
