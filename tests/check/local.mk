# SPDX-License-Identifier: MIT
unit_tests += %D%/test_race %D%/test_weak
EXTRA_DIST += %D%/bugs.h %D%/litmus.h %D%/plain.c
