# SPDX-License-Identifier: MIT
"""Arithmetic of bfloat16 in Triton's interpreter.

NumPy has no bfloat16, so the interpreter keeps the bits in uint16. An addition
of two numbers adds the bits, an integer becomes the bits of its value, and
float32 is truncated instead of rounded. A GPU computes in float32 and rounds to
the nearest even number. This module does the same.
"""

from typing import Any

import numpy as np


def widened(bits: Any) -> Any:
    """The float32 with the same value."""
    words = np.asarray(bits).astype(np.uint32) << np.uint32(16)
    return words.view(np.float32)


def narrowed(values: Any) -> Any:
    """The bits of the nearest bfloat16, ties to even."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    words = values.view(np.uint32)
    odd = (words >> np.uint32(16)) & np.uint32(1)
    rounded = (words + np.uint32(0x7FFF) + odd) >> np.uint32(16)
    # Addition could carry a NaN's payload into the sign. Keep a quiet NaN.
    quiet = (words >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)


def apply(module: Any) -> None:
    from triton.runtime import interpreter

    _patch_arithmetic(interpreter)
    _patch_casts(interpreter)
    _patch_dot(interpreter)


def _is(handle: Any) -> bool:
    import triton.language as tl

    return bool(handle.dtype.scalar == tl.bfloat16)


def _wrapped(interpreter: Any, output: Any) -> Any:
    """The handle of a result. Comparisons give truth values."""
    import triton.language as tl

    if output.dtype == np.bool_:
        return interpreter.TensorHandle(output, tl.int1)
    return interpreter.TensorHandle(narrowed(output), tl.bfloat16)


def _patch_arithmetic(interpreter: Any) -> None:
    builder = interpreter.InterpreterBuilder

    def wide(name: str, operands: int, last_decides: bool = False) -> None:
        original = getattr(builder, name)

        def patched(self: Any, *args: Any) -> Any:
            handles, op = args[:operands], args[operands:]
            if not _is(handles[-1 if last_decides else 0]):
                return original(self, *args)
            values = [widened(handle.data) if _is(handle) else handle.data
                      for handle in handles]
            if not op:
                op = (np.multiply,)
            return _wrapped(interpreter, op[0](*values))

        setattr(builder, name, patched)

    wide("unary_op", 1)
    wide("binary_op", 2)
    # The first operand of a choice is the condition.
    wide("ternary_op", 3, last_decides=True)
    _patch_composed(interpreter)


def _patch_composed(interpreter: Any) -> None:
    """Patches operations that do not go through the three functions above."""
    builder = interpreter.InterpreterBuilder
    fma, rsqrt = builder.create_fma, builder.create_rsqrt

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        if not _is(z):
            return fma(self, x, y, z)
        product = widened(x.data).astype(np.float64) * widened(y.data)
        return _wrapped(interpreter, product + widened(z.data))

    def create_rsqrt(self: Any, arg: Any) -> Any:
        if not _is(arg):
            return rsqrt(self, arg)
        return _wrapped(interpreter, 1 / np.sqrt(widened(arg.data)))

    builder.create_fma = create_fma
    builder.create_rsqrt = create_rsqrt


def _patch_casts(interpreter: Any) -> None:
    import triton.language as tl

    builder = interpreter.InterpreterBuilder
    cast, convert = builder.cast_impl, builder.create_fp_to_fp
    handle_of = interpreter.TensorHandle

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        to = dst_type.scalar
        if src.dtype.scalar == to == tl.bfloat16:
            return src
        if _is(src):
            src = handle_of(widened(src.data), tl.float32)
            return src if to == tl.float32 else cast(self, src, dst_type)
        if to == tl.bfloat16:
            return handle_of(narrowed(src.data), to)
        return cast(self, src, dst_type)

    def create_fp_to_fp(self: Any, src: Any, dst: Any, rounding: Any) -> Any:
        to_nearest = rounding != interpreter._ir.ROUNDING_MODE.RTZ
        eight_bits = min(src.dtype.scalar.primitive_bitwidth,
                         dst.scalar.primitive_bitwidth) == 8
        concerned = _is(src) or dst.scalar == tl.bfloat16
        if concerned and to_nearest and not eight_bits:
            return cast_impl(self, src, dst)
        return convert(self, src, dst, rounding)

    builder.cast_impl = cast_impl
    builder.create_fp_to_fp = create_fp_to_fp


def _patch_dot(interpreter: Any) -> None:
    import triton.language as tl

    builder = interpreter.InterpreterBuilder
    dot = builder.create_dot
    handle_of = interpreter.TensorHandle

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        if not _is(a) and not _is(b) and not _is(d):
            return dot(self, a, b, d, *rest)
        a, b, d_wide = (
            handle_of(widened(x.data), tl.float32) if _is(x) else x
            for x in (a, b, d))
        result = dot(self, a, b, d_wide, *rest)
        return _wrapped(interpreter, result.data) if _is(d) else result

    builder.create_dot = create_dot
