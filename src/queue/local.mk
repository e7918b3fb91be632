# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/kernels.h %D%/queue.h %D%/queue_graph.c %D%/queue_kernels.c \
	%D%/queue_launch.c %D%/queue_stream.c %D%/tile_transfer.c %D%/transfer.c
