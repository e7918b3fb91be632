# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/check.c %D%/kernels.c %D%/kernels.h \
	%D%/operations.c %D%/ops.h %D%/product.c %D%/workspace.c
# A product is to be rounded before it is added to, on every target.
%D%/kernels.lo: override CFLAGS += -O3 -ffp-contract=off
