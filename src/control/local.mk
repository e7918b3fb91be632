# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/agree.c %D%/arrivals.c %D%/bootstrap.c %D%/control.c \
	%D%/control.h %D%/control_open.c %D%/exchange.c %D%/flight_record.c %D%/hub.c \
	%D%/internal.h %D%/links.c %D%/peers.c %D%/records.h \
	%D%/rendezvous.c %D%/rendezvous_root.c %D%/rows.c \
	%D%/shrink.c %D%/table.c
# The objects that see MPI.
libirismpi_la_SOURCES = %D%/bootstrap_mpi.c
