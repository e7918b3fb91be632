# SPDX-License-Identifier: MIT
# inputs: threads
test_programs += %D%/run
tests_control_run_SOURCES = %D%/test_absent.c %D%/test_agree.c %D%/test_bootstrap.c \
	%D%/test_crowd.c %D%/test_deadline.c \
	%D%/test_descriptors.c %D%/test_early_death.c %D%/test_failure.c \
	%D%/test_hub.c %D%/test_interrupt.c %D%/test_leader.c %D%/test_limits.c %D%/test_links.c \
	%D%/test_mismatch.c \
	%D%/test_rendezvous.c %D%/test_stranger.c %D%/test_wait_check.c
include tests/faults/local.mk
