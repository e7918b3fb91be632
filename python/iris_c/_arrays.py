# SPDX-License-Identifier: MIT
"""Memory as arrays of the program's library, torch or NumPy.

Nothing here copies. An array keeps the owner of its memory, and releases it
when the last view of the array is gone.
"""

import ctypes
from typing import Any, Optional, Tuple

from . import _random
from ._errors import UnsupportedError
from ._structs import Tensor
from ._values import DTYPE_DEFAULT, FORMATS, tensor

#: enum iris_dtype in the order of its values, with torch's names of the types.
_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16"
    " float32 float64 complex64 complex128 float8_e4m3fn float8_e5m2"
).split()

#: Types that NumPy does not have.
_NOT_OF_NUMPY = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def _mismatch(asked: Any, own: Any) -> RuntimeError:
    return RuntimeError(
        f"Device mismatch: requested device {asked} but Iris instance is on"
        f" device {own}. Iris only supports tensors on its own device."
    )


class _Memory:
    """A tensor's memory in the form of NumPy's array interface."""

    def __init__(self, made: Tensor, keep: Any) -> None:
        import numpy

        kind = numpy.dtype(_NAMES[made.dtype])
        self.keep = keep
        self.__array_interface__ = {
            "version": 3,
            "typestr": kind.str,
            "data": (made.data, False),
            "shape": made.sizes(),
            "strides": tuple(step * kind.itemsize for step in made.steps()),
        }


class _GpuMemory:
    """Elements on a GPU in the form of torch's interface to other libraries.
    The interface cannot name some types, so all types are passed as a type
    of the same size."""

    _KINDS = {1: "|i1", 2: "<i2", 4: "<i4", 8: "<i8", 16: "<c16"}

    def __init__(self, address: int, count: int, bytes: int, keep: Any):
        self.keep = keep
        self.__cuda_array_interface__ = {
            "version": 2,
            "typestr": self._KINDS[bytes],
            "data": (address, False),
            "shape": (count,),
            "strides": None,
        }


