# SPDX-License-Identifier: MIT
matrix_tests += %D%/test_trace
