# SPDX-License-Identifier: MIT
# inputs: gpus threads
test_programs += %D%/run
tests_backend_run_SOURCES = %D%/contract.c %D%/contract.h \
	%D%/test_backend.c %D%/test_backend_select.c %D%/test_third.c \
	tests/backend_malloc/malloc_backend.c tests/backend_malloc/malloc_backend.h
