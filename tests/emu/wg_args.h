/* SPDX-License-Identifier: MIT
 *
 * What the kernels of wg_ccl.h take.
 */
#ifndef EMU_WG_ARGS_H
#define EMU_WG_ARGS_H

#include <iris/device/wg/ccl_handle.h>

#define EMU_WG_BYTES 0x400u /* of a workgroup's turn in `in` and in `out` */

struct emu_wg_args {
    iris_ccl_device_t handle;
    void *in; /* symmetric, as out */
    void *out;
    uint64_t count; /* elements, or bytes of what is moved; columns of a tile */
    uint32_t rows;  /* of a tile */
    uint32_t gaps;  /* 1: rows of tiles have gaps behind them */
    uint32_t root;
};

#endif /* EMU_WG_ARGS_H */
