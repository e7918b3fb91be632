# SPDX-License-Identifier: MIT
"""Python's sizes, numbers and options in the library's form."""

import ctypes as c
import numbers
import operator
from typing import Any, Iterable, Optional, Sequence, Tuple

from ._lib import call
from ._structs import DIMS_MAX, Shape, Tensor, TensorOptions, Value

#: IRIS_DTYPE_DEFAULT
DTYPE_DEFAULT = -1

#: Values of enum iris_dtype
BOOL, INT64 = 0, 4

#: Values of enum iris_value_kind
FLOAT, COMPLEX = 3, 4

#: IRIS_FORMAT_CONTIGUOUS
CONTIGUOUS = 1

#: enum iris_memory_format, by torch's names
FORMATS = {
    "preserve_format": 0,
    "contiguous_format": CONTIGUOUS,
    "channels_last": 2,
    "channels_last_3d": 3,
}


def options(
    dtype: int = DTYPE_DEFAULT,
    format: int = 0,
    out: Optional[Tensor] = None,
    stream: Optional[int] = None,
    generator: Any = None,
) -> TensorOptions:
    """The options of a creation call."""
    made = TensorOptions()
    call.iris_tensor_options_init_sized(c.byref(made), c.sizeof(made))
    made.dtype = dtype
    made.format = format
    made.out = c.pointer(out) if out is not None else None
    made.stream = stream
    if generator is not None:
        made.generator = c.addressof(generator)
        made.keep = generator
    return made


def whole(number: Any, what: str) -> int:
    """A whole number. Other numbers, such as 2.5, raise an error."""
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(
            f"{what} {number!r} is not a whole number; pass an int"
        ) from None


def flat_size(size: Sequence[Any]) -> Tuple[int, ...]:
    """Sizes from numbers or from one collection of them, however nested."""
    while (
        len(size) == 1
        and isinstance(size[0], Iterable)
        and not isinstance(size[0], str)
    ):
        size = tuple(size[0])
    return tuple(whole(number, "size") for number in size)


def shape(size: Sequence[Any]) -> Shape:
    """Sizes in the library's form."""
    sizes = flat_size(size)
    if len(sizes) > DIMS_MAX:
        raise ValueError(
            f"a tensor of {len(sizes)} dimensions; it takes {DIMS_MAX} at most"
        )
    return Shape(len(sizes), (c.c_int64 * DIMS_MAX)(*sizes))


def tensor(
    data: int, dtype: int, sizes: Sequence[int], steps: Sequence[int]
) -> Tensor:
    """Memory outside the heap, as a tensor without an owner."""
    dims = shape([tuple(sizes)])
    strides = (c.c_int64 * DIMS_MAX)(*steps)
    return Tensor(data, dtype, dims.ndim, dims.sizes, strides, None)


def without_memory(like: Tensor) -> Tensor:
    """A tensor of the same dtype and shape that has no memory."""
    made = Tensor.from_buffer_copy(like)
    made.data = None
    return made


def value(number: Any) -> Value:
    """A number of Python, NumPy or torch in the library's form."""
    if hasattr(number, "item"):
        number = number.item()
    made = Value()
    if isinstance(number, bool):
        made.kind, made.number.i = 0, number
    elif isinstance(number, numbers.Integral):
        whole = int(number)
        if not -(1 << 63) <= whole < 1 << 64:
            raise ValueError(f"{whole} does not fit into 64 bits")
        made.kind = 1 if whole < 1 << 63 else 2
        made.number.u = whole & ((1 << 64) - 1)
    elif isinstance(number, numbers.Real):
        made.kind, made.number.f[0] = FLOAT, float(number)
    elif isinstance(number, numbers.Complex):
        made.kind = COMPLEX
        made.number.f[:] = (complex(number).real, complex(number).imag)
    else:
        raise TypeError(f"{number!r} is no number")
    return made
