# SPDX-License-Identifier: MIT
#
# From low to high: a folder includes lower ones and itself only.
# libirisi has everything, with internal names visible: what tests link.
lib_LTLIBRARIES = libiris.la
noinst_LTLIBRARIES += libirisi.la libirismpi.la
libirisi_la_SOURCES =
# How loops of the library's kernels are optimised, whatever else is wanted; a
# build for a sanitizer wants no more than for all else.
kernel_speed = -O3
include %D%/base/local.mk
include %D%/backend/local.mk
include %D%/backend_sim/local.mk
include %D%/control/local.mk
include %D%/report/local.mk
include %D%/heap/local.mk
include %D%/check/local.mk
include %D%/queue/local.mk
include %D%/transport/local.mk
include %D%/context/local.mk
include %D%/tensor/local.mk
include %D%/ccl/local.mk
include %D%/trace/local.mk
include %D%/job/local.mk
libirisi_la_LIBADD = libirismpi.la $(ZLIB_LIBS) -lm
libirismpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
libirismpi_la_LIBADD = $(MPI_LIBS)
libiris_la_SOURCES =
libiris_la_LIBADD = libirisi.la
libiris_la_LDFLAGS = -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(top_srcdir)/%D%/libiris.map
EXTRA_libiris_la_DEPENDENCIES = %D%/libiris.map
EXTRA_DIST += %D%/libiris.map
# Loaded when it is asked for, so that the library does without the runtime.
pkglib_LTLIBRARIES =
if HAVE_HIP
pkglib_LTLIBRARIES += iris_hip.la
include %D%/backend_hip/local.mk
endif
include %D%/ops/local.mk
