# SPDX-License-Identifier: MIT
unit_tests += %D%/test_hangs %D%/test_healthy %D%/test_hostile %D%/test_record %D%/test_rows %D%/test_top \
	%D%/test_verdict
EXTRA_DIST += %D%/hangs.def %D%/script.h
%D%/test_hangs.$(OBJEXT): %D%/hangs.def
