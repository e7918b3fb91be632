# SPDX-License-Identifier: MIT
unit_tests += %D%/test_backend %D%/test_backend_select
