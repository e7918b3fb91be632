# SPDX-License-Identifier: MIT
iris_hip_la_SOURCES = %D%/hip.h %D%/hip_access.c %D%/hip_access.h %D%/hip_call.c %D%/hip_call.h %D%/hip_copy.c %D%/hip_copy.h \
	%D%/hip_deferred.c %D%/hip_deferred.h %D%/hip_descriptor.c %D%/hip_descriptor.h \
	%D%/hip_errand.c %D%/hip_errand.h %D%/hip_external.c %D%/hip_external.h %D%/hip_fault.c \
	%D%/hip_fault.h %D%/hip_graph.c %D%/hip_graph.h %D%/hip_heap.c %D%/hip_heap.h %D%/hip_init.c \
	%D%/hip_launch.c %D%/hip_launch.h %D%/hip_nvidia.h %D%/hip_queue.c %D%/hip_queue.h \
	%D%/hip_quirks.c %D%/hip_quirks.h %D%/hip_signal.c %D%/hip_signal.h %D%/hip_stream.c \
	%D%/hip_stream.h %D%/hip_synchronize.c %D%/hip_synchronize.h %D%/hip_vmem.c %D%/hip_vmem.h \
	%D%/hip_waits.c %D%/hip_waits.h \
	src/backend/backend.c src/backend/mismatch.c src/backend/module.c \
	src/backend/stubs.c src/base/constants.c
iris_hip_la_CPPFLAGS = $(AM_CPPFLAGS) $(HIP_CPPFLAGS)
iris_hip_la_LIBADD = $(HIP_LIBS)
iris_hip_la_LDFLAGS = -module -avoid-version -shared \
	-export-symbols-regex iris_backend_module
