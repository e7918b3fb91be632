# SPDX-License-Identifier: MIT
# inputs: threads
test_programs += %D%/run
tests_base_run_SOURCES = %D%/test_config.c %D%/test_constants.c %D%/test_environment.c \
	%D%/test_fd.c %D%/test_file.c %D%/test_gate.c %D%/test_images.c \
	%D%/test_json_writer.c %D%/test_log.c %D%/test_nothing.c %D%/test_process.c \
	%D%/test_proof.c %D%/test_scale.c %D%/test_session.c %D%/test_settings.c \
	%D%/test_shm.c %D%/test_sized.c %D%/test_status.c \
	%D%/test_ticks.c %D%/test_wait.c
