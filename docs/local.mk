# SPDX-License-Identifier: MIT
#
# Installed as they lie here, so that the README's links lead somewhere.
dist_doc_DATA = CITATION.cff CONTRIBUTING.md LICENSE NEWS.md README.md SECURITY.md
docsdir = $(docdir)/docs
dist_docs_DATA = %D%/amd.md %D%/api.md %D%/architecture.md %D%/architecture.svg \
	%D%/backends.md %D%/badges.svg %D%/checking.md %D%/collectives.md %D%/cpp.md %D%/errors.md \
	%D%/from-iris.md %D%/from-nvshmem.md %D%/fused.md \
	%D%/hangs.md %D%/idea.svg %D%/install.md \
	%D%/kernels.md %D%/known-limits.md %D%/scale-out.md %D%/memory-model.md %D%/overlap.svg %D%/two-gpus.svg \
	%D%/performance.md %D%/python.md %D%/questions.md %D%/race.svg %D%/running.md %D%/tensors.md %D%/timing.md %D%/tracing.md \
	%D%/upstream.md
guidedir = $(docsdir)/guide
dist_guide_DATA = %D%/guide/01-first-program.md %D%/guide/02-kernels.md \
	%D%/guide/03-memory-order.md %D%/guide/04-signals.md \
	%D%/guide/05-collectives.md %D%/guide/06-fused.md \
	%D%/guide/07-tracing-and-hangs.md %D%/guide/08-more-devices.md \
	%D%/guide/09-python.md %D%/guide/10-from-others.md \
	%D%/guide/11-losses.md %D%/guide/collectives.svg \
	%D%/guide/devices.svg %D%/guide/first.svg %D%/guide/index.md \
	%D%/guide/kernels.svg %D%/guide/order.svg %D%/guide/rows.svg \
	%D%/guide/signals.svg %D%/guide/translate.svg
labdir = $(docsdir)/lab
dist_lab_DATA = %D%/lab/amd-checks.md %D%/lab/internals.md %D%/lab/litmus.md \
	%D%/lab/performance.md %D%/lab/timing.md %D%/lab/upstream.md
picturesdir = $(docsdir)/pictures
dist_pictures_DATA = %D%/pictures/guide.png %D%/pictures/reference.png \
	%D%/pictures/report.png %D%/pictures/top.png
# For `make html`, which makes html/index.html.
EXTRA_DIST += %D%/conf.py %D%/html.css %D%/scorer.js %D%/site.js
html-local:
	$(srcdir)/scripts/html html
clean-local: clean-html
clean-html:
	rm -rf html
