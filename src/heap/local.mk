# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/alloc.c %D%/alloc.h %D%/alloc_record.h \
	%D%/external.c %D%/external.h \
	%D%/heap_address.c %D%/heap_address.h %D%/heap_free.c \
	%D%/heap_free.h %D%/heap_malloc.c %D%/heap_malloc.h \
	%D%/heap_memory.c %D%/heap_memory.h %D%/heap_names.c \
	%D%/heap_names.h %D%/heap_open.c %D%/heap_open.h %D%/heap_parts.h \
	%D%/heap_window.c %D%/heap_window.h
