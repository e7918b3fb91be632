# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/api.c %D%/ccl.h %D%/ccl_kernels.c %D%/check.c \
	%D%/choose.c %D%/far_kernels.c %D%/internal.h %D%/kernels.h %D%/launch.c %D%/workspace.c
# The table of choices, from what iris bench --tune wrote, as C.
EXTRA_DIST += %D%/choices
CLEANFILES += %D%/choices.inc
%D%/choose.lo: %D%/choices.inc
%D%/choices.inc: %D%/choices
	$(AM_V_GEN)$(MKDIR_P) %D% && awk '{ sub(/#.*/, "") } \
	NF == 6 { if ($$5 == "auto" || $$6 !~ /^[0-9]+$$/) exit 1; sub(/^=/, "-", $$3); \
		printf "{IRIS_CCL_%s, %d, %s, %s, IRIS_CCL_%s, %s},\n", toupper($$1), \
		$$2 == "gpu", $$3 == "any" ? "ANY_MEMBERS" : $$3, \
		$$4 == "any" ? "ANY_BYTES" : $$4, toupper($$5), $$6 }' \
	$(srcdir)/%D%/choices >$@.part && mv $@.part $@
