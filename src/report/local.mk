# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/analyse.c %D%/cause.c %D%/escape.c %D%/find.c \
	%D%/incident.c %D%/json.c %D%/report.h %D%/snapshot.c %D%/text.c %D%/words.c