class NumpyArrays:
    """The program uses NumPy arrays."""

    name = "numpy"

    def __init__(self, device_id: Optional[int]) -> None:
        import numpy

        if device_id is not None:
            raise UnsupportedError(
                "NumPy arrays cannot be on a GPU: install torch, or set"
                " IRIS_BACKEND=sim and IRIS_SIM_DEVICE=cpu"
            )
        self._numpy = numpy
        self.device = "cpu"

    def array(self, made: Tensor, keep: Any) -> Any:
        """The tensor's memory as an array that keeps `keep`."""
        name = _NAMES[made.dtype]
        if name in _NOT_OF_NUMPY:
            raise UnsupportedError(f"NumPy has no type for {name}; use torch")
        return self._numpy.asarray(_Memory(made, keep))

    def dtype_of(self, dtype: Any, kind: str = "") -> int:
        """The library's number of a dtype. For None the library decides."""
        if dtype is None:
            return DTYPE_DEFAULT
        name = self._numpy.dtype(dtype).name
        if name not in _NAMES:
            raise TypeError(
                f"dtype={dtype!r} is not a type of these arrays; pass one of"
                f" {', '.join(_NAMES)}"
            )
        return _NAMES.index(name)

    def tensor_of(self, array: Any) -> Tensor:
        """An array as the library's tensor."""
        if not isinstance(array, self._numpy.ndarray):
            raise TypeError(f"a NumPy array is needed, not {type(array)}")
        bytes = array.itemsize
        if any(step % bytes for step in array.strides):
            raise ValueError("the array's strides are no whole elements")
        steps = tuple(step // bytes for step in array.strides)
        dtype = self.dtype_of(array.dtype)
        return tensor(array.ctypes.data, dtype, array.shape, steps)

    def check_memory(self, array: Any) -> None:
        """Checks that kernels can use an array's memory. They can use all of
        NumPy's."""

    def words(self, numbers: Any) -> Any:
        """Numbers as an array of int64 on the device."""
        return self._numpy.array(numbers, dtype="int64")

    def is_contiguous(self, array: Any) -> bool:
        """Whether the elements are contiguous, with the last index fastest."""
        return bool(array.flags.c_contiguous)

    def like(self, array: Any) -> Any:
        """Memory outside the heap for the same number of elements."""
        return self._numpy.empty_like(array)

    def matrix_like(self, array: Any, rows: int, columns: int) -> Any:
        """Memory outside the heap for a matrix of the same type."""
        return self._numpy.empty((rows, columns), array.dtype)

    def parts_together(self, array: Any, shape: Tuple[int, ...]) -> Any:
        """Copies an array of (rows, parts, elements) to one of (parts, rows,
        elements)."""
        rows = array.reshape(shape)
        return self._numpy.ascontiguousarray(rows.swapaxes(0, 1))

    def parts_apart(self, parts: Any, out: Any, shape: Any) -> None:
        """The reverse of parts_together()."""
        out.reshape(shape)[...] = parts.swapaxes(0, 1)

    def generator_of(self, generator: Any) -> Any:
        """A generator for the library. None: the context's own."""
        if generator is None or isinstance(generator, _random.Generator):
            return generator
        return _random.Generator(int(generator.integers(1 << 63)))

    def format_of(self, name: Any) -> int:
        """The library's number of the memory format with this name."""
        return FORMATS[name or "preserve_format"]

    def check(self, layout: Any, device: Any) -> None:
        """Checks that the layout and the device are supported."""
        if layout is not None:
            raise ValueError(f"Layout {layout} not supported with NumPy.")
        if device not in (None, "cpu"):
            raise _mismatch(device, "cpu")

    def with_gradient(self, array: Any) -> Any:
        """Raises an error, because only torch has gradients."""
        raise ValueError("requires_grad=True: NumPy arrays have no gradients")


class TorchArrays:
    """The program uses torch tensors."""

    name = "torch"

    def __init__(self, device_id: Optional[int]) -> None:
        import torch

        self._torch = torch
        self.device = torch.device("cpu")
        if device_id is not None:
            self.device = torch.device("cuda", device_id)
            # As in upstream, new tensors of the program on "cuda" are on this
            # GPU.
            torch.cuda.set_device(self.device)
        self._types = [getattr(torch, name, None) for name in _NAMES]

    def array(self, made: Tensor, keep: Any) -> Any:
        """The tensor's memory as a tensor of torch that keeps `keep`."""
        kind = self._types[made.dtype]
        if kind is None:
            raise UnsupportedError(
                f"this version of torch has no {_NAMES[made.dtype]}"
            )
        steps = zip(made.sizes(), made.steps())
        # An empty tensor keeps the memory of one element.
        count = 1 + sum(max(size - 1, 0) * step for size, step in steps)
        flat = self._flat(made.data, count, kind, keep)
        return flat.as_strided(made.sizes(), made.steps())

    def _flat(self, address: int, count: int, kind: Any, keep: Any) -> Any:
        """`count` elements at an address."""
        torch = self._torch
        bytes = torch.empty((), dtype=kind).element_size()
        if self.device.type == "cuda":
            memory = _GpuMemory(address, count, bytes, keep)
            return torch.as_tensor(memory, device=self.device).view(kind)
        buffer = (ctypes.c_ubyte * (count * bytes)).from_address(address)
        buffer.keep = keep
        return torch.frombuffer(buffer, dtype=kind)

    def dtype_of(self, dtype: Any, kind: str = "") -> int:
        """The library's number of a dtype. For None it is torch's own
        default of that kind, or the library decides."""
        torch = self._torch
        if dtype is None and kind == "float":
            dtype = torch.get_default_dtype()
        if dtype is None and kind == "complex":
            wide = torch.get_default_dtype() == torch.float64
            dtype = torch.complex128 if wide else torch.complex64
        if dtype is None:
            return DTYPE_DEFAULT
        # Torch also accepts Python's types. Names are for users of NumPy.
        plain = {bool: "bool", int: "int64", float: "float64"}
        name = plain.get(dtype, dtype)
        if isinstance(name, str) and name in _NAMES:
            return _NAMES.index(name)
        if not isinstance(dtype, torch.dtype) or dtype not in self._types:
            raise TypeError(
                f"dtype={dtype!r} is not a type of these tensors; pass a"
                " torch.dtype such as torch.float32, or one of these names:"
                f" {', '.join(_NAMES)}"
            )
        return self._types.index(dtype)

    def tensor_of(self, array: Any) -> Tensor:
        """A torch tensor as the library's tensor."""
        if not isinstance(array, self._torch.Tensor):
            raise TypeError(f"a torch tensor is needed, not {type(array)}")
        dtype = self.dtype_of(array.dtype)
        return tensor(array.data_ptr(), dtype, array.shape, array.stride())

    def check_memory(self, array: Any) -> None:
        """Checks that kernels can use a tensor's memory."""
        if not isinstance(array, self._torch.Tensor):
            raise TypeError(f"a torch tensor is needed, not {type(array)}")
        # The device of the memory itself: upstream's programs see "cuda" on the
        # CPU.
        storage = getattr(array, "untyped_storage", array.storage)
        device = storage().device
        if device != self.device:
            raise _mismatch(device, self.device)

    def words(self, numbers: Any) -> Any:
        """Numbers as a tensor of int64 on the device."""
        torch = self._torch
        return torch.tensor(numbers, dtype=torch.int64, device=self.device)

    def is_contiguous(self, array: Any) -> bool:
        """Whether the elements are contiguous, with the last index fastest."""
        return bool(array.is_contiguous())

    def like(self, array: Any) -> Any:
        """Memory outside the heap for the same number of elements."""
        return self._torch.empty_like(array)

    def matrix_like(self, array: Any, rows: int, columns: int) -> Any:
        """Memory outside the heap for a matrix of the same type."""
        return array.new_empty((rows, columns))

    def parts_together(self, array: Any, shape: Tuple[int, ...]) -> Any:
        """Copies a tensor of (rows, parts, elements) to one of (parts, rows,
        elements)."""
        rows = array.detach().reshape(shape)
        return rows.transpose(0, 1).contiguous()

    def parts_apart(self, parts: Any, out: Any, shape: Any) -> None:
        """The reverse of parts_together()."""
        out.detach().view(shape).copy_(parts.transpose(0, 1))

    def generator_of(self, generator: Any) -> Any:
        """A generator for the library, seeded from torch's."""
        if isinstance(generator, _random.Generator):
            return generator
        return _random.drawn_from(self._torch, generator)

    def format_of(self, format: Any) -> int:
        """The library's number of one of torch's memory formats."""
        return FORMATS[str(format or "preserve_format").split(".")[-1]]

    def check(self, layout: Any, device: Any) -> None:
        """Checks that the layout and the device are supported."""
        if layout not in (None, self._torch.strided):
            raise ValueError(
                f"Layout {layout} not supported."
                " Only torch.strided is currently supported."
            )
        if device is None:
            return
        asked = self._torch.device(device)
        if asked.type != self.device.type or asked.index not in (
            None,
            self.device.index,
        ):
            raise _mismatch(device, self.device)

    def with_gradient(self, array: Any) -> Any:
        """The tensor, whose later operations autograd records."""
        return array.requires_grad_()


def choose(name: Optional[str]) -> Any:
    """The kind of arrays for "torch" or "numpy". None: torch if it is
    installed, else NumPy."""
    if name not in (None, "torch", "numpy"):
        raise ValueError(f'arrays={name!r}: takes "torch" or "numpy"')
    for module, kind in (("torch", TorchArrays), ("numpy", NumpyArrays)):
        if name not in (None, module):
            continue
        try:
            __import__(module)
            return kind
        except ImportError:
            if name is not None:
                raise
    raise ImportError(
        "iris_c returns torch tensors or NumPy arrays; install either"
    )
