# SPDX-License-Identifier: MIT
unit_tests += %D%/test_faults
tests_faults_test_faults_SOURCES = %D%/test_faults.c %D%/socket_faults.c \
	%D%/socket_faults.h
