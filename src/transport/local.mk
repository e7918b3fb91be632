# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/bell.c %D%/channel_socket.c %D%/internal.h \
	%D%/mpi_internal.h %D%/proxy.c %D%/serve.c %D%/steps.c \
	%D%/transport.h
libirismpi_la_SOURCES += %D%/channel_mpi.c %D%/mpi_link.c %D%/mpi_window.c
