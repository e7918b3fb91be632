# SPDX-License-Identifier: MIT
"""A call of pynvml's whose second argument the caller makes.

It wants the address of a struct; upstream passes the struct, which ctypes then
copies onto the stack, and the driver reads its first bytes as the address.
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
