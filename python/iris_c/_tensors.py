# SPDX-License-Identifier: MIT
"""Tensors on the heap: arguments as PyTorch has them, by calls of the library.

Every function checks what is Python's own (layouts, devices, the number of
arguments), passes on the rest, and hands the memory to torch or NumPy.
"""

import ctypes
from typing import Any, Optional

from . import _values
from ._lib import call
from ._session import Owner, Session
from ._structs import Tensor, TensorOptions


def _kind(*numbers: Any) -> str:
    """What PyTorch's rule makes of numbers without a dtype."""
    kinds = [_values.value(number).kind for number in numbers]
    if max(kinds) == _values.COMPLEX:
        return "complex"
    return "float" if _values.FLOAT in kinds else "int"


class Tensors:
    """The half of class Iris that makes tensors. Those that make new memory
    are collective; those with `out` are not.

    What their arguments have in common, as with PyTorch:
        out: a tensor of this heap to fill, in place of new memory. It has as
            many elements as are asked for, of that dtype.
        dtype: a torch.dtype, or what NumPy takes for one.
        layout: torch.strided; there is no other.
        device: this rank's, or None. It is only checked.
        requires_grad: whether autograd records what becomes of the tensor.
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
        """A tensor whose contents are undefined. `pin_memory` is for programs
        that pass it, and does nothing."""
        asked = self._asked(layout, device, out)
        asked.dtype = self._arrays.dtype_of(dtype, "float")
        asked.format = self._arrays.format_of(memory_format)
        shape = _values.shape(size)
        return self._made("iris_empty", shape, asked, out, requires_grad)

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
        return self._made("iris_zeros", shape, asked, out, requires_grad)

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
        return self._made("iris_ones", shape, asked, out, requires_grad)

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
        """A tensor whose elements all are `fill_value`, whose kind decides the
        dtype where none is asked for."""
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
        like = ctypes.byref(self._arrays.tensor_of(input))
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
        """start, start + step, ... up to but without `end`. One argument is
        the end."""
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
        """Random whole numbers: randint(high, size) from 0, or
        randint(low, high, size), without `high` itself."""
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
        """Whether all of a tensor is in this rank's heap. Local."""
        seen = self._arrays.tensor_of(tensor)
        return bool(call.iris_tensor_is_symmetric(self.handle, seen))

    def as_symmetric(self, external_tensor: Any) -> Any:
        """A tensor of the heap with a tensor's contents. Collective: every
        rank passes one of its own, of the same size.

        With allocator_type="vmem" and memory of the GPU that can be exported,
        the two share their memory; otherwise it is a copy, made once.
        """
        external = self._arrays.tensor_of(external_tensor)
        symmetric = Tensor()
        call.iris_tensor_as_symmetric(
            self.handle, external, ctypes.byref(symmetric), None
        )
        return self._array(symmetric)

    def as_remote(self, tensor: Any, rank: int) -> Any:
        """A peer's copy of a tensor of the heap: a view of the same shape and
        strides in that rank's memory. Local."""
        view = Tensor()
        call.iris_tensor_as_remote(
            self.handle,
            self._arrays.tensor_of(tensor),
            rank,
            ctypes.byref(view),
        )
        return self._array(view)

    def _drawing(self, generator: Any) -> Any:
        return self._arrays.generator_of(generator)

    def _asked(
        self, layout: Any, device: Any, out: Any, generator: Any = None
    ) -> TensorOptions:
        """Options that have the common arguments."""
        self._arrays.check(layout, device)
        if out is None:
            # What was let go may be used by torch's streams yet, and is given
            # out anew by this call.
            self._streams.settle()
            return _values.options(generator=generator)
        return _values.options(
            out=self._arrays.tensor_of(out),
            stream=self._streams.current(),
            generator=generator,
        )

    def _made(self, name: str, *arguments: Any) -> Any:
        """The array of a creation call: its arguments, the options, `out` and
        requires_grad."""
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

    def _array(self, made: Tensor) -> Any:
        """A tensor of the library's as an array of the program's."""
        return self._arrays.array(made, Owner(self._session, made.owner))
