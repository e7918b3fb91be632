# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/create.c %D%/dlpack.c %D%/internal.h %D%/kernels.h \
	%D%/layout.c %D%/random.c %D%/random_kernels.c %D%/tensor_kernels.c \
	%D%/value.c
# Loops are to be vectorised, and in the first a product is to be rounded before
# it is added to (iris_d_product_f32() in device/core/compat.h), whatever else is
# wanted.
%D%/tensor_kernels.lo: override CFLAGS += $(kernel_speed) -ffp-contract=off
%D%/random_kernels.lo: override CFLAGS += $(kernel_speed)
