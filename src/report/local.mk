# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/analyse.c %D%/cause.c %D%/escape.c %D%/find.c \
	%D%/helpers.c %D%/incident.c %D%/json.c %D%/on_signal.c %D%/report.h \
	%D%/snapshot.c %D%/stopped.c %D%/text.c %D%/word.c %D%/words.c
