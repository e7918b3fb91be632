# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/address.c %D%/base.h %D%/constants.c %D%/error.c \
	%D%/file.c %D%/gate.c %D%/hooks.c %D%/host_wait.c %D%/images.c \
	%D%/link.h %D%/loader.c %D%/process.c %D%/processor.h %D%/proof.c \
	%D%/session.c %D%/settings.c %D%/socket.c %D%/source.c %D%/ticks.c
