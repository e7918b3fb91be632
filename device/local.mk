# SPDX-License-Identifier: MIT
nobase_irisinclude_HEADERS = %D%/layout.h %D%/wg_ccl.h %D%/wg_ccl_tile.h \
	%D%/core/amo.h %D%/core/atomic.h %D%/core/compat.h %D%/core/far.h %D%/core/float8.h \
	%D%/core/generic.h %D%/core/half.h %D%/core/order.h %D%/core/ring.h %D%/core/rma.h \
	%D%/core/signal.h %D%/core/signals.h %D%/core/target_cpu.h %D%/core/target_cuda.h \
	%D%/core/target_hip.h %D%/core/translate.h %D%/core/value.h %D%/core/vector.h \
	%D%/core/wait.h %D%/core/word.h %D%/kernels/barrier.h %D%/kernels/ccl_args.h \
	%D%/kernels/ccl_batch.h %D%/kernels/ccl_channel.h %D%/kernels/ccl_combine.h \
	%D%/kernels/ccl_exchange.h %D%/kernels/ccl_far.h %D%/kernels/ccl_fold.h \
	%D%/kernels/ccl_levels.h \
	%D%/kernels/ccl_loose.h %D%/kernels/ccl_matrix.h %D%/kernels/ccl_meet.h \
	%D%/kernels/ccl_move.h %D%/kernels/ccl_packet.h %D%/kernels/ccl_pairs.h \
	%D%/kernels/ccl_reduce.h %D%/kernels/ccl_rows.h %D%/kernels/ccl_share.h \
	%D%/kernels/ccl_space.h %D%/kernels/ccl_stage.h %D%/kernels/ccl_unordered.h \
	%D%/kernels/ccl_watch.h %D%/kernels/fill.h %D%/kernels/fill_args.h \
	%D%/kernels/matmul.h %D%/kernels/matmul_args.h %D%/kernels/ops_args.h \
	%D%/kernels/ops_chunk.h %D%/kernels/proxy.h %D%/kernels/random_args.h %D%/kernels/signal.h \
	%D%/kernels/signal_args.h %D%/watch/cpu.h %D%/watch/hook.h %D%/watch/op.h \
	%D%/watch/record.h %D%/watch/series.h %D%/watch/trace.h %D%/wg/barrier.h \
	%D%/wg/ccl_handle.h %D%/wg/kernel.h %D%/wg/mma.h %D%/wg/plan.h %D%/wg/product_cpu.h \
	%D%/wg/product_gpu.h %D%/wg/tile.h %D%/wg/tile_product.h %D%/wg/tile_sums.h \
	%D%/wg/tile_view.h %D%/wg/wave.h %D%/wg/wg.h
EXTRA_DIST += %D%/README.md
# These two are compiled into the library only.
noinst_HEADERS = %D%/kernels/normal.h %D%/kernels/random.h
