# SPDX-License-Identifier: MIT
"""Atomics that Triton's interpreter lacks: addition of 16-bit floats, and
exchange of floats.

The interpreter's other atomics use the processor's, so they are atomic between
ranks. Its addition of float16 is atomic in one process only, and upstream's
all-reduce lost some additions with 4 ranks. These atomics use the others: an
exchange of floats exchanges their bits, and an addition repeats
compare-and-swap until no other rank has interfered.
"""

from typing import Any

import numpy as np

from .brain_floats import narrowed, widened


def apply(module: Any) -> None:
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    original = builder.create_atomic_rmw

    def create_atomic_rmw(
        self: Any, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any
    ) -> Any:
        import triton.language as tl

        kinds = interpreter._ir.ATOMIC_OP
        floats = np.issubdtype(val.data.dtype, np.floating)
        if op == kinds.XCHG and floats:
            return _exchange(self, interpreter, ptr, val, mask, sem)
        if op == kinds.FADD and val.dtype.scalar in (tl.bfloat16, tl.float16):
            return _add(self, interpreter, ptr, val, mask, sem)
        return original(self, op, ptr, val, mask, sem, scope)

    builder.create_atomic_rmw = create_atomic_rmw


def _exchange(self: Any, interpreter: Any, ptr: Any, val: Any, mask: Any,
              sem: Any) -> Any:
    bits = np.dtype(f"i{val.data.itemsize}")
    values = np.ascontiguousarray(val.data)
    old = interpreter._interpreter.atomic_rmw(
        interpreter._interpreter.RMW_OP.XCHG, ptr.data, values.view(bits),
        mask.data, self.ir_sem_to_interpreter_sem[sem])
    return interpreter.TensorHandle(old.view(val.data.dtype), val.dtype.scalar)


def _half_to_float(bits: Any) -> Any:
    return bits.view(np.float16).astype(np.float32)


def _float_to_half(values: Any) -> Any:
    return values.astype(np.float16).view(np.uint16)


def _add(self: Any, interpreter: Any, ptr: Any, val: Any, mask: Any,
         sem: Any) -> Any:
    calls = interpreter._interpreter
    order = self.ir_sem_to_interpreter_sem[sem]
    shape = np.broadcast_shapes(ptr.data.shape, val.data.shape)
    pointers = np.broadcast_to(ptr.data, shape).ravel()
    half = val.data.dtype == np.float16
    wide, narrow = (
        (_half_to_float, _float_to_half) if half else (widened, narrowed))
    bits = np.ascontiguousarray(val.data).view(np.uint16)
    values = wide(np.broadcast_to(bits, shape).ravel())
    pending = np.flatnonzero(np.broadcast_to(mask.data, shape).ravel())
    result = np.zeros(pointers.size, np.uint16)
    while pending.size:
        at = np.ascontiguousarray(pointers[pending])
        everyone = np.ones(at.size, bool)
        old = calls.load(at, everyone, np.zeros(at.size, np.uint16),
                         np.dtype(np.uint16))
        new = narrow(wide(old) + values[pending])
        found = calls.atomic_cas(at, old, new, order)
        done = found == old
        result[pending[done]] = old[done]
        pending = pending[~done]
    result = result.reshape(shape).view(val.data.dtype)
    return interpreter.TensorHandle(result, val.dtype.scalar)
