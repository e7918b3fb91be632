# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/fault.c %D%/heap.c %D%/init.c %D%/internal.h %D%/stream.c
