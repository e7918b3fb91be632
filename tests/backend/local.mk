# SPDX-License-Identifier: MIT
unit_tests += %D%/test_backend %D%/test_backend_select %D%/test_third
tests_backend_test_backend_SOURCES = %D%/contract.c %D%/contract.h \
	%D%/contract_memory.c \
	%D%/test_backend.c
# A backend that is no part of the library: docs/backends.md quotes it.
tests_backend_test_third_SOURCES = %D%/contract.c %D%/contract.h \
	%D%/contract_memory.c \
	%D%/test_third.c tests/backend_malloc/malloc_backend.c \
	tests/backend_malloc/malloc_backend.h
