# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/barrier.c %D%/context.c %D%/context.h %D%/group.c \
	%D%/group.h %D%/log_api.c %D%/placement.c %D%/placement.h \
	%D%/spawn.c
