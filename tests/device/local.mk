# SPDX-License-Identifier: MIT
unit_tests += %D%/test_float8 %D%/test_half
matrix_tests += %D%/test_amo %D%/test_amo_flood %D%/test_amo_race \
	%D%/test_amo_words %D%/test_lanes %D%/test_rma %D%/test_signal \
	%D%/test_tile %D%/test_wg
rank_tests += %D%/test_check_bounds %D%/test_convert %D%/test_fault_line \
	%D%/test_hooks %D%/test_links %D%/test_lock %D%/test_observe \
	%D%/test_ordering %D%/test_product %D%/test_scopes %D%/test_signals %D%/test_stray \
	%D%/test_ticket %D%/test_unreachable %D%/test_wait %D%/test_wave
