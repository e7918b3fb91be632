# SPDX-License-Identifier: MIT
"""Broadcast of any Python value between hosts."""

import ctypes
import pickle
from typing import Any, Optional, Tuple

from ._lib import call

#: The first message: the size of the description of the value.
_LENGTH = ctypes.c_int64


class _Sender:
    """Sends bytes from one member of a group to all."""

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
    """The value as a NumPy array if upstream treats it as one: tensors,
    arrays, and lists of numbers. Else None."""
    try:
        import numpy
    except ImportError:
        return None
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
        # NumPy lacks some of torch's types. Their values are sent as objects.
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
    """The description that receivers need first, and the array whose bytes follow."""
    array = _as_array(value)
    if array is None:
        return ("object", value), None
    import numpy

    # In C order, because receivers get a copy and have no use for a view's
    # strides.
    array = numpy.asarray(array, order="C")
    return ("array", array.dtype.str, array.shape), array


def broadcast(context: Any, value: Any, src: int, members: Any) -> Any:
    """Returns rank `src`'s value. Arrays are not pickled: their bytes follow
    the description directly from the array's memory."""
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
    # The root gets a copy as well, so that all ranks have equal arrays.
    return array.copy() if sender.is_root else array
