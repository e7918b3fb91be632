# SPDX-License-Identifier: MIT
bin_PROGRAMS += iris-info
iris_info_SOURCES = %D%/iris-info.c
iris_info_LDADD = libirisi.la
