# SPDX-License-Identifier: MIT
#
# Each folder is one CMocka program, tests/FOLDER/run, whose files its fragment lists.
test_programs =
include %D%/base/local.mk
include %D%/backend/local.mk
include %D%/control/local.mk
include %D%/heap/local.mk
include %D%/check/local.mk
include %D%/queue/local.mk
include %D%/context/local.mk
include %D%/transport/local.mk
include %D%/ccl/local.mk
include %D%/ops/local.mk
include %D%/device/local.mk
include %D%/tensor/local.mk
include %D%/trace/local.mk
include %D%/report/local.mk
include %D%/fuzz/local.mk
if FAKE_HIP
include %D%/backend_hip/local.mk
endif

# No test may hang the suite; a wrapper (valgrind) goes around the programs.
TEST_TIMEOUT = 900
TEST_WRAPPER =
TEST_EXTENSIONS = .sh .c
SH_LOG_COMPILER = timeout -k 10 $(TEST_TIMEOUT) bash
C_LOG_COMPILER = tests/run
C_LOG_DRIVER = AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh --ignore-exit
# Over the fake HIP runtime, tests run on the CPU unless they or TEST_BACKEND= say otherwise.
TEST_BACKEND =
if FAKE_HIP
TEST_BACKEND += IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu
endif
AM_TESTS_ENVIRONMENT = export IRIS_MODULE_DIR='$(abs_builddir)/.libs' \
	CC='$(CC)' CFLAGS='$(CFLAGS)' NM='$(NM)' MAKE='$(MAKE)' \
	MPIRUN='$(MPIRUN)' PKG_CONFIG='$(PKG_CONFIG)' \
	TEST_WRAPPER='$(TEST_WRAPPER)' IRIS_TEST_TIMEOUT='$(TEST_TIMEOUT)' $(TEST_BACKEND) \
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
	OMPI_MCA_rmaps_base_oversubscribe=1;
TESTS =
EXTRA_DIST += $(shell_tests)
if HAVE_CMOCKA
TESTS += $(test_files)
check_PROGRAMS = $(test_programs) tests/check/explorer
check_SCRIPTS = tests/run
include %D%/support/local.mk
else
check-local:
	@echo "make check: the unit tests need CMocka;" \
		"install libcmocka-dev" >&2; exit 1
endif
tests/run: %D%/support/run
	$(AM_V_GEN)sed 's|TESTS_FOLDER|$(abs_top_srcdir)/tests|' $(srcdir)/%D%/support/run >$@ && chmod +x $@
# Tests see internal names, so they link the convenience library instead.
$(test_programs): tests/libharness.la libirisi.la
$(test_objects): CPPFLAGS += -I$(top_srcdir)/tests $(CMOCKA_CFLAGS)
$(test_objects): override CFLAGS += -Wno-unused-parameter
$(test_programs): LDADD = tests/libharness.la libirisi.la $(CMOCKA_LIBS) -lm
if FAKE_HIP
hip_programs = %D%/backend_hip/run %D%/ops/run
$(hip_programs): LDADD += libfakehip.la
endif
EXTRA_DIST += %D%/amd %D%/check_layers.awk %D%/check_lists.awk %D%/check_locks.h %D%/check_structure.awk %D%/cmake/CMakeLists.txt %D%/cmake/helper.c \
	%D%/cpp/test_cpp.cpp %D%/declared.awk %D%/emu %D%/fake_rccl.c %D%/install_consumer.c %D%/leaks.supp %D%/prose.awk %D%/python/compile_triton.py \
	%D%/python/measured.py %D%/python/support.py %D%/python/test_bench.py %D%/python/test_ccl.py %D%/python/test_context.py %D%/python/test_end.py %D%/python/test_gpu.py %D%/python/test_interrupt.py \
	%D%/python/test_library.py %D%/python/test_lifetime.py %D%/python/test_ops.py %D%/python/test_process_group.py %D%/python/test_representations.py \
	%D%/python/test_spawn.py %D%/python/test_tensors.py %D%/python/test_torch_backend.py %D%/python/test_torch_programs.py \
	%D%/python/torch_calls.py %D%/python/torch_symm_mem.py %D%/python/torch_training.py %D%/python/test_transfer.py %D%/python/test_triton.py \
	%D%/python/triton_kernel.py %D%/strangers.py %D%/trace/check.py %D%/trace/collectives.c %D%/trace/ending.c %D%/trace/fake_ranges.c %D%/trace/fused.c %D%/trace/moves.c %D%/trace/pairs.py %D%/trace/ranges.c %D%/trace/report.py %D%/trace/reused.c %D%/trace/traced.h
include %D%/python/upstream/local.mk
prose:
	$(MAKE) check TESTS="$$(cd $(srcdir) && grep -l '^# inputs:.* prose' $(shell_tests) | tr '\n' ' ')"
print-tests: ; @echo $(TESTS)
print-rank-tests: kinds = rank|matrix
print-matrix-tests: kinds = matrix
print-rank-tests print-matrix-tests:
	@cd $(srcdir) && grep -lE '^(static int TEST_FILE\(|TEST_GROUP\(|TEST_GROUP_WITH\(\w+, \w+, )($(kinds))\b' $(test_files) | sed 's/\.c$$//'
.PHONY: prose print-matrix-tests print-rank-tests print-tests
