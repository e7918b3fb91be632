# SPDX-License-Identifier: MIT
# inputs: gpus hosts nodes
test_programs += %D%/run
tests_context_run_SOURCES = %D%/test_broadcast.c %D%/test_contexts.c \
	%D%/test_finalize.c %D%/test_finalize_later.c %D%/test_group_errors.c \
	%D%/test_groups.c %D%/test_host_events.c %D%/test_init.c %D%/test_misuse.c \
	%D%/test_nodes.c %D%/test_shrink.c %D%/test_spawn.c %D%/test_sync.c \
	%D%/test_waits.c
