# SPDX-License-Identifier: MIT
examples = %D%/00_load %D%/01_store %D%/02_all_load %D%/03_all_store \
	%D%/04_atomic_add %D%/05_atomic_xchg \
	%D%/06_message_passing_load_store %D%/07_message_passing_put \
	%D%/08_one_shot_all_reduce %D%/09_all_reduce \
	%D%/10_product_all_scatter %D%/11_product_atomics \
	%D%/12_product_all_reduce %D%/13_producer_consumer \
	%D%/14_flash_decode
# Examples use what is public. Their sources are installed with a Makefile.
examplesdir = $(docdir)/examples
examples_DATA = $(examples:=.c) $(examples_libexample_la_SOURCES)
# C++, which tests/cpp.sh builds: not every system has a compiler for it.
dist_examples_DATA = %D%/15_cpp.cpp %D%/Makefile
# Programs that manual pages quote; tests/samples.sh builds and runs them.
call_examples = %D%/calls/calls.h %D%/calls/collectives.c %D%/calls/context.c \
	%D%/calls/kernels.c %D%/calls/memory.c %D%/calls/streams.c
callsdir = $(examplesdir)/calls
dist_calls_DATA = $(call_examples)
EXTRA_DIST += %D%/python/all_reduce.py %D%/python/gradients.py \
	%D%/python/message_passing.py \
	%D%/python/producer_consumer.py
noinst_PROGRAMS += $(examples)
noinst_LTLIBRARIES += examples/libexample.la
examples_libexample_la_SOURCES = %D%/example.c %D%/example.h \
	%D%/example_matrix.c %D%/example_table.c
