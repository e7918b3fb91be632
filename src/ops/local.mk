# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/blas.c %D%/blas.h %D%/blas_cpu.c %D%/blas_cpu.h %D%/check.c %D%/kernels.c %D%/kernels.h \
	%D%/operations.c %D%/ops.h %D%/product.c %D%/workspace.c
# A product is to be rounded before it is added to, on every target.
%D%/kernels.lo: override CFLAGS += -O3 -ffp-contract=off
# Modules, so that the library does without theirs.
if HAVE_CBLAS
pkglib_LTLIBRARIES += iris_cblas.la
iris_cblas_la_SOURCES = %D%/blas_cblas.c
iris_cblas_la_CPPFLAGS = $(AM_CPPFLAGS) $(CBLAS_CPPFLAGS)
iris_cblas_la_LIBADD = $(CBLAS_LIBS)
iris_cblas_la_LDFLAGS = -module -avoid-version -shared \
	-export-symbols-regex iris_blas_module
endif
