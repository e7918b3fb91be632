# SPDX-License-Identifier: MIT
rank_tests += %D%/test_litmus
unit_tests += %D%/test_race %D%/test_stale %D%/test_weak
EXTRA_DIST += %D%/bug.h %D%/bugs_collectives.h %D%/bugs_flags.h %D%/bugs_hosts.h %D%/bugs_order.h \
	%D%/bugs_places.h %D%/bugs_published.h %D%/bugs_rma.h \
	%D%/bugs_rma_memory.h %D%/bugs_rma_rounds.h %D%/explore.c %D%/herd.c %D%/iris.bell %D%/iris.cat %D%/litmus.h %D%/litmus_run.h \
	%D%/plain.c %D%/replay.c
