# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/ccl.h %D%/ccl_api.c %D%/ccl_check.c %D%/ccl_device.c \
	%D%/ccl_kernels.c %D%/ccl_launch.c %D%/ccl_memory.c %D%/ccl_route.c \
	%D%/ccl_types.c %D%/ccl_workspace.c %D%/choose.c %D%/internal.h %D%/kernels.h \
	%D%/tuning.c
