/* SPDX-License-Identifier: MIT
 *
 * Collectives that only move data in place, by writing into the members'
 * buffers or by reading from them: all_gather, all_to_all and broadcast.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_MOVE_H
#define IRIS_DEVICE_KERNELS_CCL_MOVE_H

#include <iris/device/kernels/ccl_meet.h>
#include <iris/device/kernels/ccl_stage.h>

/* Bytes of this workgroup's share are a multiple of this. */
#define IRIS_CCL_GRAIN 128

/* Moves the bytes of this workgroup's part; in a matrix, whole rows. */
IRIS_DEVICE void iris_d_ccl_move(iris_wg_t wg, const iris_d_ccl_t *ccl,
                                 const struct iris_ccl_move_args *args,
                                 iris_d_ccl_tables_t tables, uint32_t i)
{
    size_t grains = (args->bytes + IRIS_CCL_GRAIN - 1) / IRIS_CCL_GRAIN;
    size_t begin = iris_d_share(wg, wg.id, grains) * IRIS_CCL_GRAIN;
    size_t end = iris_d_share(wg, wg.id + 1, grains) * IRIS_CCL_GRAIN;
    size_t row = 0, rows = 1;
    const char *from = iris_d_ccl_at(tables.in, args->pull ? i : ccl->index) +
                       i * args->in_of_peer + ccl->index * args->in_of_self;
    char *to = iris_d_ccl_at(tables.out, args->pull ? ccl->index : i) +
               i * args->out_of_peer + ccl->index * args->out_of_self;

    end = end < args->bytes ? end : args->bytes;
    if (args->rows != 0) {
        begin = 0;
        end = args->bytes;
        row = wg.id;
        rows = args->rows;
    }
    if (from == to || begin >= end) {
        return;
    }
    for (; row < rows; row += wg.num_wgs) {
        iris_d_wg_bytes(wg, to + row * args->out_pitch + begin,
                        from + row * args->in_pitch + begin, end - begin);
    }
}

IRIS_DEVICE void iris_d_ccl_moves(iris_wg_t wg,
                                  const struct iris_ccl_move_args *args,
                                  const struct iris_ccl_near *near,
                                  iris_d_u64_t *table)
{
    iris_d_ccl_t ccl = near != NULL
                           ? iris_d_ccl_begin_near(wg, &args->start, near)
                           : iris_d_ccl_begin(wg, &args->start);
    const void *in = args->in;
    iris_d_ccl_tables_t tables;
    uint32_t reader;

    ccl.epoch++;
#if IRIS_ON_CPU
    if (IRIS_UNLIKELY(args->staging.staged)) {
        in = iris_d_ccl_move_first(wg, ccl, args);
    }
    (void)table;
    tables = iris_d_ccl_meet(wg, &ccl, in, args->out);
    if (iris_d_ccl_num_staged(&ccl, tables.in) != 0) {
        iris_d_ccl_move_staged(wg, ccl, args, tables);
        return;
    }
#else
    tables = iris_d_ccl_meet_by(wg, &ccl, near, in, args->out, table);
#endif
    for (uint32_t i = 0; i < ccl.count; i++) {
        uint32_t peer = iris_d_ccl_after(&ccl, i);

        reader = args->pull ? peer : ccl.index;
        if (args->root < 0 || reader == (uint32_t)args->root) {
            iris_d_ccl_move(wg, &ccl, args, tables, peer);
        }
    }
    if (!args->async) {
        iris_d_ccl_bye_at(wg, &ccl, near);
    }
    if (near != NULL) {
        iris_d_ccl_end_near(wg, &ccl, near);
    } else {
        iris_d_ccl_end(wg, &ccl);
    }
}

/* Any number of members. */
IRIS_KERNEL(iris_k_ccl_move, struct iris_ccl_move_args)
{
    iris_d_ccl_moves(wg, args, NULL, NULL);
}

/* At most IRIS_CCL_NEAR members. */
IRIS_KERNEL(iris_k_ccl_move_near, struct iris_ccl_move_args)
{
    IRIS_WG_LOCAL(iris_d_u64_t, table, IRIS_CCL_NEAR_WORDS);

    iris_d_ccl_moves(wg, args, &args->near, table);
}

#endif /* IRIS_DEVICE_KERNELS_CCL_MOVE_H */
