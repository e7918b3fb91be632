# SPDX-License-Identifier: MIT
matrix_tests += %D%/test_ops
rank_tests += %D%/test_ops_blas %D%/test_ops_calls
