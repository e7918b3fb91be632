# SPDX-License-Identifier: MIT
rank_tests += %D%/test_malformed
unit_tests += %D%/test_view
matrix_tests += %D%/test_create %D%/test_errors %D%/test_remote
rank_tests += %D%/test_copy %D%/test_float8 %D%/test_large %D%/test_page %D%/test_values
EXTRA_DIST += %D%/cases.def %D%/make_cases.py
EXTRA_DIST += %D%/dlpack.py %D%/draw.h
%D%/test_values.$(OBJEXT): %D%/cases.def
unit_tests += %D%/test_locale
rank_tests += %D%/test_dlpack %D%/test_random
unit_tests += %D%/test_normal %D%/test_randint %D%/test_random_statistics
tests_tensor_test_locale_SOURCES = %D%/test_locale.c
tests_tensor_test_dlpack_SOURCES = %D%/test_dlpack.c %D%/dlpack_layout.c \
	%D%/dlpack_layout.h
