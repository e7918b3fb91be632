# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/context.h %D%/context_api.c %D%/context_check.c \
	%D%/context_group.c %D%/context_layout.c %D%/context_open.c %D%/enter.c \
	%D%/finalize.c %D%/fused.c %D%/group_api.c %D%/heap_api.c %D%/internal.h \
	%D%/placement.c %D%/queue_api.c %D%/recorder.c %D%/sync_api.c \
	%D%/tensor_check.c
