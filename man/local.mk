# SPDX-License-Identifier: MIT
dist_man_MANS = %D%/iris-bench.1 %D%/iris-check.1 %D%/iris-info.1 %D%/iris-probe.1 \
	%D%/iris-replay.1 %D%/iris-run.1 %D%/iris-sim.1 %D%/iris-top.1 %D%/iris-trace.1 \
	%D%/iris.1 %D%/iris.7 %D%/iriscc.1
# A page for each public call, made from its comment in the headers by Python; an archive
# has these pages for systems without it.
all-local: %D%/man3.stamp
%D%/man3.stamp: scripts/reference $(irisinclude_HEADERS) $(nobase_irisinclude_HEADERS) \
    $(call_examples)
	$(AM_V_GEN)if command -v python3 >/dev/null; then $(srcdir)/scripts/reference man %D%/man3; \
	else $(MKDIR_P) %D%/man3 && cp $(srcdir)/%D%/made/*.3 %D%/man3 || \
	  echo "no python3: the manual pages of calls are left out"; fi && touch $@
dist-hook: %D%/man3.stamp
	$(MKDIR_P) $(distdir)/%D%/made && cp %D%/man3/*.3 $(distdir)/%D%/made
install-data-local: %D%/man3.stamp
	$(MKDIR_P) "$(DESTDIR)$(mandir)/man3"
	! test -e %D%/man3/iris_init.3 || \
	  $(INSTALL_DATA) %D%/man3/*.3 "$(DESTDIR)$(mandir)/man3"
uninstall-local: %D%/man3.stamp
	for page in %D%/man3/*.3; do \
	  rm -f "$(DESTDIR)$(mandir)/man3/$${page##*/}"; done
clean-local: clean-man3
clean-man3:
	rm -rf %D%/man3 %D%/man3.stamp
