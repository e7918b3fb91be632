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


def _overlaps(made: Tensor) -> bool:
    """Whether two elements may be in the same place. Layouts whose dimensions
    are interleaved count as overlapping."""
    reach = 0
    sizes, steps = made.sizes(), made.steps()
    if 0 in sizes:
        return False
    for step, size in sorted((abs(step), size) for step, size in zip(steps, sizes)):
        if size > 1 and step <= reach:
            return True
        reach += (size - 1) * step
    return False


class _Arrays:
    """Arrays of the program in the library's form. The library reads and
    writes their memory and knows none of the things that a library of arrays
    adds to it: bits that conjugate or negate elements, a foreign byte order."""

    device: Any

    def memory_of(self, array: Any) -> Tensor:
        """The array's dtype, shape, strides and address, whatever the
        elements mean."""
        raise NotImplementedError

    def _fault_of(self, array: Any, seen: Tensor) -> Optional[Tuple[str, str]]:
        """The reason for which the library would read other values than the
        program sees, and the remedy. None: it reads the same."""
        raise NotImplementedError

    def _resolved(self, array: Any) -> Any:
        """A copy of an array that has a fault, without it."""
        raise NotImplementedError

    def _check_device(self, array: Any, by_kernels: bool) -> None:
        """Checks that this rank reaches the memory, by kernels or at all."""

    def tensor_of(self, array: Any, by_kernels: bool = False) -> Tensor:
        """An array that the library uses in place, such as a view of the
        heap."""
        seen = self.memory_of(array)
        fault = self._fault_of(array, seen)
        if fault is not None:
            raise ValueError(
                f"this array {fault[0]}, and the library uses its memory in"
                f" place; pass a plain one, as {fault[1]} makes it"
            )
        self._check_device(array, by_kernels)
        if not seen.data and 0 not in seen.sizes():
            raise TypeError(
                f"an array of {type(array)} has no memory of its own; pass one"
                " that has, such as x.to_local() of a DTensor"
            )
        return seen

    def source_of(self, array: Any, by_kernels: bool = False) -> Tensor:
        """An array that the library reads. If its memory has other values than
        the program sees, a copy has the program's. Keep the result until the
        call has returned: it keeps the copy."""
        if self._fault_of(array, self.memory_of(array)) is None:
            return self.tensor_of(array, by_kernels)
        copied = self._resolved(array)
        seen = self.tensor_of(copied, by_kernels)
        seen.keep = copied
        return seen

    def output_of(self, array: Any, by_kernels: bool = False) -> Tensor:
        """An array that the library writes."""
        seen = self.tensor_of(array, by_kernels)
        if _overlaps(seen):
            raise ValueError(
                f"elements of an output of shape {seen.sizes()} and strides"
                f" {seen.steps()} may overlap; pass one whose elements do not"
            )
        return seen


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


