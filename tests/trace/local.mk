# SPDX-License-Identifier: MIT
matrix_tests += %D%/test_trace
rank_tests += %D%/test_export
unit_tests += %D%/test_death %D%/test_delay %D%/test_events
