# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/api.c %D%/context.h %D%/enter.c %D%/finalize.c %D%/group.c \
	%D%/internal.h %D%/open.c %D%/recorder.c %D%/shrink.c
