# SPDX-License-Identifier: MIT
iris_hip_la_SOURCES = %D%/hip.h %D%/hip_copy.c %D%/hip_enqueue.c \
	%D%/hip_extent.c %D%/hip_fault.c %D%/hip_foreign.c %D%/hip_heap.c \
	%D%/hip_init.c %D%/hip_launch.c %D%/hip_nvidia.h %D%/hip_shared.c \
	%D%/hip_stream.c %D%/hip_vmem.c %D%/hip_vmem.h %D%/hip_waste.c \
	src/backend/backend.c src/backend/module.c src/backend/stubs.c
iris_hip_la_CPPFLAGS = $(AM_CPPFLAGS) $(HIP_CPPFLAGS)
iris_hip_la_LIBADD = $(HIP_LIBS)
iris_hip_la_LDFLAGS = -module -avoid-version -shared \
	-export-symbols-regex iris_backend_module
