# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/analyse.c %D%/analyse.h %D%/cause.c %D%/cause.h \
	%D%/cause_hung.c %D%/cause_hung.h %D%/cause_word.c %D%/cause_word.h \
	%D%/escape.c %D%/escape.h %D%/find.c %D%/find.h %D%/incident.c \
	%D%/incident.h %D%/report_json.c \
	%D%/report_json.h %D%/report_text.c %D%/report_text.h %D%/snapshot.c \
	%D%/snapshot.h %D%/words.c %D%/words.h
