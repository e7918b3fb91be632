# SPDX-License-Identifier: MIT
bin_PROGRAMS += iris-info
iris_info_SOURCES = %D%/info.h %D%/info_gather.c %D%/info_json.c \
	%D%/info_text.c %D%/iris-info.c %D%/json.c %D%/json.h
iris_info_LDADD = libirisi.la
