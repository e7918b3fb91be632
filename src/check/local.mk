# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/bounds.c %D%/check.h %D%/internal.h %D%/order.c \
	%D%/order_host.c %D%/race.c %D%/race_report.c %D%/race_site.c %D%/race_thread.c %D%/weak.c \
	%D%/weak_schedule.c
# What programs compiled by iriscc --check call; it is linked into them.
lib_LIBRARIES = libiris_check.a
libiris_check_a_SOURCES = %D%/race_calls.c %D%/race_interpose.c
libiris_check_a_CFLAGS = $(AM_CFLAGS) -fPIC
