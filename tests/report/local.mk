# SPDX-License-Identifier: MIT
unit_tests += %D%/test_hangs
EXTRA_DIST += %D%/hangs.def
%D%/test_hangs.$(OBJEXT): %D%/hangs.def
