# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/graph.c %D%/graph.h %D%/kernels.c %D%/kernels.h \
	%D%/launch.c %D%/put_signal.c %D%/stream.c %D%/stream.h \
	%D%/transfer.c
