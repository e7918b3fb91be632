# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/agree.c %D%/agree.h %D%/arrivals.c %D%/arrivals.h %D%/board.c %D%/board.h \
	%D%/bootstrap.c %D%/bootstrap.h %D%/bootstrap_mpi.h \
	%D%/call.c %D%/call.h %D%/circle.c %D%/circle.h \
	%D%/control.c %D%/control.h %D%/control_open.c %D%/control_open.h \
	%D%/control_shm.c %D%/control_shm.h %D%/control_socket.c \
	%D%/control_socket.h %D%/endpoint.c %D%/endpoint.h \
	%D%/exchange.c %D%/exchange.h %D%/flight_record.c \
	%D%/flight_record.h %D%/hub.c %D%/hub.h %D%/hub_accept.c \
	%D%/hub_accept.h %D%/hub_copy.c %D%/hub_copy.h \
	%D%/hub_query.c %D%/hub_query.h %D%/link.c %D%/link.h \
	%D%/mail.c %D%/mail.h %D%/message.c %D%/message.h \
	%D%/mirror.c %D%/mirror.h %D%/peers.c \
	%D%/peers.h %D%/place.c %D%/place.h %D%/posts.c %D%/posts.h \
	%D%/record_names.c %D%/record_names.h %D%/record_read.c \
	%D%/record_read.h %D%/records.c %D%/records.h %D%/rendezvous.c %D%/rendezvous.h \
	%D%/rendezvous_common.c %D%/rendezvous_common.h \
	%D%/rendezvous_hosts.c %D%/rendezvous_hosts.h \
	%D%/rendezvous_hello.c %D%/rendezvous_hello.h %D%/rendezvous_root.c \
	%D%/rendezvous_root.h %D%/segment.c %D%/segment.h \
	%D%/stream_socket.c %D%/stream_socket.h
# The objects that see MPI.
libirismpi_la_SOURCES = %D%/bootstrap_mpi.c
