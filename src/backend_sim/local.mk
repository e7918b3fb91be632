# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/sim.h %D%/sim_command.c %D%/sim_command.h %D%/sim_fault.c %D%/sim_fault.h %D%/sim_heap.c %D%/sim_heap.h \
	%D%/sim_init.c %D%/sim_launch.c %D%/sim_launch.h %D%/sim_queue.c %D%/sim_queue.h \
	%D%/sim_signal.c %D%/sim_signal.h %D%/sim_stream.c %D%/sim_stream.h %D%/sim_synchronize.c \
	%D%/sim_synchronize.h %D%/sim_team.c %D%/sim_team.h %D%/sim_thread.c %D%/sim_thread.h
