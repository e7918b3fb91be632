# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/bounds.c %D%/bounds.h %D%/race.c %D%/race.h \
	%D%/race_caller.c %D%/race_caller.h \
	%D%/race_clock.c %D%/race_clock.h %D%/race_device.c \
	%D%/race_device.h %D%/race_file.c %D%/race_file.h %D%/race_host.c %D%/race_host.h %D%/race_known.c %D%/race_known.h \
	%D%/race_lane.c \
	%D%/race_lane.h %D%/race_meet.c %D%/race_meet.h \
	%D%/race_memory.c %D%/race_memory.h \
	%D%/race_plain.c %D%/race_plain.h \
	%D%/race_report.c %D%/race_report.h %D%/race_shadow.c \
	%D%/race_shadow.h %D%/race_site.c %D%/race_site.h \
	%D%/race_state.h %D%/race_stream.c %D%/race_stream.h \
	%D%/race_suppress.c %D%/race_suppress.h \
	%D%/race_sync.c %D%/race_sync.h \
	%D%/weak.c %D%/weak.h %D%/weak_choice.c %D%/weak_choice.h \
	%D%/weak_host.c %D%/weak_host.h %D%/weak_model.c \
	%D%/weak_model.h %D%/weak_note.c %D%/weak_note.h %D%/weak_schedule.c %D%/weak_schedule.h \
	%D%/weak_state.h %D%/weak_word.c %D%/weak_word.h
# What programs compiled by iriscc --check call; it is linked into them.
lib_LIBRARIES = libiris_check.a
libiris_check_a_SOURCES = %D%/race_calls.c
libiris_check_a_CFLAGS = $(AM_CFLAGS) -fPIC
