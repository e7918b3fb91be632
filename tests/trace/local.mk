# SPDX-License-Identifier: MIT
# inputs: nodes
test_programs += %D%/run
tests_trace_run_SOURCES = %D%/test_death.c %D%/test_delay.c %D%/test_events.c \
	%D%/test_export.c %D%/test_order.c \
	%D%/test_trace.c
