# SPDX-License-Identifier: MIT
test_programs += %D%/run
tests_faults_run_SOURCES = %D%/socket_faults.c %D%/socket_faults.h %D%/test_faults.c
