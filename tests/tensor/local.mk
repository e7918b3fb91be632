# SPDX-License-Identifier: MIT
rank_tests += %D%/test_create %D%/test_values
EXTRA_DIST += %D%/cases.def %D%/make_cases.py
%D%/test_values.$(OBJEXT): %D%/cases.def
