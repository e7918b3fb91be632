# SPDX-License-Identifier: MIT
unit_tests += %D%/test_steps
rank_tests += %D%/test_far %D%/test_far_ccl %D%/test_far_order
EXTRA_DIST += %D%/fault_job.c %D%/fault_shim.c %D%/hosts_job.c
