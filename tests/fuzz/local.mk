# SPDX-License-Identifier: MIT
#
# Programs for libFuzzer, made one by one on demand: configure with CC=clang and
# -fsanitize=fuzzer-no-link in CFLAGS (scripts/test --phase fuzz). test_structs
# runs the cases of fuzz_structs in the suite.
fuzz_programs = %D%/fuzz_alloc %D%/fuzz_control %D%/fuzz_rendezvous %D%/fuzz_settings \
	%D%/fuzz_structs
EXTRA_PROGRAMS += $(fuzz_programs)
$(fuzz_programs): libirisi.la
$(fuzz_programs): CPPFLAGS += -I$(top_srcdir)/tests
$(fuzz_programs): LDADD = libirisi.la
$(fuzz_programs): LDFLAGS += -fsanitize=fuzzer
fuzz_structs = %D%/structs.c %D%/structs.h %D%/structs_calls.c \
	%D%/structs_ops.c %D%/structs_tensor.c
tests_fuzz_fuzz_structs_SOURCES = %D%/fuzz_structs.c $(fuzz_structs)
test_programs += %D%/run
tests_fuzz_run_SOURCES = %D%/test_structs.c $(fuzz_structs)
EXTRA_DIST += %D%/fuzz.h %D%/fuzz.sh %D%/fuzz_iriscc.awk %D%/fuzz_iriscc.sh
print-fuzz-programs: ; @echo $(fuzz_programs)
.PHONY: print-fuzz-programs
