# SPDX-License-Identifier: MIT
"""Corrects a call of pynvml.

Its second argument must be the address of a struct. Upstream passes the struct
itself. ctypes then copies it onto the stack, and the driver takes its first
bytes as the address.
"""

import ctypes
import functools
from typing import Any


def apply(module: Any) -> None:
    original = module.nvmlDeviceGetGpuFabricInfoV

    @functools.wraps(original)
    def with_address(device: Any, info: Any) -> Any:
        if isinstance(info, ctypes.Structure):
            info = ctypes.byref(info)
        return original(device, info)

    module.nvmlDeviceGetGpuFabricInfoV = with_address
