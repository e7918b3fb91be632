# SPDX-License-Identifier: MIT
bin_PROGRAMS += iris-info
iris_info_SOURCES = %D%/info.h %D%/info_check.c %D%/info_check.h \
	%D%/info_gather.c %D%/info_json.c %D%/info_text.c %D%/iris-info.c %D%/json.c %D%/json.h
iris_info_LDADD = libirisi.la
# For scripts/gpu-test, from the build folder: not installed.
noinst_PROGRAMS += iris-probe
iris_probe_SOURCES = %D%/iris-probe.c %D%/probe.h %D%/probe_checks.c \
	%D%/probe_kernels.h %D%/probe_rate.c
iris_probe_LDADD = libiris.la
EXTRA_DIST += %D%/probe.awk
