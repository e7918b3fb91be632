# SPDX-License-Identifier: MIT
test_programs += %D%/run
tests_check_run_SOURCES = %D%/test_limits.c %D%/test_litmus.c %D%/test_outside.c %D%/test_race.c %D%/test_stale.c \
	%D%/test_weak.c
EXTRA_DIST += %D%/bug.h %D%/bugs_collectives.h %D%/bugs_common.h %D%/bugs_epochs.h %D%/bugs_flags.h %D%/bugs_hosts.h %D%/bugs_order.h \
	%D%/bugs_places.h %D%/bugs_published.h %D%/bugs_rma.h \
	%D%/bugs_rma_memory.h %D%/bugs_rma_rounds.h %D%/command.c %D%/explore.c %D%/herd.c %D%/iris.bell %D%/iris.cat %D%/lanes.c %D%/litmus.h %D%/litmus_run.h \
	%D%/plain.c %D%/replay.c %D%/threads.c
# A report has the lines of calls in kernels only where these are inlined. addr2line of
# binutils 2.40 takes some included files of DWARF 5 for the file that includes them.
$(tests_check_run_OBJECTS): override CFLAGS += -O1 -gdwarf-4
