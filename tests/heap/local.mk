# SPDX-License-Identifier: MIT
unit_tests += %D%/test_alloc %D%/test_bases %D%/test_commit \
	%D%/test_deferred_failure %D%/test_name
rank_tests += %D%/test_as_symmetric %D%/test_deferred %D%/test_heap %D%/test_symmetric \
	%D%/test_typed %D%/test_usable %D%/test_vmem
