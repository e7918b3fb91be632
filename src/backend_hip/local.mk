# SPDX-License-Identifier: MIT
iris_hip_la_SOURCES = %D%/hip_access.c %D%/hip_call.c %D%/hip_copy.c \
	%D%/hip_deferred.c %D%/hip_descriptor.c %D%/hip_errand.c %D%/hip_external.c \
	%D%/hip_fault.c %D%/hip_graph.c %D%/hip_heap.c %D%/hip_init.c %D%/hip_launch.c \
	%D%/hip_nvidia.h %D%/hip_queue.c %D%/hip_quirks.c %D%/hip_signal.c \
	%D%/hip_stream.c %D%/hip_synchronize.c %D%/hip_vmem.c %D%/hip_waits.c \
	%D%/internal.h src/backend/backend.c src/backend/mismatch.c \
	src/backend/module.c src/backend/stubs.c src/base/constants.c
iris_hip_la_CPPFLAGS = $(AM_CPPFLAGS) $(HIP_CPPFLAGS)
iris_hip_la_LIBADD = $(HIP_LIBS)
iris_hip_la_LDFLAGS = -module -avoid-version -shared \
	-export-symbols-regex iris_backend_module
