# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/barrier.c %D%/context.c %D%/context.h \
	%D%/context_api.c %D%/finalize.c %D%/finalize_later.c %D%/fused.c \
	%D%/group.c \
	%D%/group.h %D%/group_api.c %D%/heap_api.c %D%/layout.c %D%/log_api.c \
	%D%/placement.c %D%/placement.h %D%/queue_api.c \
	%D%/recorder.c %D%/spawn.c %D%/tensor_check.c \
	%D%/tensor_check.h
