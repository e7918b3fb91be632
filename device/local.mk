# SPDX-License-Identifier: MIT
nobase_irisinclude_HEADERS = %D%/amo.h %D%/atomic.h %D%/barrier.h \
	%D%/compat.h %D%/cpu.h %D%/far.h %D%/float8.h %D%/generic.h %D%/half.h %D%/hook.h \
	%D%/kernel.h \
	%D%/layout.h %D%/mma.h %D%/op.h %D%/order.h %D%/record.h %D%/ring.h \
	%D%/rma.h %D%/signal.h \
	%D%/series.h %D%/signals.h %D%/target_cpu.h %D%/target_cuda.h \
	%D%/target_hip.h %D%/trace.h %D%/tile.h %D%/tile_product.h \
	%D%/tile_sums.h %D%/tile_view.h %D%/product_cpu.h %D%/product_gpu.h \
	%D%/translate.h %D%/value.h %D%/vector.h %D%/wait.h %D%/wave.h \
	%D%/ccl_handle.h %D%/wg.h %D%/wg_ccl.h \
	%D%/wg_ccl_tile.h %D%/word.h %D%/kernels/barrier.h \
	%D%/kernels/ccl_args.h %D%/kernels/ccl_batch.h %D%/kernels/ccl_combine.h \
	%D%/kernels/ccl_exchange.h %D%/kernels/ccl_far.h %D%/kernels/ccl_fold.h \
	%D%/kernels/ccl_loose.h %D%/kernels/ccl_matrix.h %D%/kernels/ccl_meet.h \
	%D%/kernels/ccl_move.h %D%/kernels/ccl_channel.h \
	%D%/kernels/ccl_packet.h %D%/kernels/ccl_pairs.h %D%/kernels/ccl_reduce.h \
	%D%/kernels/ccl_rows.h %D%/kernels/ccl_share.h \
	%D%/kernels/ccl_stage.h %D%/kernels/ccl_watch.h \
	%D%/kernels/ccl_space.h %D%/kernels/ccl_unordered.h \
	%D%/kernels/fill.h %D%/kernels/fill_args.h \
	%D%/kernels/matmul.h %D%/kernels/matmul_args.h \
	%D%/kernels/ops_args.h %D%/kernels/ops_chunk.h \
	%D%/kernels/random_args.h %D%/kernels/signal.h \
	%D%/kernels/signal_args.h
# These two are compiled into the library only.
noinst_HEADERS = %D%/kernels/normal.h %D%/kernels/random.h
