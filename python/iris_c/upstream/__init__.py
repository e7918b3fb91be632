# SPDX-License-Identifier: MIT
"""Runs programs written for ROCm's Iris, unchanged, on this library.

    python -m iris_c.upstream -n 4 program.py
    python -m iris_c.upstream -n 2 pytest tests/unittests

Upstream's Python package is the user's: installed, or a checkout named by
--upstream or IRIS_UPSTREAM. Nothing of it is in this project. What changes is
what lies under it: its symmetric heap is ours, and without a GPU so are the
calls of a GPU's runtime, and Triton interprets kernels on the CPU.

Each module here supplies one thing and says why it is needed. All of them wait
for the import of what they change (imports.py), so that a program pays for
nothing that it does not use. docs/upstream.md is the manual.
"""

import os

#: The environment variable for ranks and the processes that they start: "cpu",
#: "amd" or "nvidia".
DEVICE_VARIABLE = "IRIS_C_UPSTREAM_DEVICE"

#: The environment variable with the modules that this package replaces, with
#: commas between them: tritonBLAS, or origami, which it imports.
STAND_IN_VARIABLE = "IRIS_C_UPSTREAM_STAND_IN"

#: The versions of Triton that this package is tested with. It changes Triton's
#: interpreter from outside, so other versions may need other changes.
TRITON_VERSIONS = ("3.9.0",)


def device() -> str:
    """The kind of device: "gpu" if upstream's own calls of the GPU's runtime
    are used, else "cpu"."""
    kind = os.environ.get(DEVICE_VARIABLE, "")
    return "gpu" if kind in ("amd", "nvidia") else kind


def is_nvidia() -> bool:
    """Whether kernels are compiled for NVIDIA's GPUs."""
    return os.environ.get(DEVICE_VARIABLE) == "nvidia"
