# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/ccl.h %D%/check.c %D%/choose.c %D%/collectives.c \
	%D%/kernels.c %D%/kernels.h %D%/launch.c %D%/space.c %D%/tuning.c \
	%D%/workspace.c
