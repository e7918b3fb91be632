# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/bell.c %D%/channel_packets.c %D%/channel_socket.c \
	%D%/engine_ucx.c %D%/internal.h \
	%D%/proxy.c %D%/serve.c %D%/serve_device.c %D%/steps.c \
	%D%/transport.h
libirismpi_la_SOURCES += %D%/engine_mpi.c
