# SPDX-License-Identifier: MIT
bin_PROGRAMS += iris
iris_LDADD = bench/libpeermpi.la libirisi.la
iris_SOURCES = %D%/command.c %D%/info.h %D%/info_gather.c %D%/info_json.c %D%/info_text.c \
	%D%/iris-info.c %D%/iris-probe.c %D%/iris-sim.c \
	%D%/iris-top.c %D%/iris.c %D%/iris.h %D%/probe.h \
	%D%/probe_checks.c %D%/probe_kernels.h %D%/probe_library.c \
	%D%/replay.c %D%/replay.h %D%/replay_table.c %D%/run.c \
	%D%/sim_collective.c %D%/sim_collective.h \
	%D%/sim_curve.c %D%/sim_curve.h %D%/sim_engine.c %D%/sim_engine.h \
	%D%/sim_fit.c %D%/sim_lower.c %D%/sim_lower.h %D%/sim_network.h %D%/sim_parts.h %D%/sim_platform.c %D%/sim_platform.h \
	%D%/sim_run.c %D%/sim_scale.c %D%/sim_schedule.c %D%/sim_schedule.h \
	%D%/sim_trace.c %D%/sim_trace.h %D%/top.h \
	%D%/top_jobs.c %D%/top_live.c %D%/trace.c %D%/trace.h %D%/trace_calls.c %D%/trace_calls.h \
	%D%/trace_items.c %D%/trace_items.h \
	%D%/trace_messages.c %D%/trace_messages.h \
	%D%/trace_places.c \
	%D%/trace_report.c %D%/trace_scale.c %D%/trace_scale.h \
	%D%/trace_streams.c %D%/trace_streams.h
# Their kernels are compiled by iriscc.
tool_kernels = %D%/iris-probe %D%/probe_checks %D%/probe_library
EXTRA_DIST += %D%/probe.awk %D%/trace_page.html
%D%/trace_report.$(OBJEXT): %D%/trace_page.inc
%D%/trace_page.inc: %D%/trace_page.html
	$(AM_V_GEN)$(MKDIR_P) %D% && sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $(srcdir)/%D%/trace_page.html >$@
CLEANFILES += %D%/trace_page.inc
# SimGrid's interface is C++: a library of its own, so that all else links as C.
if HAVE_SIMGRID
noinst_LTLIBRARIES += libsimnet.la
libsimnet_la_SOURCES = %D%/sim_network.cpp
libsimnet_la_CPPFLAGS = $(AM_CPPFLAGS) $(SIMGRID_CPPFLAGS)
iris_LDADD += libsimnet.la $(SIMGRID_LIBS)
else
iris_SOURCES += %D%/sim_no_network.c
endif
EXTRA_DIST += %D%/sim_network.cpp %D%/sim_no_network.c
platformsdir = $(pkgdatadir)/platforms
dist_platforms_DATA = %D%/platforms/cpu-2.json %D%/platforms/h100-2.json \
	%D%/platforms/h200-1.json \
	%D%/platforms/h200-4.json %D%/platforms/mi300x-8.json
completionsdir = $(datadir)/bash-completion/completions
dist_completions_DATA = %D%/completion/iris
