# SPDX-License-Identifier: MIT
test_programs += %D%/run
tests_backend_hip_run_SOURCES = %D%/test_hip_access.c %D%/test_hip_copies.c \
	%D%/test_hip_devices.c %D%/test_hip_failure.c %D%/test_hip_far.c %D%/test_hip_fault.c \
	%D%/test_hip_graph.c %D%/test_hip_heap.c %D%/test_hip_large.c \
	%D%/test_hip_node.c %D%/test_hip_note.c %D%/test_hip_queue.c %D%/test_hip_quirks.c \
	%D%/test_hip_stream.c %D%/test_hip_vmem.c %D%/test_hip_waits.c
