# SPDX-License-Identifier: MIT
#
# Programs for libFuzzer, made one by one on demand: configure with CC=clang and
# -fsanitize=fuzzer-no-link in CFLAGS (scripts/test --phase fuzz).
fuzz_programs = %D%/fuzz_alloc %D%/fuzz_rendezvous %D%/fuzz_settings
EXTRA_PROGRAMS = $(fuzz_programs)
$(fuzz_programs): libirisi.la
$(fuzz_programs): CPPFLAGS += -I$(top_srcdir)/tests
$(fuzz_programs): LDADD = libirisi.la
$(fuzz_programs): LDFLAGS += -fsanitize=fuzzer
EXTRA_DIST += %D%/fuzz.h %D%/fuzz_iriscc.awk %D%/fuzz_iriscc.sh
print-fuzz-programs: ; @echo $(fuzz_programs)
.PHONY: print-fuzz-programs
