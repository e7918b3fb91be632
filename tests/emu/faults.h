/* SPDX-License-Identifier: MIT
 *
 * The kernels in which scripts/amd-emu --faults plants faults: EMU_<group> picks
 * some. Headers define bodies only, as in amd/narrow.h.
 */
#ifndef EMU_FAULTS_H
#define EMU_FAULTS_H

#include <amd/narrow.h>

#include <emu/cases.h>
#include <emu/wg_ccl.h>
#include <iris/device/kernels/ccl_packet.h>
#include <iris/device/kernels/ccl_pairs.h>
#include <iris/device/kernels/ccl_reduce.h>
#include <iris/device/kernels/ops_chunk.h>

#define EMU_KERNEL(name, ARGS) NARROW(name, ARGS, (void)0)

#ifdef EMU_sets
EMU_KERNEL(emu_testall_u64, struct emu_args)
EMU_KERNEL(emu_testany_u64, struct emu_args)
EMU_KERNEL(emu_testsome_u64, struct emu_args)
EMU_KERNEL(emu_waitall_u64, struct emu_args)
EMU_KERNEL(emu_waitany_u64, struct emu_args)
EMU_KERNEL(emu_waitsome_u64, struct emu_args)
EMU_KERNEL(emu_sets, struct emu_args)
#endif

#ifdef EMU_ops
EMU_KERNEL(iris_k_ops_close, struct iris_ops_close_args)
EMU_KERNEL(iris_k_ops_sum_f32, struct iris_ops_sum_args)
EMU_KERNEL(iris_k_ops_sum_bf16, struct iris_ops_sum_args)
EMU_KERNEL(iris_k_signal, struct iris_signal_args)
EMU_KERNEL(iris_k_signal_add, struct iris_signal_args)
EMU_KERNEL(iris_k_wait, struct iris_wait_args)
EMU_KERNEL(iris_k_transfer, struct iris_transfer_args)
#endif

#ifdef EMU_batch /* with IRIS_MAX_LANES at most 256 */
EMU_KERNEL(emu_wgccl_reduce_f32, struct emu_wg_args)
EMU_KERNEL(emu_wgccl_twoshot_f32, struct emu_wg_args)
EMU_KERNEL(emu_wgccl_scatter_f32, struct emu_wg_args)
#endif

#ifdef EMU_pairs
EMU_KERNEL(iris_k_ccl_pairs, struct iris_ccl_pairs_args)
#endif

#ifdef EMU_tile
EMU_KERNEL(emu_tileput, struct emu_args)
EMU_KERNEL(emu_tileget, struct emu_args)
EMU_KERNEL(emu_tileload, struct emu_args)
EMU_KERNEL(emu_tilestore, struct emu_args)
EMU_KERNEL(emu_tilepass, struct emu_args)
#endif

#ifdef EMU_wgtile
EMU_KERNEL(emu_wgccl_tilealltoall_f32, struct emu_wg_args)
#endif

#ifdef EMU_packet
EMU_KERNEL(iris_k_ccl_once_f32_sum, struct iris_ccl_packet_args)
EMU_KERNEL(iris_k_ccl_packet_f32_sum, struct iris_ccl_packet_args)
EMU_KERNEL(iris_k_ccl_once_move, struct iris_ccl_packet_args)
EMU_KERNEL(iris_k_ccl_packet_move, struct iris_ccl_packet_args)
#endif

#ifdef EMU_types
EMU_KERNEL(iris_k_ccl_reduce_f32_sum, struct iris_ccl_reduce_args)
EMU_KERNEL(iris_k_ccl_reduce_bf16_max, struct iris_ccl_reduce_args)
EMU_KERNEL(iris_k_ccl_once_f16_sum, struct iris_ccl_packet_args)
EMU_KERNEL(iris_k_ccl_once_i32_max, struct iris_ccl_packet_args)
#endif

#ifdef EMU_ring /* with IRIS_FAR */
EMU_KERNEL(emu_ring, struct emu_args)
#endif

#ifdef EMU_trace /* with IRIS_TRACE */
EMU_KERNEL(iris_k_signal, struct iris_signal_args)
EMU_KERNEL(iris_k_signal_add, struct iris_signal_args)
EMU_KERNEL(iris_k_wait, struct iris_wait_args)
EMU_KERNEL(iris_k_barrier, struct iris_barrier_args)
EMU_KERNEL(emu_store_u64, struct emu_args)
EMU_KERNEL(emu_signaladd_u64, struct emu_args)
EMU_KERNEL(emu_add_f32, struct emu_args)
#endif

#endif /* EMU_FAULTS_H */
