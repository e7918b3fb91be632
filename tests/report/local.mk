# SPDX-License-Identifier: MIT
test_programs += %D%/run
tests_report_run_SOURCES = %D%/test_hangs.c %D%/test_healthy.c %D%/test_hostile.c %D%/test_places.c \
	%D%/test_record.c %D%/test_rows.c %D%/test_top.c %D%/test_verdict.c
EXTRA_DIST += %D%/hangs.def %D%/script.h
%D%/test_hangs.$(OBJEXT): %D%/hangs.def
