# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/analyse.c %D%/cause.c %D%/cause_hung.c %D%/cause_word.c \
	%D%/escape.c %D%/find.c %D%/incident.c %D%/internal.h %D%/report.h \
	%D%/report_json.c %D%/report_text.c %D%/snapshot.c %D%/words.c
