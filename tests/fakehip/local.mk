# SPDX-License-Identifier: MIT
# A HIP runtime over host memory, for tests.
noinst_LTLIBRARIES += libfakehip.la
EXTRA_iris_hip_la_DEPENDENCIES = libfakehip.la
libfakehip_la_SOURCES = %D%/choose_fake.h %D%/fake.h %D%/fake_device.c %D%/fake_event.c %D%/fake_graph.c \
	%D%/fake_handle.c \
	%D%/fake_ipc.c %D%/fake_late.c %D%/fake_launch.c %D%/fake_memory.c %D%/fake_stream.c \
	%D%/fake_stream.h %D%/fake_vmem.c %D%/fake_vmem.h %D%/fakehip.h \
	%D%/target_fake.h
libfakehip_la_CPPFLAGS = $(iris_hip_la_CPPFLAGS)
libfakehip_la_LDFLAGS = -avoid-version -shared -rpath /nowhere
