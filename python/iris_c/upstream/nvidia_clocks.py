# SPDX-License-Identifier: MIT
"""The clock and the position on the chip that upstream's tracing records, by
instructions of NVIDIA's GPUs. The clock has AMD's frequency, 100 MHz."""

from typing import Any

import triton
import triton.language as tl


@triton.jit
def read_realtime():
    ticks = tl.inline_asm_elementwise(
        asm="mov.u64 $0, %globaltimer;", constraints="=l", args=[],
        dtype=tl.int64, is_pure=False, pack=1)
    return ticks // 10


@triton.jit
def get_cu_id():
    return tl.inline_asm_elementwise(
        asm="mov.u32 $0, %smid;", constraints="=r", args=[],
        dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def get_xcc_id():
    return tl.cast(0, tl.int32)


def apply(module: Any) -> None:
    module.read_realtime = read_realtime
    module.get_cu_id = get_cu_id
    module.get_xcc_id = get_xcc_id
