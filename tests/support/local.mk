# SPDX-License-Identifier: MIT
EXTRA_DIST += %D%/checked.sh %D%/jobs.sh %D%/run %D%/script.sh
check_LTLIBRARIES = tests/libharness.la tests/ops/iris_cblas.la
tests_libharness_la_SOURCES = %D%/amo_verbs.h %D%/device_api.h %D%/float8.h %D%/game.h \
	%D%/harness.c %D%/harness.h %D%/leaks.c %D%/leaks.h %D%/matrix.h \
	%D%/mounts.c %D%/mounts.h \
	%D%/procs.c %D%/procs.h %D%/runner.c %D%/runner.h %D%/wait_kernel.h
tests_libharness_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(CMOCKA_CFLAGS)
tests_libharness_la_CFLAGS = $(AM_CFLAGS) -Wno-unused-parameter
if FAKE_HIP
include tests/fakeblas/local.mk
tests_libharness_la_SOURCES += %D%/hip_job.c %D%/hip_job.h
endif
# Runs a litmus test in all ways that IRIS_CHECK=weak allows.
tests_check_explorer_SOURCES = tests/check/explorer.c tools/command.c \
	tools/replay.c tools/replay_table.c
tests_check_explorer_LDADD = libirisi.la
