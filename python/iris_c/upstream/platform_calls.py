# SPDX-License-Identifier: MIT
"""Stands for upstream's iris.host.platform.hip where there is no GPU.

Upstream's module loads a GPU's runtime as it is imported and fails without
one. What only asks about the device is answered here; what handles a GPU's
memory exists, so that it can be imported, and says why it cannot be called.
"""

import os
from typing import Any, Optional, Tuple

#: Upstream's rule gives a product the highest power of two within these, and
#: communication the rest, which must not be none.
SIMULATED_CUS = 6

_device = 0


def count_devices() -> int:
    """Each rank has a device of its own."""
    return max(1, int(os.environ.get("WORLD_SIZE", "1")))


def set_device(gpu_id: int) -> None:
    global _device
    _device = gpu_id


def get_device_id() -> int:
    return _device


def get_cu_count(device_id: Optional[int] = None) -> int:
    """As many as the library's own simulation has."""
    return int(os.environ.get("IRIS_SIM_CUS") or SIMULATED_CUS)


def get_num_xcc(device_id: Optional[int] = None) -> int:
    return 1


def get_rocm_version() -> Tuple[int, int]:
    """What upstream says where there is no ROCm."""
    return (-1, -1)


def get_wall_clock_rate(device_id: int) -> int:
    """In kHz, of the clock that kernels read (clocks.py)."""
    return 100_000


def get_arch_string(device_id: Optional[int] = None) -> str:
    return "cpu"


class _Absent:
    """A call of HIP itself, by name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(
            f"{self._name} is a call of a GPU's runtime, and there is no GPU:"
            " iris_c.upstream runs this program on the CPU"
        )


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent(name)
