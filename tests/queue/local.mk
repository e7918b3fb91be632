# SPDX-License-Identifier: MIT
# inputs: gpus threads
test_programs += %D%/run
tests_queue_run_SOURCES = %D%/test_copy.c %D%/test_device_timeout.c %D%/test_edges.c \
	%D%/test_fault.c %D%/test_graph.c %D%/test_launch.c %D%/test_prompt.c \
	%D%/test_stage.c %D%/test_stream.c %D%/test_tile_transfer.c \
	%D%/test_transfer.c
