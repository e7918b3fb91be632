# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/bounds.c %D%/check.h %D%/internal.h %D%/race.c \
	%D%/race_caller.c %D%/race_clock.c %D%/race_device.c %D%/race_file.c \
	%D%/race_host.c %D%/race_known.c %D%/race_lane.c %D%/race_meet.c \
	%D%/race_memory.c %D%/race_plain.c %D%/race_report.c %D%/race_shadow.c \
	%D%/race_site.c %D%/race_stream.c %D%/race_suppress.c %D%/race_sync.c \
	%D%/weak.c %D%/weak_choice.c %D%/weak_host.c %D%/weak_model.c %D%/weak_note.c \
	%D%/weak_schedule.c %D%/weak_word.c
# What programs compiled by iriscc --check call; it is linked into them.
lib_LIBRARIES = libiris_check.a
libiris_check_a_SOURCES = %D%/race_calls.c
libiris_check_a_CFLAGS = $(AM_CFLAGS) -fPIC
