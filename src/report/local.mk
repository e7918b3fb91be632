# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/cause.c %D%/find.c %D%/incident.c %D%/internal.h \
	%D%/places.c %D%/print.c %D%/report.h %D%/snapshot.c %D%/words.c
