# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/clock.c %D%/columns.c %D%/export.c %D%/kernels.c \
	%D%/kernels.h %D%/memory.c \
	%D%/names.c %D%/observe.c %D%/out.c %D%/out.h %D%/trace.h %D%/write.c
