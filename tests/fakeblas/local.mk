# SPDX-License-Identifier: MIT
# Libraries of products over the fake HIP runtime, for tests.
check_LTLIBRARIES += %D%/libcublasLt.la %D%/libhipblaslt.la
fakeblas = %D%/fakeblas.h %D%/fakeblas_gemm.c %D%/toolkit.h
tests_fakeblas_libcublasLt_la_SOURCES = %D%/fakeblas_lt.c $(fakeblas)
tests_fakeblas_libhipblaslt_la_SOURCES = %D%/fakeblas_lt.c $(fakeblas)
tests_fakeblas_libcublasLt_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_fakeblas_libhipblaslt_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -DFAKEBLAS_HIP
tests_fakeblas_libcublasLt_la_LIBADD = libfakehip.la
tests_fakeblas_libhipblaslt_la_LIBADD = libfakehip.la
fakeblas_ldflags = -avoid-version -shared -rpath /nowhere
tests_fakeblas_libcublasLt_la_LDFLAGS = $(fakeblas_ldflags)
tests_fakeblas_libhipblaslt_la_LDFLAGS = $(fakeblas_ldflags)
