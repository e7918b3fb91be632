# SPDX-License-Identifier: MIT
bin_PROGRAMS += iris-bench
iris_bench_SOURCES = %D%/amo.c %D%/amo_kernels.h %D%/bench.h \
	%D%/collectives.c %D%/enqueue.c %D%/fill.c \
	%D%/heap.c %D%/init.c %D%/json.c %D%/launch.c %D%/measure.c \
	%D%/options.c %D%/random.c %D%/report.c %D%/report.h %D%/rma.c %D%/rma_kernels.h \
	%D%/run.c %D%/stream.c %D%/sync.c %D%/table.c %D%/targets.c %D%/tensor.c \
	%D%/usage.c tools/iris-bench.c tools/json.c tools/json.h
iris_bench_LDADD = libirisi.la
