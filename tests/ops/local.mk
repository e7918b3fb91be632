# SPDX-License-Identifier: MIT
# inputs: nodes
test_programs += %D%/run
tests_ops_run_SOURCES = %D%/element.h %D%/test_ops.c %D%/test_ops_blas.c %D%/test_ops_calls.c \
	%D%/test_ops_chunks.c %D%/test_ops_plan.c %D%/test_ops_rounding.c %D%/test_ops_stuck.c \
	%D%/test_ops_uneven.c %D%/test_plan.c
if FAKE_HIP
tests_ops_run_SOURCES += %D%/test_ops_gpu.c %D%/test_ops_gpu_blas.c
fakeblas_libraries = tests/fakeblas/libcublasLt.la tests/fakeblas/libhipblaslt.la
endif
# A module in the place of the library's own; a path makes it a shared object.
tests_ops_iris_cblas_la_SOURCES = %D%/fake_blas.c
tests_ops_iris_cblas_la_LDFLAGS = -module -avoid-version -shared \
	-rpath /nowhere
EXTRA_tests_ops_run_DEPENDENCIES = %D%/iris_cblas.la $(fakeblas_libraries)
$(tests_ops_run_OBJECTS): CPPFLAGS += -DFAKE_BLAS_FOLDER='"$(abs_builddir)/%D%/.libs"' \
	-DFAKEBLAS_FOLDER='"$(abs_builddir)/tests/fakeblas/.libs"'
