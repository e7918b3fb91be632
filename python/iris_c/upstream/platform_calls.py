# SPDX-License-Identifier: MIT
"""Replaces upstream's iris.host.platform.hip if there is no GPU.

Upstream's module loads a GPU's runtime when it is imported, and fails without
one. Calls that only ask about the device are answered here. Calls that handle a
GPU's memory exist, so that they can be imported, and raise an error with the
reason.
"""

import os
from typing import Any, Optional, Tuple

#: Upstream gives a product the highest power of two within this number of
#: compute units, and communication the rest, which must not be 0.
SIMULATED_CUS = 6

_device = 0


def count_devices() -> int:
    """Each rank has its own device."""
    return max(1, int(os.environ.get("WORLD_SIZE", "1")))


def set_device(gpu_id: int) -> None:
    global _device
    _device = gpu_id


def get_device_id() -> int:
    return _device


def get_cu_count(device_id: Optional[int] = None) -> int:
    """The same number as in the library's own simulation."""
    return int(os.environ.get("IRIS_SIM_CUS") or SIMULATED_CUS)


def get_num_xcc(device_id: Optional[int] = None) -> int:
    return 1


def get_rocm_version() -> Tuple[int, int]:
    """The answer of upstream without ROCm."""
    return (-1, -1)


def get_wall_clock_rate(device_id: int) -> int:
    """The frequency, in kHz, of the clock that kernels read (clocks.py)."""
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
