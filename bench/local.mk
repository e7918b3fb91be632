# SPDX-License-Identifier: MIT
iris_SOURCES += %D%/amo.c %D%/amo_kernels.h %D%/bench.h \
	%D%/bench_fused.c %D%/bench_init.c %D%/bench_main.c \
	%D%/ccl_values.c %D%/choices.c %D%/choices.h %D%/collectives.c %D%/enqueue.c %D%/fill.c \
	%D%/fused_points.c %D%/fused_points.h \
	%D%/fused_values.c %D%/fused_values.h %D%/heap.c %D%/json.c %D%/launch.c %D%/measure.c %D%/nodes.c \
	%D%/options.c %D%/peer.c %D%/peer_cblas.c %D%/peer_nccl.c %D%/plan.c %D%/random.c %D%/report.c \
	%D%/report.h %D%/rma.c %D%/rma_kernels.h %D%/run.c %D%/sketch.c %D%/stream.c \
	%D%/sync.c %D%/table.c %D%/targets.c %D%/tensor.c %D%/tile_products.c %D%/tune.c \
	%D%/wg_tiles.c
# Their kernels are compiled by iriscc.
tool_kernels += %D%/amo %D%/fill %D%/fused_values %D%/launch %D%/nodes %D%/plan \
	%D%/rma %D%/sketch %D%/sync %D%/tile_products %D%/wg_tiles
# MPI's headers are this file's alone.
noinst_LTLIBRARIES += bench/libpeermpi.la
bench_libpeermpi_la_SOURCES = %D%/peer_mpi.c
bench_libpeermpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
bench_libpeermpi_la_LIBADD = $(MPI_LIBS)
