# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/address.c %D%/alloc.c %D%/alloc.h \
	%D%/alloc_class.h %D%/alloc_find.c %D%/alloc_record.h \
	%D%/allocate.c %D%/bases.c %D%/bounds.c %D%/bounds.h %D%/commit.c \
	%D%/deferred.c %D%/deferred.h %D%/external.c %D%/heap.c %D%/heap.h \
	%D%/name.c
