# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/automatic.c %D%/clock.c %D%/columns.c %D%/events.c %D%/events.h \
	%D%/export.c %D%/flows.c %D%/flows.h %D%/json.c %D%/json.h \
	%D%/kernels.c %D%/kernels.h %D%/memory.c %D%/merge.c %D%/merge.h \
	%D%/names.c %D%/observe.c %D%/out.c %D%/out.h %D%/trace.h \
	%D%/transfers.c %D%/transfers.h %D%/write.c %D%/write_calls.c %D%/writer.h
