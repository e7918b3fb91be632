# SPDX-License-Identifier: MIT
unit_tests += %D%/test_race
EXTRA_DIST += %D%/bugs.h %D%/plain.c
