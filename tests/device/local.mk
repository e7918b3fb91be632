# SPDX-License-Identifier: MIT
# inputs: hosts nodes
test_programs += %D%/run
tests_device_run_SOURCES = %D%/test_amo.c %D%/test_amo_flood.c %D%/test_amo_race.c \
	%D%/test_amo_words.c %D%/test_check_bounds.c %D%/test_convert.c \
	%D%/test_fault_line.c %D%/test_float8.c %D%/test_half.c %D%/test_hooks.c \
	%D%/test_lanes.c %D%/test_links.c %D%/test_observe.c \
	%D%/test_ordering.c %D%/test_product.c %D%/test_rma.c %D%/test_scopes.c \
	%D%/test_signal.c %D%/test_signals.c %D%/test_stray.c %D%/test_ticket.c \
	%D%/test_tile.c %D%/test_unreachable.c %D%/test_wait.c %D%/test_wave.c \
	%D%/test_wg.c
