# SPDX-License-Identifier: MIT
matrix_tests += %D%/test_all_reduce %D%/test_collectives %D%/test_messages %D%/test_wg_ccl \
	%D%/test_wg_tiles
rank_tests += %D%/test_ccl_calls %D%/test_ccl_graph %D%/test_ccl_places \
	%D%/test_ccl_mismatch %D%/test_fp_env \
	%D%/test_ccl_rows %D%/test_ccl_scale %D%/test_ccl_tuning %D%/test_ccl_unordered \
	%D%/test_rounds
ccl_common = %D%/cases.c %D%/cases.h %D%/play.c %D%/play.h
tests_ccl_test_all_reduce_SOURCES = $(ccl_common) %D%/test_all_reduce.c
tests_ccl_test_collectives_SOURCES = $(ccl_common) %D%/test_collectives.c
tests_ccl_test_messages_SOURCES = %D%/cases.c %D%/cases.h %D%/test_messages.c
tests_ccl_test_wg_ccl_SOURCES = %D%/cases.c %D%/cases.h %D%/test_wg_ccl.c
tests_ccl_test_wg_tiles_SOURCES = %D%/cases.c %D%/cases.h %D%/test_wg_tiles.c
tests_ccl_test_fp_env_SOURCES = %D%/test_fp_env.c
tests_ccl_test_rounds_SOURCES = $(ccl_common) %D%/test_rounds.c
tests_ccl_test_ccl_calls_SOURCES = $(ccl_common) %D%/test_ccl_calls.c
tests_ccl_test_ccl_graph_SOURCES = $(ccl_common) %D%/test_ccl_graph.c
tests_ccl_test_ccl_mismatch_SOURCES = $(ccl_common) %D%/test_ccl_mismatch.c
tests_ccl_test_ccl_places_SOURCES = $(ccl_common) %D%/test_ccl_places.c
tests_ccl_test_ccl_unordered_SOURCES = $(ccl_common) %D%/test_ccl_unordered.c
