# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/address.c %D%/address.h %D%/clock.h %D%/constants.c %D%/environment.c \
	%D%/environment.h %D%/fd.c %D%/fd.h %D%/file.c %D%/file.h %D%/futex.h %D%/gate.c %D%/gate.h %D%/grow.h %D%/c_locale.h %D%/fp_env.h \
	%D%/hooks.c %D%/hooks.h \
	%D%/images.c %D%/images.h %D%/json_writer.c %D%/json_writer.h \
	%D%/loader.c %D%/loader.h %D%/error.c %D%/error.h %D%/process.c \
	%D%/process.h %D%/proof.c %D%/proof.h %D%/secret.c %D%/secret.h \
	%D%/session.c %D%/session.h \
	%D%/settings.c %D%/settings.h %D%/settings_config.c \
	%D%/settings_config.h %D%/settings_table.c %D%/settings_table.h \
	%D%/shm.c %D%/shm.h %D%/sized.c %D%/sized.h \
	%D%/socket.c %D%/socket.h %D%/ticks.c %D%/ticks.h %D%/timing.h \
	%D%/host_wait.c %D%/host_wait.h
