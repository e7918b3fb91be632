# SPDX-License-Identifier: MIT
"""Broadcast of any Python value between hosts."""

import ctypes
import pickle
from typing import Any, Optional, Tuple

from ._lib import call

#: What is sent first: how long the description of the value is.
_LENGTH = ctypes.c_int64


class _Sender:
    """Bytes from one member of a group to all."""

    def __init__(self, context: Any, src: int, group: Optional[int]) -> None:
        root = call.iris_group_translate(context.handle, None, src, group)
        if root < 0:
            raise ValueError(f"src={src} is no rank of the group")
        self._context = context
        self._to = (root, group)
        self.is_root = call.iris_group_index(context.handle, group) == root

    def send(self, data: Any, bytes: int) -> None:
        call.iris_broadcast(self._context.handle, data, bytes, *self._to)

    def send_object(self, value: Any) -> Any:
        text = pickle.dumps(value) if self.is_root else b""
        length = _LENGTH(len(text))
        self.send(ctypes.byref(length), ctypes.sizeof(length))
        data = ctypes.create_string_buffer(text, length.value)
        self.send(data, length.value)
        return value if self.is_root else pickle.loads(data.raw)


def _as_array(value: Any) -> Any:
    """The value as a NumPy array, where it is one by upstream's rule: tensors,
    arrays, and lists of numbers. Else None."""
    try:
        import numpy
    except ImportError:
        return None
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
        # NumPy lacks some of torch's types: those go as objects.
        return None if "bfloat16" in str(value.dtype) else value.numpy()
    if isinstance(value, (list, tuple)):
        try:
            value = numpy.asarray(value)
        except ValueError:
            return None
    if not isinstance(value, numpy.ndarray) or value.dtype.kind not in "biufc":
        return None
    return value


def _describe(value: Any) -> Tuple[Any, Any]:
    """What receivers need first, and the array whose bytes follow."""
    array = _as_array(value)
    if array is None:
        return ("object", value), None
    import numpy

    # As C order: a view's strides mean nothing to who gets a copy.
    array = numpy.asarray(array, order="C")
    return ("array", array.dtype.str, array.shape), array


def broadcast(context: Any, value: Any, src: int, members: Any) -> Any:
    """Rank `src`'s value. Arrays are not pickled: their bytes follow the
    description straight from where they are."""
    sender = _Sender(context, src, context._groups.handle_of(members))
    head, array = _describe(value) if sender.is_root else (None, None)
    head = sender.send_object(head)
    if head[0] == "object":
        if head[1] is None:
            raise ValueError("Root must provide a value.")
        return head[1]
    import numpy

    if array is None:
        array = numpy.empty(head[2], dtype=head[1])
    sender.send(array.ctypes.data, array.nbytes)
    # The root's is a copy as well, so that all ranks have the same.
    return array.copy() if sender.is_root else array
