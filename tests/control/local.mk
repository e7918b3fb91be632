# SPDX-License-Identifier: MIT
unit_tests += %D%/test_absent %D%/test_bootstrap %D%/test_deadline \
	%D%/test_descriptors %D%/test_early_death %D%/test_failure \
	%D%/test_limits %D%/test_rendezvous %D%/test_stranger
rank_tests += %D%/test_mismatch
