# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/alloc.c %D%/heap.h %D%/heap_address.c %D%/heap_names.c \
	%D%/internal.h %D%/malloc.c %D%/memory.c
