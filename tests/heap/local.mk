# SPDX-License-Identifier: MIT
# inputs: gpus hosts nodes
test_programs += %D%/run
tests_heap_run_SOURCES = %D%/test_alloc.c %D%/test_as_symmetric.c %D%/test_bases.c \
	%D%/test_commit.c %D%/test_deferred.c %D%/test_deferred_failure.c \
	%D%/test_heap.c %D%/test_name.c %D%/test_reserve.c \
	%D%/test_symmetric.c %D%/test_typed.c \
	%D%/test_usable.c %D%/test_vmem.c
