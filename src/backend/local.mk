# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/backend.c %D%/backend.h %D%/calls.h %D%/registry.c \
	%D%/workgroup.c
