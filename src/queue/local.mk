# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/graph.c %D%/kernels.c %D%/kernels.h %D%/launch.c \
	%D%/queue.h %D%/stream.c %D%/transfer.c
