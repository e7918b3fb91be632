# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/far_kernels.c %D%/kernels.h %D%/queue.c %D%/queue.h %D%/queue_kernels.c \
	%D%/transfer.c
