# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/arange.c %D%/create.c %D%/fill.c \
	%D%/format.c %D%/kernels.c \
	%D%/kernels.h %D%/layout.c %D%/linspace.c %D%/remote.c %D%/tensor.h \
	%D%/value.c %D%/view.c
# Its loops are to be vectorised, and a product is to be rounded before it is
# added to (iris_d_product_f32() in device/compat.h), whatever else is wanted.
%D%/kernels.lo: override CFLAGS += -O3 -ffp-contract=off
libirisi_la_SOURCES += %D%/broadcast.c %D%/dlpack.c %D%/dlpack_abi.h \
	%D%/random.c \
	%D%/random_kernels.c %D%/random_kernels.h
# The loops are to be vectorised here, too.
%D%/random_kernels.lo: override CFLAGS += -O3
