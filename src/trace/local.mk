# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/automatic.c %D%/enable.c %D%/events.c %D%/export.c \
	%D%/flows.c %D%/internal.h %D%/json_fields.c %D%/json_reader.c %D%/kernels.h \
	%D%/merge.c %D%/names.c %D%/observe.c %D%/out.c %D%/rank_file.c \
	%D%/recording.c %D%/trace.h %D%/trace_clock.c %D%/trace_collectives.c \
	%D%/trace_kernels.c %D%/writer.c
