# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/api.c %D%/ccl.h %D%/ccl_kernels.c %D%/check.c \
	%D%/choose.c %D%/internal.h %D%/kernels.h %D%/launch.c %D%/workspace.c
