# SPDX-License-Identifier: MIT
examples = %D%/00_load %D%/01_store %D%/02_all_load %D%/03_all_store \
	%D%/04_atomic_add %D%/05_atomic_xchg \
	%D%/06_message_passing_load_store %D%/07_message_passing_put \
	%D%/08_one_shot_all_reduce
# Examples use what is public.
noinst_PROGRAMS = $(examples)
noinst_LTLIBRARIES += examples/libexample.la
examples_libexample_la_SOURCES = %D%/example.c %D%/example.h \
	%D%/example_table.c
