# SPDX-License-Identifier: MIT
irisincludedir = $(includedir)/iris
irisinclude_HEADERS = %D%/iris/ccl.h %D%/iris/ccl_device.h \
	%D%/iris/constants.h %D%/iris/context.h \
	%D%/iris/device.h %D%/iris/dlpack.h %D%/iris/graph.h %D%/iris/group.h \
	%D%/iris/heap.h %D%/iris/iris.h %D%/iris/iris.hpp %D%/iris/launch.h \
	%D%/iris/log.h %D%/iris/ops.h %D%/iris/plan.h %D%/iris/random.h %D%/iris/spawn.h \
	%D%/iris/status.h %D%/iris/stream.h %D%/iris/sync.h %D%/iris/tensor.h \
	%D%/iris/trace.h \
	%D%/iris/types.h
