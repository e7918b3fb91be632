# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/address.c %D%/base.h %D%/clock.h %D%/constants.c %D%/environment.c \
	%D%/error.c %D%/fd.c %D%/file.c %D%/fp_env.h %D%/gate.c %D%/hooks.c \
	%D%/host_wait.c %D%/images.c %D%/internal.h %D%/json_writer.c %D%/link.h \
	%D%/loader.c %D%/process.c %D%/proof.c %D%/secret.c %D%/session.c \
	%D%/settings.c %D%/settings_config.c %D%/settings_table.c %D%/settings_table.h \
	%D%/shm.c %D%/sized.c %D%/socket.c %D%/socket.h %D%/ticks.c %D%/ticks.h
