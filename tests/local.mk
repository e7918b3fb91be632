# SPDX-License-Identifier: MIT
#
# CMocka programs, listed in the folders' fragments. All run with rank threads;
# matrix_tests with 1, 2, 4 and 8 ranks of every launcher, too, and rank_tests
# with some (launchers.sh). hip_tests need the fake HIP runtime.
unit_tests =
matrix_tests =
rank_tests =
hip_tests =
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
cmocka_tests = $(unit_tests) $(matrix_tests) $(rank_tests) $(hip_tests)
shell_tests = %D%/amd_code.sh %D%/amd_emu.sh %D%/amd_host.sh %D%/amd_mutants.sh \
	%D%/amd_node.sh %D%/bench.sh %D%/bench_ccl.sh %D%/check/examples.sh %D%/check/explore.sh %D%/check/herd.sh %D%/check/plain.sh %D%/check/replay.sh %D%/check_locks.sh \
	%D%/check_locks_faults.sh %D%/check_modules.sh %D%/check_modules_faults.sh \
	%D%/check_structure.sh %D%/check_structure_faults.sh %D%/check_symbols.sh %D%/configure.sh %D%/cpp.sh %D%/device_compile.sh %D%/dlpack.sh %D%/docs.sh %D%/faults/hosts.sh \
	%D%/examples.sh %D%/fuzz/structs.sh %D%/gpu_sources.sh %D%/guide.sh %D%/hip.sh %D%/html.sh %D%/info.sh \
	%D%/install.sh %D%/iriscc.sh %D%/launchers.sh %D%/man.sh %D%/probe.sh %D%/prose.sh %D%/python.sh \
	%D%/readme.sh %D%/report.sh %D%/rounding.sh %D%/samples.sh %D%/schedules.sh %D%/security.sh %D%/sim.sh %D%/sim_cluster.sh %D%/strangers.sh %D%/tools.sh %D%/trace.sh %D%/size.sh %D%/transport/faults.sh %D%/transport/hosts.sh %D%/upstream.sh

# No test may hang the suite; a wrapper (valgrind) goes around the programs.
TEST_TIMEOUT = 900
TEST_WRAPPER =
TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = timeout -k 10 $(TEST_TIMEOUT) bash
LOG_COMPILER = timeout -k 10 $(TEST_TIMEOUT) $(TEST_WRAPPER)
AM_TESTS_ENVIRONMENT = export IRIS_MODULE_DIR='$(abs_builddir)/.libs' \
	CC='$(CC)' CFLAGS='$(CFLAGS)' NM='$(NM)' MAKE='$(MAKE)' \
	MPIRUN='$(MPIRUN)' PKG_CONFIG='$(PKG_CONFIG)' \
	TEST_WRAPPER='$(TEST_WRAPPER)' $(launched_tests) \
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
	OMPI_MCA_rmaps_base_oversubscribe=1;
TESTS = $(shell_tests)
dist_check_SCRIPTS = $(shell_tests)
if HAVE_CMOCKA
TESTS += $(cmocka_tests)
launched_tests = RANK_TESTS='$(rank_tests)' MATRIX_TESTS='$(matrix_tests)'
check_PROGRAMS = $(cmocka_tests) tests/check/explorer
include %D%/support/local.mk
else
check-local:
	@echo "make check: the unit tests need CMocka;" \
		"install libcmocka-dev" >&2; exit 1
endif
# Tests see internal names, so they link the convenience library instead.
$(cmocka_tests): tests/libharness.la libirisi.la
$(cmocka_tests): CPPFLAGS += -I$(top_srcdir)/tests $(CMOCKA_CFLAGS)
$(cmocka_tests): LDADD = tests/libharness.la libirisi.la $(CMOCKA_LIBS) -lm
$(hip_tests): LDADD += libfakehip.la
EXTRA_DIST += %D%/amd %D%/cmake/CMakeLists.txt %D%/cmake/helper.c %D%/cpp/test_cpp.cpp %D%/fake_rccl.c %D%/check_layers.awk \
	%D%/check_lists.awk %D%/check_locks.awk %D%/prose.awk %D%/strangers.py %D%/check_structure.awk %D%/trace/check.py %D%/trace/collectives.c %D%/trace/ending.c %D%/trace/fused.c %D%/trace/moves.c %D%/trace/pairs.py %D%/trace/report.py %D%/trace/reused.c %D%/trace/traced.h %D%/declared.awk \
	%D%/emu %D%/install_consumer.c %D%/leaks.supp  \
	%D%/python/support.py %D%/python/test_ccl.py %D%/python/test_context.py \
	%D%/python/test_end.py %D%/python/test_gpu.py \
	%D%/python/test_interrupt.py %D%/python/test_library.py %D%/python/test_ops.py %D%/python/test_transfer.py %D%/python/compile_triton.py %D%/python/test_lifetime.py \
	%D%/python/test_process_group.py %D%/python/test_representations.py %D%/python/test_spawn.py \
	%D%/python/test_tensors.py %D%/python/test_torch_backend.py %D%/python/test_triton.py %D%/python/triton_kernel.py
include %D%/python/upstream/local.mk
print-tests: ; @echo $(TESTS)
print-matrix-tests: ; @echo $(matrix_tests)
print-rank-tests: ; @echo $(matrix_tests) $(rank_tests)
print-cmocka-tests: ; @echo $(cmocka_tests)
.PHONY: print-cmocka-tests print-matrix-tests print-rank-tests print-tests
