# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/queue.h %D%/queue_graph.c %D%/queue_graph.h \
	%D%/queue_kernels.c %D%/queue_kernels.h %D%/queue_launch.c \
	%D%/queue_launch.h %D%/queue_stream.c %D%/queue_stream.h \
	%D%/tile_transfer.c %D%/tile_transfer.h %D%/transfer.c %D%/transfer.h
