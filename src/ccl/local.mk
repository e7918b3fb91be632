# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/ccl_api.c %D%/ccl_check.c %D%/ccl_check.h %D%/ccl_device.c \
	%D%/ccl_kernels.c %D%/ccl_kernels.h %D%/ccl_launch.c %D%/ccl_launch.h \
	%D%/ccl_memory.c %D%/ccl_memory.h %D%/ccl_route.c %D%/ccl_route.h %D%/ccl_types.c %D%/ccl_types.h %D%/ccl_workspace.c \
	%D%/ccl_workspace.h %D%/choose.c %D%/choose.h %D%/tuning.c %D%/tuning.h
