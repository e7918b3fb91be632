# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/enable.c %D%/export.c %D%/internal.h %D%/json.c \
	%D%/kernels.h %D%/merge.c %D%/ranges.c %D%/record.c %D%/trace.h %D%/trace_kernels.c \
	%D%/write.c
