# SPDX-License-Identifier: MIT
unit_tests += %D%/test_config %D%/test_constants %D%/test_environment \
	%D%/test_fd %D%/test_file %D%/test_gate %D%/test_images %D%/test_json_writer \
	%D%/test_log %D%/test_process %D%/test_proof %D%/test_scale %D%/test_session \
	%D%/test_settings %D%/test_settings_parse %D%/test_shm %D%/test_sized \
	%D%/test_status %D%/test_ticks %D%/test_wait
