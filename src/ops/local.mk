# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/check.c %D%/chunks.c %D%/internal.h %D%/kernels.h \
	%D%/operations.c %D%/ops_kernels.c %D%/plan.c %D%/product.c %D%/steps.c
# A product is to be rounded before it is added to, on every target.
%D%/ops_kernels.lo: override CFLAGS += $(kernel_speed) -ffp-contract=off
# Modules, so that the library does without theirs.
if HAVE_CBLAS
pkglib_LTLIBRARIES += iris_cblas.la
iris_cblas_la_SOURCES = %D%/blas_cblas.c
iris_cblas_la_CPPFLAGS = $(AM_CPPFLAGS) $(CBLAS_CPPFLAGS)
iris_cblas_la_LIBADD = $(CBLAS_LIBS)
# A wheel has the library there, and libraries that it needs in turn.
iris_cblas_la_LDFLAGS = -module -avoid-version -shared \
	-export-symbols-regex iris_blas_module \
	-Wl,-rpath,'$$ORIGIN/blas' -Wl,--disable-new-dtags
endif
# They find their libraries at run time.
lt_blas = %D%/blas_lt.c src/base/loader.c
lt_blas_ldflags = -module -avoid-version -shared \
	-export-symbols-regex iris_blas_module
if HAVE_CUBLASLT
pkglib_LTLIBRARIES += iris_cublaslt.la
iris_cublaslt_la_SOURCES = %D%/blas_cublaslt.c $(lt_blas)
iris_cublaslt_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUBLAS_CPPFLAGS)
iris_cublaslt_la_LDFLAGS = $(lt_blas_ldflags)
endif
if HAVE_HIPBLASLT
pkglib_LTLIBRARIES += iris_hipblaslt.la
iris_hipblaslt_la_SOURCES = %D%/blas_hipblaslt.c $(lt_blas)
iris_hipblaslt_la_CPPFLAGS = $(AM_CPPFLAGS)
iris_hipblaslt_la_LDFLAGS = $(lt_blas_ldflags)
endif
