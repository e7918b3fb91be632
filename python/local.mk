# SPDX-License-Identifier: MIT
#
# The Python package is not installed by make install: `make wheel` makes what
# pip installs. scripts/python-wheel does both at once, without MPI.
EXTRA_DIST += %D%/README.md %D%/pyproject.toml %D%/setup.py \
	%D%/examples/rows.py %D%/examples/triton_kernels.py %D%/iris_c/__init__.py %D%/iris_c/__main__.py \
	%D%/iris_c/_arrays.py %D%/iris_c/_bootstrap.py %D%/iris_c/_broadcast.py \
	%D%/iris_c/bench.py %D%/iris_c/_ccl.py %D%/iris_c/ccl.py %D%/iris_c/_context.py %D%/iris_c/_errors.py %D%/iris_c/_groups.py %D%/iris_c/_messages.py \
	%D%/iris_c/_interrupt.py %D%/iris_c/_kernels.py %D%/iris_c/_lib.py %D%/iris_c/_log.py %D%/iris_c/_ops.py %D%/iris_c/ops.py %D%/iris_c/_plans.py \
	%D%/iris_c/_prototypes.py %D%/iris_c/_random.py %D%/iris_c/_session.py %D%/iris_c/_spawn.py \
	%D%/iris_c/_streams.py %D%/iris_c/_structs.py %D%/iris_c/symm_mem.py %D%/iris_c/_tensors.py %D%/iris_c/_clock.py %D%/iris_c/_trace.py %D%/iris_c/_transfer.py \
	%D%/iris_c/_values.py %D%/iris_c/torch_backend.py %D%/iris_c/_torch_messages.py %D%/iris_c/py.typed
# What runs upstream's programs, and Triton's device calls.
EXTRA_DIST += \
	%D%/iris_c/triton.py %D%/iris_c/upstream/__init__.py \
	%D%/iris_c/upstream/__main__.py %D%/iris_c/upstream/aggregates.py %D%/iris_c/upstream/alone.py \
	%D%/iris_c/upstream/atomics.py %D%/iris_c/upstream/brain_floats.py \
	%D%/iris_c/upstream/clocks.py %D%/iris_c/upstream/creation.py \
	%D%/iris_c/upstream/cuda.py %D%/iris_c/upstream/gluon.py \
	%D%/iris_c/upstream/graphs.py %D%/iris_c/upstream/heap.py \
	%D%/iris_c/upstream/imports.py %D%/iris_c/upstream/launch.py %D%/iris_c/upstream/libdevice.py \
	%D%/iris_c/upstream/lockstep.py %D%/iris_c/upstream/nvidia.py \
	%D%/iris_c/upstream/nvidia_clocks.py \
	%D%/iris_c/upstream/nvidia_layouts.py %D%/iris_c/upstream/nvml.py %D%/iris_c/upstream/origami.py \
	%D%/iris_c/upstream/platform_calls.py \
	%D%/iris_c/upstream/polls.py %D%/iris_c/upstream/process_groups.py \
	%D%/iris_c/upstream/rank.py %D%/iris_c/upstream/results.py \
	%D%/iris_c/upstream/sharing.py %D%/iris_c/upstream/tritonblas.py \
	%D%/iris_c/upstream/site/sitecustomize.py
wheel_folder = .
libraries: $(lib_LTLIBRARIES) $(pkglib_LTLIBRARIES)
wheel: libraries
	$(srcdir)/scripts/python-wheel -o $(wheel_folder) --from .
.PHONY: libraries wheel
