# SPDX-License-Identifier: MIT
"""Tensors on the heap, with PyTorch's arguments, by calls of the library.

Every function checks the arguments that only Python has (layouts, devices, the
number of arguments), passes on the rest, and returns the memory as an array of
torch or NumPy.
"""

import ctypes
from typing import Any, Optional

from . import _values
from ._lib import call
from ._session import Owner, Session
from ._structs import Tensor, TensorOptions


def _kind(*numbers: Any) -> str:
    """The kind of dtype that PyTorch chooses for numbers."""
    kinds = [_values.value(number).kind for number in numbers]
    if max(kinds) == _values.COMPLEX:
        return "complex"
    return "float" if _values.FLOAT in kinds else "int"


class Tensors:
    """The half of class Iris that makes tensors. A call that allocates memory
    is collective; a call with `out` is not.

    Common arguments, as in PyTorch:
        out: a tensor on this heap to fill. Without it the call allocates
            memory. It must have the right number of elements and the dtype.
        dtype: a torch.dtype, or a dtype of NumPy.
        layout: torch.strided is the only one.
        device: this rank's, or None. The call only checks it.
        requires_grad: whether autograd records operations on the tensor.
    """

    _arrays: Any
    _streams: Any
    _session: Session

    @property
    def handle(self) -> int:
        """The iris_t."""
        raise NotImplementedError

    def empty(
        self,
        *size: Any,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Any:
        """A tensor whose contents are undefined, or NaN or the largest number
        of the type if torch is told to be deterministic, as in PyTorch."""
        self._check_pinned(pin_memory)
        asked = self._asked(layout, device, out)
        asked.dtype = self._arrays.dtype_of(dtype, "float")
        asked.format = self._arrays.format_of(memory_format)
        shape = _values.shape(size)
        filler = self._arrays.filler_of(asked.dtype)
        if filler is None:
            return self._made("iris_empty", shape, asked, out, requires_grad)
        return self._made(
            "iris_full", shape, _values.value(filler), asked, out, requires_grad
        )

    def zeros(
        self,
        *size: Any,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        """A tensor of zeros."""
        asked = self._asked(layout, device, out)
        asked.dtype = self._arrays.dtype_of(dtype, "float")
        shape = _values.shape(size)
        return self._made(
            "iris_full", shape, _values.value(0.0), asked, out, requires_grad
        )

    def ones(
        self,
        *size: Any,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        """A tensor of ones."""
        asked = self._asked(layout, device, out)
        asked.dtype = self._arrays.dtype_of(dtype, "float")
        shape = _values.shape(size)
        return self._made(
            "iris_full", shape, _values.value(1.0), asked, out, requires_grad
        )

    def full(
        self,
        size: Any,
        fill_value: Any,
        *,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        """A tensor with all elements equal to `fill_value`. Without a dtype
        the kind of that value decides it."""
        asked = self._asked(layout, device, out)
        asked.dtype = self._arrays.dtype_of(dtype, _kind(fill_value))
        shape, number = _values.shape([size]), _values.value(fill_value)
        return self._made(
            "iris_full", shape, number, asked, out, requires_grad
        )

    def zeros_like(
        self,
        input: Any,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Any:
        """A tensor of zeros with the shape, dtype and memory format of
        `input`, which may be anywhere."""
        asked = self._asked(layout, device, None)
        asked.dtype = self._arrays.dtype_of(dtype)
        asked.format = self._arrays.format_of(memory_format)
        like = self._arrays.source_of(input)
        return self._made("iris_zeros_like", like, asked, None, requires_grad)

    def arange(
        self,
        start: Any = 0,
        end: Any = None,
        step: Any = 1,
        *,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        """The numbers start, start + step, ... below `end`. A single
        argument is the end."""
        if end is None:
            start, end = 0, start
        asked = self._asked(layout, device, out)
        asked.dtype = self._arrays.dtype_of(dtype, _kind(start, end, step))
        numbers = [_values.value(number) for number in (start, end, step)]
        return self._made("iris_arange", *numbers, asked, out, requires_grad)

    def linspace(
        self,
        start: Any,
        end: Any,
        steps: Any,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        """`steps` numbers from `start` to `end`, evenly spaced."""
        asked = self._asked(layout, device, out)
        is_complex = _kind(start, end) == "complex"
        asked.dtype = self._arrays.dtype_of(
            dtype, "complex" if is_complex else "float"
        )
        numbers = (_values.value(start), _values.value(end))
        (count,) = _values.flat_size([steps])
        return self._made(
            "iris_linspace", *numbers, count, asked, out, requires_grad
        )

    def rand(
        self,
        *size: Any,
        generator: Any = None,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Any:
        """Random numbers, uniform in [0, 1)."""
        self._check_pinned(pin_memory)
        asked = self._asked(layout, device, out, self._drawing(generator))
        asked.dtype = self._arrays.dtype_of(dtype, "float")
        shape = _values.shape(size)
        return self._made("iris_rand", shape, asked, out, requires_grad)

    def randn(
        self,
        *size: Any,
        generator: Any = None,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Any:
        """Random numbers of the standard normal distribution."""
        self._check_pinned(pin_memory)
        asked = self._asked(layout, device, out, self._drawing(generator))
        asked.dtype = self._arrays.dtype_of(dtype, "float")
        shape = _values.shape(size)
        return self._made("iris_randn", shape, asked, out, requires_grad)

    def randint(
        self,
        *args: Any,
        generator: Any = None,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        """Random whole numbers: randint(high, size) from 0, or randint(low,
        high, size). `high` is not included."""
        if len(args) not in (2, 3):
            raise ValueError(
                "randint expects 2 or 3 positional arguments, got"
                f" {len(args)}"
            )
        low, high, size = args if len(args) == 3 else (0, *args)
        low, high = (_values.whole(bound, "bound") for bound in (low, high))
        asked = self._asked(layout, device, out, self._drawing(generator))
        asked.dtype = self._arrays.dtype_of(dtype)
        shape = _values.shape([size])
        return self._made(
            "iris_randint", low, high, shape, asked, out, requires_grad
        )

    def is_symmetric(self, tensor: Any) -> bool:
        """Whether a tensor is completely in this rank's heap. Local."""
        seen = self._arrays.memory_of(tensor)
        return bool(call.iris_tensor_is_symmetric(self.handle, seen))

    def as_symmetric(self, external_tensor: Any) -> Any:
        """A tensor on the heap with the contents of another tensor. Collective:
        all ranks pass tensors of the same size.

        With allocator_type="vmem" the two share their memory, if it is GPU
        memory that can be exported. Otherwise the result is a copy.
        """
        external = self._arrays.source_of(external_tensor)
        symmetric = Tensor()
        call.iris_tensor_as_symmetric(
            self.handle, external, ctypes.byref(symmetric), None
        )
        return self._array(symmetric, external)

    def as_remote(self, tensor: Any, rank: int) -> Any:
        """A view of a peer's copy of a tensor of the heap, with the same
        shape and strides. Local."""
        view = Tensor()
        call.iris_tensor_as_remote(
            self.handle,
            self._arrays.tensor_of(tensor),
            rank,
            ctypes.byref(view),
        )
        return self._array(view)

    @staticmethod
    def _check_pinned(pin_memory: bool) -> None:
        if pin_memory:
            raise ValueError(
                "pin_memory=True: memory of the heap cannot be pinned; leave"
                " it out"
            )

    def _drawing(self, generator: Any) -> Any:
        return self._arrays.generator_of(generator)

    def _asked(
        self, layout: Any, device: Any, out: Any, generator: Any = None
    ) -> TensorOptions:
        """The options with the common arguments."""
        self._arrays.check(layout, device)
        if out is None:
            # This call may return memory that was freed while torch's streams
            # still use it.
            self._streams.settle()
            return _values.options(generator=generator)
        return _values.options(
            out=self._arrays.output_of(out),
            stream=self._streams.current(),
            generator=generator,
        )

    def _made(self, name: str, *arguments: Any) -> Any:
        """Makes the array of a creation call from its arguments, the
        options, `out` and requires_grad."""
        *arguments_of_c, asked, out, requires_grad = arguments
        made = Tensor()
        getattr(call, name)(
            self.handle,
            *arguments_of_c,
            ctypes.byref(asked),
            ctypes.byref(made),
        )
        if out is None:
            array = self._array(made)
        else:
            self._streams.finish()
            same = tuple(out.shape) == made.sizes()
            array = out if same else out.reshape(made.sizes())
        return self._arrays.with_gradient(array) if requires_grad else array

    def _array(self, made: Tensor, source: Any = None) -> Any:
        """One of the library's tensors as an array for the program. It may
        share the memory of `source`."""
        owner = Owner(self._session, made.owner, source)
        return self._arrays.array(made, owner)
