# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/alloc.c %D%/external.c %D%/heap.h %D%/heap_address.c \
	%D%/heap_free.c %D%/heap_malloc.c %D%/heap_memory.c %D%/heap_names.c \
	%D%/heap_open.c %D%/heap_window.c %D%/internal.h
