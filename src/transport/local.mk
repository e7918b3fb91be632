# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/channel.h %D%/channel_socket.c \
	%D%/channel_socket.h %D%/far_message.h %D%/proxy.c %D%/proxy.h \
	%D%/serve.c %D%/serve.h
