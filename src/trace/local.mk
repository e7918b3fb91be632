# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/automatic.c %D%/automatic.h %D%/enable.c \
	%D%/trace_collectives.c %D%/trace_collectives.h \
	%D%/events.c %D%/events.h %D%/export.c %D%/export.h %D%/flows.c \
	%D%/flows.h %D%/json_fields.c %D%/json_fields.h %D%/json_reader.c \
	%D%/json_reader.h %D%/merge.c %D%/merge.h %D%/names.c %D%/names.h \
	%D%/observe.c %D%/observe.h %D%/out.c %D%/out.h %D%/rank_file.c \
	%D%/rank_file.h %D%/recording.c %D%/recording.h %D%/trace_clock.c \
	%D%/trace_clock.h %D%/trace_kernels.c %D%/trace_kernels.h \
	%D%/writer.c %D%/writer.h
