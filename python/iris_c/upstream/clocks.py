# SPDX-License-Identifier: MIT
"""The clock and the position on the chip that upstream's tracing records.

Upstream reads them by instructions of AMD's GPUs, which the interpreter cannot
run. The clock has the same frequency, 100 MHz.
"""

import time
from typing import Any

import triton.language as tl


def _read_realtime() -> Any:
    from triton.runtime import interpreter

    ticks = time.monotonic_ns() // 10
    handle = interpreter.interpreter_builder.get_int64(ticks)
    return tl.tensor(handle, tl.int64)


def _zero() -> Any:
    """The position on a GPU with one chiplet and one compute unit."""
    from triton.runtime import interpreter

    handle = interpreter.interpreter_builder.get_int32(0)
    return tl.tensor(handle, tl.int32)


def apply(module: Any) -> None:
    module.read_realtime = _read_realtime
    module.get_cu_id = _zero
    module.get_xcc_id = _zero
