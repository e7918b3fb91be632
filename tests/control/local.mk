# SPDX-License-Identifier: MIT
unit_tests += %D%/test_absent %D%/test_agree %D%/test_bootstrap %D%/test_crowd \
	%D%/test_deadline \
	%D%/test_descriptors %D%/test_early_death %D%/test_failure \
	%D%/test_hub %D%/test_interrupt %D%/test_leader %D%/test_limits %D%/test_rendezvous \
	%D%/test_stranger %D%/test_wait_check %D%/test_warn
rank_tests += %D%/test_mismatch
include tests/faults/local.mk
