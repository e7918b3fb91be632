# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/internal.h %D%/sim_command.c %D%/sim_fault.c %D%/sim_heap.c \
	%D%/sim_init.c %D%/sim_launch.c %D%/sim_queue.c %D%/sim_signal.c \
	%D%/sim_stream.c %D%/sim_synchronize.c %D%/sim_team.c %D%/sim_thread.c
