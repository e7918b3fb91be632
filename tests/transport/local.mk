# SPDX-License-Identifier: MIT
# inputs: gpus threads
test_programs += %D%/run
tests_transport_run_SOURCES = %D%/test_far.c %D%/test_far_ccl.c %D%/test_far_order.c \
	%D%/test_ring.c %D%/test_steps.c
EXTRA_DIST += %D%/fault_job.c %D%/fault_shim.c %D%/hosts_job.c
