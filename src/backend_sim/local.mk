# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/sim.h %D%/sim_fault.c \
	%D%/sim_heap.c %D%/sim_init.c %D%/sim_launch.c %D%/sim_signal.c \
	%D%/sim_stream.c
