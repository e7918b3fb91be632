# SPDX-License-Identifier: MIT
# inputs: hosts nodes
test_programs += %D%/run
tests_ccl_run_SOURCES = %D%/cases.c %D%/cases.h %D%/play.c %D%/play.h \
	%D%/test_all_reduce.c %D%/test_ccl_calls.c %D%/test_ccl_graph.c \
	%D%/test_ccl_mismatch.c %D%/test_ccl_places.c %D%/test_ccl_rows.c \
	%D%/test_ccl_scale.c %D%/test_ccl_tuning.c %D%/test_ccl_unordered.c \
	%D%/test_collectives.c %D%/test_fp_env.c %D%/test_levels.c %D%/test_messages.c %D%/test_rounds.c \
	%D%/test_wg_ccl.c %D%/test_wg_tiles.c