class NumpyArrays(_Arrays):
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
        asked = self._numpy.dtype(dtype)
        if asked.name not in _NAMES:
            raise TypeError(
                f"dtype={dtype!r} is not a type of these arrays; pass one of"
                f" {', '.join(_NAMES)}"
            )
        if not asked.isnative:
            raise TypeError(
                f"dtype={dtype!r} has another byte order than this machine;"
                f" pass {asked.name!r}"
            )
        return _NAMES.index(asked.name)

    def memory_of(self, array: Any) -> Tensor:
        """The array's dtype, shape, strides and address."""
        numpy = self._numpy
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"a NumPy array is needed, not {type(array)}")
        if isinstance(array, numpy.ma.MaskedArray):
            raise TypeError("a masked array's mask is lost; pass x.filled()")
        dtype = self.dtype_of(array.dtype.newbyteorder("="))
        steps = tuple(step // array.itemsize for step in array.strides)
        return tensor(array.ctypes.data, dtype, array.shape, steps)

    def _fault_of(self, array: Any, seen: Tensor) -> Optional[Tuple[str, str]]:
        """Byte order, and places that no element of the type may have."""
        if not array.dtype.isnative:
            return (
                f"of {array.dtype.str} has another byte order than this"
                " machine",
                "x.astype(x.dtype.newbyteorder('='))",
            )
        whole = all(step % array.itemsize == 0 for step in array.strides)
        if array.flags.aligned and whole:
            return None
        return "has elements that are not aligned", "x.copy()"

    def _resolved(self, array: Any) -> Any:
        return array.astype(array.dtype.newbyteorder("="), copy=True)

    def output_of(self, array: Any, by_kernels: bool = False) -> Tensor:
        """An array that the library writes."""
        seen = super().output_of(array, by_kernels)
        if not array.flags.writeable:
            raise ValueError("an output is a read-only array; pass another")
        return seen

    def words(self, numbers: Any) -> Any:
        """Numbers as an array of int64 on the device."""
        return self._numpy.array(numbers, dtype="int64")

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

    def filler_of(self, dtype: int) -> Any:
        """The value that empty() fills memory with. None: it fills nothing."""
        return None

    def with_gradient(self, array: Any) -> Any:
        """Raises an error, because only torch has gradients."""
        raise ValueError("requires_grad=True: NumPy arrays have no gradients")


class TorchArrays(_Arrays):
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

    def memory_of(self, array: Any) -> Tensor:
        """The tensor's dtype, shape, strides and address."""
        torch = self._torch
        if not isinstance(array, torch.Tensor):
            raise TypeError(f"a torch tensor is needed, not {type(array)}")
        if array.layout != torch.strided or array.is_nested:
            kind = "nested" if array.is_nested else array.layout
            raise TypeError(
                f"a tensor of layout {kind} has no strides; pass a strided"
                " one, such as x.to_dense()"
            )
        dtype = self.dtype_of(array.dtype)
        try:
            address = array.data_ptr()
            if array.numel() == 0:
                # Torch says 0, but a view of the heap has a place there.
                bytes = array.storage_offset() * array.element_size()
                address = self._storage_of(array).data_ptr()
                address += bytes if address else 0
        except RuntimeError:
            address = 0
        return tensor(address, dtype, array.shape, array.stride())

    def _fault_of(self, array: Any, seen: Tensor) -> Optional[Tuple[str, str]]:
        """Torch's bits, and places that no element of the type may have."""
        if array.is_conj():
            return "has the conjugate bit", "x.resolve_conj()"
        if array.is_neg():
            return "has the negative bit", "x.resolve_neg()"
        if (seen.data or 0) % self._alignment(array) == 0:
            return None
        return "has elements that are not aligned", "x.clone()"

    @staticmethod
    def _alignment(array: Any) -> int:
        bytes: int = array.element_size()
        return bytes // 2 if array.is_complex() else bytes

    def _resolved(self, array: Any) -> Any:
        resolved = array.detach().resolve_conj().resolve_neg()
        is_own = resolved.data_ptr() != array.data_ptr()
        return resolved if is_own else resolved.clone()

    @staticmethod
    def _storage_of(array: Any) -> Any:
        return getattr(array, "untyped_storage", array.storage)()

    def _check_device(self, array: Any, by_kernels: bool) -> None:
        # The device of the memory itself: upstream's programs see "cuda" on the
        # CPU.
        try:
            device = self._storage_of(array).device
        except NotImplementedError:
            return  # Torch 1 shows no storage that has no memory.
        on_host = device.type == "cpu" and not by_kernels
        if device != self.device and not on_host:
            raise _mismatch(device, self.device)

    def words(self, numbers: Any) -> Any:
        """Numbers as a tensor of int64 on the device."""
        torch = self._torch
        return torch.tensor(numbers, dtype=torch.int64, device=self.device)

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

    def filler_of(self, dtype: int) -> Any:
        """The value that empty() fills memory with, as torch's flags say.
        None: it fills nothing."""
        torch = self._torch
        # Torch 1 does not have the second flag, which is set by default.
        flags = getattr(torch.utils, "deterministic", None)
        asked = getattr(flags, "fill_uninitialized_memory", True)
        if not asked or not torch.are_deterministic_algorithms_enabled():
            return None
        kind: Any = self._types[dtype]
        if kind is torch.bool:
            return True
        if kind.is_floating_point or kind.is_complex:
            return float("nan")
        return torch.iinfo(kind).max

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
