# SPDX-License-Identifier: MIT
matrix_tests += %D%/test_ops
rank_tests += %D%/test_ops_blas %D%/test_ops_calls %D%/test_ops_chunks
if FAKE_HIP
ops_gpu_tests = %D%/test_ops_gpu_blas %D%/test_ops_gpu_fail %D%/test_ops_gpu_first \
	%D%/test_ops_gpu_missing
hip_tests += $(ops_gpu_tests)
$(ops_gpu_tests): tests/fakeblas/libcublasLt.la tests/fakeblas/libhipblaslt.la
%D%/test_ops_gpu_blas.$(OBJEXT) %D%/test_ops_gpu_fail.$(OBJEXT) %D%/test_ops_gpu_first.$(OBJEXT) \
	%D%/test_ops_gpu_missing.$(OBJEXT): \
	CPPFLAGS += -DFAKEBLAS_FOLDER='"$(abs_builddir)/tests/fakeblas/.libs"'
endif
ops_fake_tests = %D%/test_ops_stuck %D%/test_ops_uneven
unit_tests += %D%/test_ops_plan $(ops_fake_tests)
# A module in the place of the library's own; a path makes it a shared object.
tests_ops_iris_cblas_la_SOURCES = %D%/fake_blas.c
tests_ops_iris_cblas_la_LDFLAGS = -module -avoid-version -shared \
	-rpath /nowhere
$(ops_fake_tests): %D%/iris_cblas.la
%D%/test_ops_stuck.$(OBJEXT) %D%/test_ops_uneven.$(OBJEXT): \
	CPPFLAGS += -DFAKE_BLAS_FOLDER='"$(abs_builddir)/%D%/.libs"'
