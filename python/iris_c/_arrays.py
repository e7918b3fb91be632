# SPDX-License-Identifier: MIT
"""Memory as arrays of the library that the program uses: torch or NumPy.

Nothing here copies. An array keeps the object that owns its memory, and lets
go of it when the last view of the array is gone.
"""

import ctypes
from typing import Any, Optional, Sequence

from ._errors import UnsupportedError

#: Names of enum iris_dtype, in the order of their values, as torch's and as
#: NumPy's; None: that one has no such type.
_TORCH = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16"
    " float32 float64 complex64 complex128"
).split()
_NUMPY = [name if name != "bfloat16" else None for name in _TORCH]
BYTES = (1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16)


class _Memory:
    """`shape` elements at an address, as NumPy's array interface has them."""

    def __init__(self, address: int, dtype: int, shape: Sequence[int],
                 strides: Optional[Sequence[int]], keep: Any) -> None:
        import numpy

        kind = numpy.dtype(_NUMPY[dtype])
        self.__array_interface__ = {
            "version": 3,
            "typestr": kind.str,
            "data": (address, False),
            "shape": tuple(shape),
            "strides": strides
            and tuple(stride * kind.itemsize for stride in strides),
        }
        self._keep = keep


class NumpyArrays:
    """The program uses NumPy arrays."""

    name = "numpy"

    def __init__(self) -> None:
        import numpy

        self._numpy = numpy

    def view(self, address: int, dtype: int, shape: Sequence[int],
             strides: Optional[Sequence[int]], keep: Any) -> Any:
        if _NUMPY[dtype] is None:
            raise UnsupportedError(
                f"NumPy has no type for {_TORCH[dtype]}; use torch"
            )
        return self._numpy.asarray(
            _Memory(address, dtype, shape, strides, keep)
        )


class TorchArrays:
    """The program uses torch tensors."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        self._torch = torch

    def view(self, address: int, dtype: int, shape: Sequence[int],
             strides: Optional[Sequence[int]], keep: Any) -> Any:
        torch = self._torch
        kind = getattr(torch, _TORCH[dtype])
        count = 1
        for size, stride in zip(shape, strides or shape):
            count = count * size if strides is None else (
                count + (size - 1) * stride)
        if count <= 0 or 0 in shape:
            return torch.empty(tuple(shape), dtype=kind)
        memory = (ctypes.c_ubyte * (count * BYTES[dtype])).from_address(
            address)
        memory._keep = keep
        flat = torch.frombuffer(memory, dtype=kind)
        if strides is None:
            return flat.view(tuple(shape))
        return flat.as_strided(tuple(shape), tuple(strides))


def arrays(name: Optional[str]) -> Any:
    """The program's arrays: "torch", "numpy", or None: torch where it is
    installed."""
    if name not in (None, "torch", "numpy"):
        raise ValueError(f'arrays={name!r}: takes "torch" or "numpy"')
    if name != "numpy":
        try:
            return TorchArrays()
        except ImportError:
            if name == "torch":
                raise
    try:
        return NumpyArrays()
    except ImportError as error:
        raise ImportError(
            "iris_c returns torch tensors or NumPy arrays; install either"
        ) from error
