# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/context_api.c %D%/context_check.c \
	%D%/context_check.h %D%/context_group.c \
	%D%/context_group.h %D%/context_layout.c %D%/context_layout.h \
	%D%/context_open.c %D%/context_open.h %D%/context_type.h %D%/enter.c \
	%D%/enter.h %D%/finalize.c %D%/finalize.h %D%/fused.c %D%/fused.h \
	%D%/group_api.c %D%/heap_api.c %D%/placement.c %D%/placement.h \
	%D%/queue_api.c %D%/recorder.c %D%/recorder.h %D%/sync_api.c \
	%D%/tensor_check.c %D%/tensor_check.h
