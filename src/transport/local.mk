# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/bell.c %D%/bell.h %D%/channel.h %D%/channel_mpi.h %D%/channel_socket.c \
	%D%/channel_socket.h %D%/far_message.h %D%/mpi_link.h %D%/mpi_window.h \
	%D%/proxy.c %D%/proxy.h %D%/serve.c %D%/serve.h %D%/socket_meet.c \
	%D%/socket_meet.h %D%/steps.c %D%/steps.h
libirismpi_la_SOURCES += %D%/channel_mpi.c %D%/mpi_link.c %D%/mpi_window.c
