# SPDX-License-Identifier: MIT
hip_tests += %D%/test_hip_access %D%/test_hip_copies %D%/test_hip_devices %D%/test_hip_failure %D%/test_hip_fault \
	%D%/test_hip_graph %D%/test_hip_heap %D%/test_hip_node %D%/test_hip_note %D%/test_hip_queue \
	%D%/test_hip_quirks \
	%D%/test_hip_stream %D%/test_hip_vmem %D%/test_hip_waits
