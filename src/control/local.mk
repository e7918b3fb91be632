# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/agree.c %D%/agree.h %D%/agree_note.c \
	%D%/board.c %D%/board.h %D%/bootstrap.h \
	%D%/bootstrap_env.c %D%/bootstrap_select.c %D%/bootstrap_thread.c \
	%D%/call.c %D%/call.h %D%/circle.c %D%/circle.h \
	%D%/control.c %D%/control.h %D%/control_shm.c %D%/endpoint.c %D%/endpoint.h \
	%D%/control_open.c %D%/control_open.h %D%/control_socket.c %D%/control_socket.h %D%/link.c %D%/link.h \
	%D%/mail.c %D%/mail.h %D%/message.c %D%/message.h \
	%D%/hub.c %D%/hub.h %D%/hub_apply.c %D%/hub_open.c \
	%D%/exchange.c %D%/exchange.h %D%/peers.c %D%/peers.h \
	%D%/posts.c %D%/posts.h %D%/place.c %D%/place.h %D%/records.c %D%/records.h \
	%D%/record.c %D%/record.h %D%/record_names.c %D%/rendezvous.c %D%/rendezvous.h %D%/rendezvous_hello.c \
	%D%/rendezvous_root.c %D%/rendezvous_root.h %D%/rendezvous_verdict.c %D%/segment.c %D%/segment.h %D%/waiter.c \
	%D%/waiter.h
# The one object that sees MPI.
libirismpi_la_SOURCES = %D%/bootstrap_mpi.c
