# SPDX-License-Identifier: MIT
# inputs: nodes
test_programs += %D%/run
tests_tensor_run_SOURCES = %D%/dlpack_layout.c %D%/dlpack_layout.h %D%/test_copy.c \
	%D%/test_create.c %D%/test_dlpack.c %D%/test_errors.c %D%/test_float8.c \
	%D%/test_large.c %D%/test_locale.c %D%/test_malformed.c %D%/test_normal.c \
	%D%/test_page.c %D%/test_randint.c %D%/test_random.c \
	%D%/test_remote.c %D%/test_values.c %D%/test_view.c
EXTRA_DIST += %D%/cases.def %D%/dlpack.py %D%/draw.h %D%/make_cases.py
%D%/test_values.$(OBJEXT): %D%/cases.def
