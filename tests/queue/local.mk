# SPDX-License-Identifier: MIT
rank_tests += %D%/test_copy %D%/test_device_timeout %D%/test_edges \
	%D%/test_fault %D%/test_graph %D%/test_launch %D%/test_prompt \
	%D%/test_stage %D%/test_stream %D%/test_tile_transfer %D%/test_transfer
