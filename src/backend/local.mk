# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/backend.c %D%/backend.h %D%/calls.h \
	%D%/cpu_series.c %D%/cpu_series.h %D%/far_steps.h \
	%D%/mismatch.c %D%/mismatch.h %D%/module.h %D%/registry.c \
	%D%/registry.h %D%/stubs.c %D%/stubs.h %D%/workgroup.c %D%/workgroup.h
