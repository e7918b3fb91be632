# SPDX-License-Identifier: MIT
iris_hip_la_SOURCES = %D%/call.c %D%/deferred.c %D%/fault.c %D%/heap.c %D%/hip_nvidia.h \
	%D%/init.c %D%/internal.h %D%/queue.c %D%/quirks.c %D%/stream.c \
	src/backend/backend.c \
	src/backend/module.c src/base/constants.c
iris_hip_la_CPPFLAGS = $(AM_CPPFLAGS) $(HIP_CPPFLAGS)
iris_hip_la_LIBADD = $(HIP_LIBS)
iris_hip_la_LDFLAGS = -module -avoid-version -shared \
	-export-symbols-regex iris_backend_module
