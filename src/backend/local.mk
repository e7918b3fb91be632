# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/backend.c %D%/backend.h %D%/calls.h %D%/cpu_series.c \
	%D%/mismatch.c %D%/registry.c %D%/stubs.c %D%/workgroup.c
