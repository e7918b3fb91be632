# SPDX-License-Identifier: MIT
unit_tests += %D%/test_finalize %D%/test_finalize_later %D%/test_group_errors %D%/test_host_events \
	%D%/test_init %D%/test_misuse %D%/test_spawn %D%/test_spawn_errors \
	%D%/test_waits
matrix_tests += %D%/test_sync
rank_tests += %D%/test_broadcast %D%/test_contexts %D%/test_groups \
	%D%/test_nodes
