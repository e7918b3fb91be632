# SPDX-License-Identifier: MIT
"""The clock of the library's traces and the number of the compute unit, for
Triton's kernels."""

from typing import Any, Tuple

import triton
import triton.language as tl


def _interpreted() -> Tuple[Any, Any]:
    import time

    from triton.runtime import interpreter

    def now() -> Any:
        ticks = time.monotonic_ns()
        handle = interpreter.interpreter_builder.get_int64(ticks)
        return tl.tensor(handle, tl.int64)

    def place() -> Any:
        handle = interpreter.interpreter_builder.get_int32(0)
        return tl.tensor(handle, tl.int32)

    return now, place


@triton.jit
def _now_nvidia():
    return tl.inline_asm_elementwise(
        asm="mov.u64 $0, %globaltimer;", constraints="=l", args=[],
        dtype=tl.int64, is_pure=False, pack=1)


@triton.jit
def _place_nvidia():
    return tl.inline_asm_elementwise(
        asm="mov.u32 $0, %smid;", constraints="=r", args=[],
        dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def _now_amd():
    return tl.inline_asm_elementwise(
        asm="s_memrealtime $0\ns_waitcnt lgkmcnt(0)", constraints="=s",
        args=[], dtype=tl.int64, is_pure=False, pack=1)


@triton.jit
def _place_amd():
    return tl.cast(0, tl.int32)


def functions() -> Tuple[Any, Any]:
    """The functions that read the clock and the compute unit on the current device."""
    if triton.knobs.runtime.interpret:
        return _interpreted()
    try:
        target = triton.runtime.driver.active.get_current_target()
        amd = target.backend == "hip"
    except RuntimeError:
        amd = False  # no GPU: nothing will be compiled
    return (_now_amd, _place_amd) if amd else (_now_nvidia, _place_nvidia)
