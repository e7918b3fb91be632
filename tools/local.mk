# SPDX-License-Identifier: MIT
bin_PROGRAMS += iris
iris_LDADD = bench/libpeermpi.la libirisi.la
iris_SOURCES = %D%/check.c %D%/command.c %D%/info.c %D%/iris.c %D%/iris.h %D%/probe.c \
	%D%/probe_begin.c %D%/probe_kernels.h %D%/replay.c %D%/replay.h %D%/replay_table.c %D%/run.c \
	%D%/sim.c %D%/sim.h %D%/sim_collective.c %D%/sim_fit.c %D%/sim_messages.c \
	%D%/sim_run.c %D%/sim_schedule.c %D%/top.c \
	%D%/trace.c %D%/trace.h %D%/trace_barriers.c %D%/trace_order.c %D%/trace_places.c %D%/trace_report.c
# Their kernels are compiled by iriscc.
tool_kernels = %D%/probe
EXTRA_DIST += %D%/probe-all.sh %D%/trace_page.html
%D%/trace_report.$(OBJEXT): %D%/trace_page.inc
%D%/trace_page.inc: %D%/trace_page.html
	$(AM_V_GEN)$(MKDIR_P) %D% && sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $(srcdir)/%D%/trace_page.html >$@
# The program finds the script beside itself in a build.
%D%/probe_begin.$(OBJEXT): CPPFLAGS += -DIRIS_DATA_DIR='"$(pkgdatadir)"'
pkgdata_SCRIPTS = %D%/probe-all
%D%/probe-all: %D%/probe-all.sh
	$(AM_V_GEN)$(MKDIR_P) %D% && cp -f $(srcdir)/%D%/probe-all.sh $@ && chmod +x $@
CLEANFILES += %D%/probe-all %D%/trace_page.inc
platformsdir = $(pkgdatadir)/platforms
dist_platforms_DATA = %D%/platforms/cpu-2.json %D%/platforms/h100-2.json \
	%D%/platforms/h200-1.json \
	%D%/platforms/h200-4.json %D%/platforms/mi300x-8.json
completionsdir = $(datadir)/bash-completion/completions
dist_completions_DATA = %D%/completion/iris
